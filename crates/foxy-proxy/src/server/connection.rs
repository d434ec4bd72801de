//! Serves one client connection. Detects the protocol first. An HTTP/1.1 connection answers
//! requests until the client or the proxy closes it. `dispatch` creates the answers.

use crate::answer;
use crate::client::io::{ClientConnection, Http1Receiver, LINGER, ReadEnd};
use crate::client::{Client, Sender};
use crate::core::counters::Counter;
use crate::core::frames::PREFACE;
use crate::core::places::Activity;
use crate::core::tls::HandshakeFacts;
use crate::core::transport::Transport;
use crate::intercept::Inside;
use crate::request::answered::{AnswerOptions, ConnectionFate};
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::server::dispatch::request;
use crate::server::request_log::{Ended, ReadRequest, RequestLog};
use crate::server::{http2, intercepting, transparent};
use crate::worker::{Course, Worker};
use foxy_base::clock;
use foxy_http::{BodyLength, DecodeError, RequestEvent, RequestHead, Version};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// After this idle time, a connection frees its buffer and the future that reads its requests.
const REST_AFTER: Duration = Duration::from_secs(2);

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
    pub(crate) activity: Activity,
    /// The client's certificate and the server name of the client's TLS handshake.
    pub(crate) presented: Option<Rc<HandshakeFacts>>,
    /// Number of the node of the fleet that is the client. `None` for every other client.
    pub(crate) node: Option<usize>,
    /// The destination that the client of a transparent listener chose.
    pub(crate) aimed_at: Option<SocketAddr>,
}

pub(crate) async fn serve(
    worker: Rc<Worker>,
    stream: Transport,
    peer: SocketAddr,
    state: ConnectionState,
) {
    let mut connection = ClientConnection::new(stream, worker.settings().limits);
    connection.presented.clone_from(&state.presented);
    connection.aimed_at = state.aimed_at;
    connection.node = state.node;
    // After a TLS handshake, the first bytes of the client may already be decrypted. A wait for
    // bytes on the socket would then miss them.
    let mut may_rest = matches!(connection.stream, Transport::Plain(_));
    let (mut idle_since, mut is_http1) = (Instant::now(), false);
    loop {
        state.idle.set(connection.buffer.is_empty());
        state.activity.begin_wait(idle_since);
        let deadline = idle_since + worker.settings().client_idle;
        let protocol = match may_rest && connection.buffer.is_empty() {
            true => rest(&worker, &mut connection, deadline).await,
            false => None,
        };
        let protocol = match protocol {
            Some(protocol) => protocol,
            None if is_http1 => ClientProtocol::Http1,
            None => detect_protocol(&worker, &mut connection, deadline).await,
        };
        let next = match protocol {
            ClientProtocol::Nothing => return connection.stream.say_goodbye(),
            ClientProtocol::Unknown => {
                return worker.give_away(connection.stream, peer, state.aimed_at);
            }
            // Nodes of a fleet speak only HTTP/2.
            ClientProtocol::Http1 if state.node.is_some() => return,
            ClientProtocol::Http1 => {
                Box::pin(serve_requests(&worker, &mut connection, peer, &state)).await
            }
            ClientProtocol::Http2 => {
                state.idle.set(false);
                let served = http2::serve(&worker, &mut connection, peer, &state.activity);
                return Box::pin(served).await;
            }
            ClientProtocol::Other(destination) => {
                Box::pin(serve_tunnel(&worker, &mut connection, peer, &state, destination)).await
            }
        };
        let inside = match next {
            NextStep::Rest(since) => {
                (idle_since, is_http1, may_rest) = (since, true, true);
                continue;
            }
            NextStep::Enter(inside) => inside,
            NextStep::Move => return worker.give_away(connection.stream, peer, state.aimed_at),
            NextStep::Close | NextStep::ReadRequest => return,
        };
        match Box::pin(intercepting::enter(&worker, connection, inside)).await {
            Some(entered) => {
                connection = entered;
                (idle_since, is_http1, may_rest) = (Instant::now(), false, false);
            }
            None => return,
        }
    }
}

/// Waits until an idle client sends bytes, and then returns `None`. If `deadline` passes first, or
/// the connection moves to another proxy first, returns which of these happened.
async fn rest(
    worker: &Worker,
    connection: &mut ClientConnection,
    deadline: Instant,
) -> Option<ClientProtocol> {
    let can_move = connection.can_move();
    tokio::select! {
        biased;
        is_there = connection.wait_for_bytes(deadline) => {
            (!is_there).then_some(ClientProtocol::Nothing)
        }
        () = worker.has_left(), if can_move => Some(ClientProtocol::Unknown),
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
    let Some(head) = head.filter(|_| state.activity.begin_work()) else { return NextStep::Close };
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
    log.end(&ended, sender.sent(), false);
    connection.linger().await;
}

/// Closes a connection on which the client may still read the last bytes.
pub(crate) async fn let_read(worker: &Worker, stream: Transport) {
    ClientConnection::new(stream, worker.settings().limits).linger().await;
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
            log.end(&ended, sender.sent(), false);
            state.activity.begin_wait(Instant::now());
            connection.linger().await;
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
    worker.counters.add(Counter::Requests, 1);
    let (progress, over) = (Rc::clone(&connection.progress), connection.stream.scheme());
    let mut log =
        RequestLog::begin(worker, peer, started, ReadRequest::Head(head, over), &progress);
    let ReadRequest::Head(head, _) = &mut log.read else { return NextStep::Close };
    let (ended, bytes) =
        request(worker, &mut Client::Http1(connection), peer, (head, body), refusal).await;
    log.end(&ended, bytes, is_error(&ended) && connection.has_been_left());
    match ended {
        Ended::Answered(answered) if answered.connection == ConnectionFate::Keep => {
            return NextStep::ReadRequest;
        }
        Ended::Intercepted(mut inside, _) => {
            inside.user = progress.user();
            return NextStep::Enter(inside);
        }
        Ended::Answered(_) | Ended::Tunnelled(_) => {
            state.activity.begin_wait(Instant::now());
            connection.linger().await;
        }
        Ended::Aborted(_) => {}
    }
    NextStep::Close
}

const fn is_error(ended: &Ended) -> bool {
    let Ended::Answered(answered) = ended else { return false };
    matches!(answered.response.outcome, CacheStatus::Error(_))
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
    let ConnectionState { idle, activity, .. } = state;
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
