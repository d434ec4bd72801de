//! Serves one client connection. Detects the protocol first. An HTTP/1.1 connection answers
//! requests until the client or the proxy closes it. `dispatch` creates the answers.

use crate::answer;
use crate::client::io::{ClientConnection, Http1Receiver, ReadEnd};
use crate::client::{Client, Sender};
use crate::core::frames::PREFACE;
use crate::core::places::{Activity, Place};
use crate::core::tls::HandshakeFacts;
use crate::core::transport::{LINGER, Transport};
use crate::intercept::Inside;
use crate::request::answered::{AnswerOptions, ConnectionFate};
use crate::request::reason::ErrorReason;
use crate::server::dispatch::request;
use crate::server::request_log::{Ended, ReadRequest, RequestLog};
use crate::server::{http2, intercepting, transparent};
use crate::worker::{Course, Worker};
use foxy_base::clock;
use foxy_http::{BodyLength, DecodeError, RequestEvent, RequestHead, Version};
use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// A connection that has been idle for this time frees its buffer, its decoder and the future that
/// reads requests.
const REST_AFTER: Duration = Duration::from_secs(2);

/// A connection with pipelined requests gets this many answers before other connections get their
/// turn.
const ANSWERS_IN_TURN: u32 = 16;

/// The next step of a connection after a request.
enum NextStep {
    ReadRequest,
    /// The connection has been idle since this time. It waits, with little memory, until the client
    /// sends bytes.
    Rest(Instant),
    Close,
    Enter(Inside),
    /// The idle connection moves to another foxy process.
    Move,
}

pub(crate) struct ConnectionState {
    /// True while the connection waits for the first byte of the next request.
    pub(crate) idle: Rc<Cell<bool>>,
    /// The connection's permit to be open, which ends with the connection.
    pub(crate) place: Place,
    /// The client's certificate and the server name of the client's TLS handshake.
    pub(crate) presented: Option<Rc<HandshakeFacts>>,
    /// Number of the node of the fleet that is the client. `None` for every other client.
    pub(crate) node: Option<usize>,
    /// The destination that the client of a transparent listener chose.
    pub(crate) aimed_at: Option<SocketAddr>,
}

impl ConnectionState {
    const fn activity(&self) -> &Activity {
        self.place.activity()
    }
}

/// An idle connection, with only the memory that it needs to wait for bytes of the client.
struct RestingConnection {
    stream: Transport,
    inside: Option<Box<Inside>>,
    since: Instant,
    is_http1: bool,
}

/// The event that ends the rest of a connection.
enum RestEnd {
    Bytes,
    Deadline,
    /// The connection must move to another foxy process.
    Leaving,
}

/// The next step of a connection that has read bytes.
enum Awakened {
    Rest(RestingConnection),
    Http2(Box<ClientConnection>),
    Ended,
}

/// Serves a connection until its end. The future has the size of a connection at rest, because
/// `serve_awake` has its own box.
pub(crate) fn serve(
    worker: Rc<Worker>,
    stream: Transport,
    peer: SocketAddr,
    state: ConnectionState,
) -> impl Future<Output = ()> {
    // After the TLS handshake, the first bytes of the client may already be decrypted.
    let mut may_rest = matches!(stream, Transport::Plain(_));
    let (since, is_http1) = (Instant::now(), false);
    let mut resting = RestingConnection { stream, inside: None, since, is_http1 };
    // An `async fn` would contain each of its arguments twice.
    async move {
        loop {
            state.idle.set(true);
            state.activity().begin_wait(resting.since);
            if may_rest {
                match rest(&worker, &resting).await {
                    RestEnd::Bytes => {}
                    RestEnd::Deadline => return resting.stream.say_goodbye(),
                    RestEnd::Leaving => {
                        return worker.give_away(resting.stream, peer, state.aimed_at);
                    }
                }
            }
            match Box::pin(serve_awake(&worker, resting, peer, &state)).await {
                Awakened::Rest(rested) => (resting, may_rest) = (rested, true),
                Awakened::Http2(connection) => {
                    let served = http2::serve(&worker, connection, peer, state.activity());
                    return Box::pin(served).await;
                }
                Awakened::Ended => return,
            }
        }
    }
}

/// Waits until an idle client sends bytes, its time limit ends, or the connection must move.
fn rest(
    worker: &Worker,
    RestingConnection { stream, inside, since, .. }: &RestingConnection,
) -> impl Future<Output = RestEnd> {
    let deadline = *since + worker.settings().client_idle;
    let can_move = matches!(stream, Transport::Plain(_)) && inside.is_none();
    async move {
        let mut patience = pin!(sleep_until(deadline));
        let mut leaving = pin!(worker.has_left());
        poll_fn(|context| {
            if stream.poll_readable(context).is_ready() {
                return Poll::Ready(RestEnd::Bytes);
            }
            if can_move && leaving.as_mut().poll(context).is_ready() {
                return Poll::Ready(RestEnd::Leaving);
            }
            patience.as_mut().poll(context).map(|()| RestEnd::Deadline)
        })
        .await
    }
}

/// Serves a connection that has received bytes, or whose first bytes may be decrypted, until it
/// rests, speaks HTTP/2 or ends.
async fn serve_awake(
    worker: &Rc<Worker>,
    RestingConnection { stream, inside, since, mut is_http1 }: RestingConnection,
    peer: SocketAddr,
    state: &ConnectionState,
) -> Awakened {
    let mut connection = ClientConnection::new(stream, worker.settings().limits);
    connection.inside = inside.map(|inside| *inside);
    connection.presented.clone_from(&state.presented);
    connection.aimed_at = state.aimed_at;
    connection.node = state.node;
    let mut deadline = since + worker.settings().client_idle;
    loop {
        let protocol = match is_http1 {
            true => ClientProtocol::Http1,
            false => detect_protocol(worker, &mut connection, deadline).await,
        };
        let next = match protocol {
            ClientProtocol::Nothing => {
                connection.stream.say_goodbye();
                NextStep::Close
            }
            ClientProtocol::Unknown => NextStep::Move,
            // Nodes speak only HTTP/2.
            ClientProtocol::Http1 if state.node.is_some() => NextStep::Close,
            ClientProtocol::Http1 => serve_requests(worker, &mut connection, peer, state).await,
            ClientProtocol::Http2 => {
                state.idle.set(false);
                return Awakened::Http2(Box::new(connection));
            }
            ClientProtocol::Other(destination) => {
                Box::pin(serve_tunnel(worker, &mut connection, peer, state, destination)).await
            }
        };
        match next {
            NextStep::Rest(since) => {
                let ClientConnection { stream, inside, .. } = connection;
                let inside = inside.map(Box::new);
                return Awakened::Rest(RestingConnection { stream, inside, since, is_http1: true });
            }
            NextStep::Enter(inside) => {
                match Box::pin(intercepting::enter(worker, connection, inside)).await {
                    Some(entered) => connection = entered,
                    None => return Awakened::Ended,
                }
                let now = Instant::now();
                state.idle.set(connection.buffer.is_empty());
                state.activity().begin_wait(now);
                (deadline, is_http1) = (now + worker.settings().client_idle, false);
            }
            NextStep::Move => {
                worker.give_away(connection.stream, peer, state.aimed_at);
                return Awakened::Ended;
            }
            NextStep::Close | NextStep::ReadRequest => return Awakened::Ended,
        }
    }
}

/// Serves a connection of a transparent listener that does not carry HTTP/1.1, as if the client had
/// sent a CONNECT before. The client receives no answer to this CONNECT.
async fn serve_tunnel(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    state: &ConnectionState,
    destination: SocketAddr,
) -> NextStep {
    let head = transparent::connect_before(worker, connection, destination).await;
    let Some(head) = head.filter(|_| state.activity().begin_work()) else { return NextStep::Close };
    state.idle.set(false);
    connection.is_muted = true;
    answer_request(worker, connection, peer, state, (head, BodyLength::None, None)).await
}

/// Answers the HTTP/1.1 requests of a connection until no more follow. Returns the next step. After
/// an intercepted CONNECT, the connection continues inside the tunnel.
async fn serve_requests(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    state: &ConnectionState,
) -> NextStep {
    let mut answered: u32 = 0;
    loop {
        match serve_request(worker, connection, peer, state).await {
            NextStep::ReadRequest => {}
            NextStep::Close => {
                // No request is in progress, so nothing is lost if the connection closes. A TLS
                // client receives the notification that the connection ends as intended.
                if state.idle.get() {
                    connection.stream.say_goodbye();
                }
                return NextStep::Close;
            }
            last @ (NextStep::Enter(_) | NextStep::Move | NextStep::Rest(_)) => return last,
        }
        if worker.shared.is_leaving() && *worker.course.borrow() == Course::Stop {
            return NextStep::Close;
        }
        answered = answered.wrapping_add(1);
        if answered.is_multiple_of(ANSWERS_IN_TURN) && !connection.buffer.is_empty() {
            yield_now().await;
        }
    }
}

/// The protocol of a connection, detected from its first bytes.
enum ClientProtocol {
    Http1,
    Http2,
    /// The connection of a transparent listener carries another protocol, such as TLS. The value is
    /// the destination of the connection.
    Other(SocketAddr),
    /// The client closed the connection, or sent nothing within the time limit.
    Nothing,
    /// The client has sent nothing yet, and the connection moves to another foxy process.
    Unknown,
}

/// Detects the client's protocol. With TLS, the handshake (ALPN) names the protocol. Without TLS,
/// the first bytes show the protocol (RFC 9113 §3.3, §3.4).
async fn detect_protocol(
    worker: &Worker,
    connection: &mut ClientConnection,
    mut deadline: Instant,
) -> ClientProtocol {
    match connection.stream.agreed_protocol().as_deref() {
        Some(b"h2") => return ClientProtocol::Http2,
        Some(_) => return ClientProtocol::Http1,
        None => {}
    }
    loop {
        let begun = &connection.buffer[..];
        let is_http1 =
            begun.first().is_none_or(u8::is_ascii_uppercase) && !begun.starts_with(PREFACE);
        if let (Some(destination), false) = (connection.aimed_at, is_http1) {
            return ClientProtocol::Other(destination);
        }
        match begun.len() {
            0 => {}
            _ if begun.starts_with(PREFACE) => return ClientProtocol::Http2,
            _ if !PREFACE.starts_with(begun) => return ClientProtocol::Http1,
            _ => deadline = deadline.min(Instant::now() + worker.settings().client_head),
        }
        let may_move = connection.can_move() && begun.is_empty();
        let (mut receiver, _) = connection.split(LINGER);
        let read = tokio::select! {
            biased;
            read = receiver.read(deadline) => read,
            () = worker.has_left(), if may_move => return ClientProtocol::Unknown,
        };
        if read.is_err() {
            return if connection.buffer.is_empty() {
                ClientProtocol::Nothing
            } else {
                ClientProtocol::Http1
            };
        }
    }
}

/// Sends an error to a client whose connection the proxy does not serve. Either no place is free,
/// or the client speaks plain HTTP on a TLS port.
pub(crate) async fn turn_away(
    worker: Rc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    reason: ErrorReason,
) {
    let mut connection = ClientConnection::new(Transport::Plain(stream), worker.settings().limits);
    let progress = Rc::clone(&connection.progress);
    let (_, sender) = connection.split(LINGER);
    let mut sender = Sender::Http1(sender);
    let log = RequestLog::begin(&worker, peer, clock::monotonic(), ReadRequest::NOTHING, &progress);
    let result = answer::error(&worker, &mut sender, CLOSING, reason).await;
    let ended = Ended::from(result);
    log.end(&ended, sender.sent());
    connection.stream.linger().await;
}

/// Closes a connection on which the client may still read the last bytes.
pub(crate) async fn let_read(mut stream: Transport) {
    stream.linger().await;
}

/// The options for the last answer on a connection. The connection then closes, because the request
/// cannot be parsed or the proxy does not serve the client.
const CLOSING: AnswerOptions =
    AnswerOptions { head_only: false, version: Version::Http11, keep: false, trailers: false };

async fn serve_request(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    state: &ConnectionState,
) -> NextStep {
    connection.rest();
    let progress = Rc::clone(&connection.progress);
    let can_move = connection.can_move();
    let (mut receiver, sender) = connection.split(worker.settings().client_write);
    state.idle.set(!receiver.has_begun());
    let now = Instant::now();
    let (mut head, body) = match read_head(worker, &mut receiver, state, can_move, now).await {
        Ok(Some(found)) => found,
        Ok(None) => return NextStep::Move,
        // The client speaks another protocol and cannot read an HTTP answer. So the connection
        // closes without an answer (RFC 9113 §3.4).
        Err(ReadEnd::Closed | ReadEnd::Broken | ReadEnd::Malformed(DecodeError::OtherProtocol)) => {
            return NextStep::Close;
        }
        Err(ReadEnd::Timeout) if !receiver.has_begun() => {
            let rests = worker.settings().client_idle > REST_AFTER;
            return if rests { NextStep::Rest(now) } else { NextStep::Close };
        }
        Err(end) => {
            let reason = match end {
                ReadEnd::Malformed(error) => ErrorReason::Malformed(error),
                ReadEnd::NoRoom => ErrorReason::NoRoomForHead,
                _ => ErrorReason::RequestTimeout,
            };
            let (started, mut sender) = (clock::monotonic(), Sender::Http1(sender));
            let read = ReadRequest::words(receiver.unread());
            let log = RequestLog::begin(worker, peer, started, read, &progress);
            let result = Box::pin(answer::error(worker, &mut sender, CLOSING, reason)).await;
            let ended = Ended::from(result);
            log.end(&ended, sender.sent());
            state.activity().begin_wait(Instant::now());
            connection.stream.linger().await;
            return NextStep::Close;
        }
    };
    let mut refusal = None;
    if let Some(inside) = &connection.inside {
        (head, refusal) = inside.judge(head);
    } else if let Some(destination) = connection.aimed_at {
        (head, refusal) = transparent::absolute(head, destination);
    }
    answer_request(worker, connection, peer, state, (head, body, refusal)).await
}

async fn answer_request(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    state: &ConnectionState,
    (head, body, refusal): (RequestHead, BodyLength, Option<ErrorReason>),
) -> NextStep {
    let started = clock::monotonic();
    let (progress, over) = (Rc::clone(&connection.progress), connection.stream.scheme());
    let mut log =
        RequestLog::begin(worker, peer, started, ReadRequest::Head(head, over), &progress);
    let ReadRequest::Head(head, _) = &mut log.read else { return NextStep::Close };
    let (ended, bytes) =
        request(worker, &mut Client::Http1(connection), peer, (head, body), refusal).await;
    log.end(&ended, bytes);
    match ended {
        Ended::Answered(answered) if answered.connection == ConnectionFate::Keep => {
            return NextStep::ReadRequest;
        }
        Ended::Intercepted(mut inside, _) => {
            inside.user = progress.user();
            return NextStep::Enter(inside);
        }
        Ended::Answered(_) | Ended::Tunnelled(_) => {
            state.activity().begin_wait(Instant::now());
            connection.stream.linger().await;
        }
        Ended::Aborted(_) => {}
    }
    NextStep::Close
}

/// Reads a request head. An idle connection waits for the first byte up to the idle limit, or until
/// it must free its memory. From the first byte on, the time limit for a head applies. Returns
/// `None` if the connection moves to another foxy process. `now` is the time at which the wait
/// begins.
async fn read_head(
    worker: &Worker,
    receiver: &mut Http1Receiver<'_>,
    state: &ConnectionState,
    can_move: bool,
    now: Instant,
) -> Result<Option<(RequestHead, BodyLength)>, ReadEnd> {
    let (idle, activity) = (&state.idle, state.activity());
    activity.begin_wait(now);
    let mut deadline = now
        + match idle.get() {
            true => worker.settings().client_idle.min(REST_AFTER),
            false => worker.settings().client_head,
        };
    loop {
        match receiver.ready()? {
            Some(RequestEvent::Head(head, body)) => {
                idle.set(false);
                // If the connection has given up its place (slot for a connection) to another
                // connection, it will close in a moment.
                let begins = activity.begin_work();
                return if begins { Ok(Some((head, body))) } else { Err(ReadEnd::Closed) };
            }
            Some(_) => return Err(ReadEnd::Broken),
            None => tokio::select! {
                biased;
                read = receiver.read_head(deadline, &worker.shared.requests) => read?,
                () = worker.has_left(), if can_move && idle.get() => return Ok(None),
            },
        }
        if idle.replace(false) {
            deadline = Instant::now() + worker.settings().client_head;
        }
    }
}
