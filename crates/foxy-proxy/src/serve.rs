//! One client connection: requests in, answers out, until either side wants no more.

use crate::answer::{self, After, Asked, Cut, Told};
use crate::cache_status::CacheStatus;
use crate::cached::{self, Got, Wanted};
use crate::client_io::{ClientConnection, ReadEnd, Receiver};
use crate::counters::Counter;
use crate::exchange::{Plan, plan};
use crate::forward::{self, Forward, Forwarded};
use crate::intercept::{self, Inside};
use crate::purger;
use crate::reason::ErrorReason;
use crate::recording::record;
use crate::stored::CacheKey;
use crate::tunnelling::{switched, tunnel};
use crate::upstream::Transport;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{
    BodyLength, Persistence, RequestEvent, RequestHead, ResponseHead, Version, accepts_trailers,
};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a closing connection may still send, so that our last answer is not lost to a reset.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes read and dropped while a connection closes.
const LINGER_BYTES: usize = 256 << 10;

/// An answer given, or the connection to be given up.
pub(crate) enum Ended {
    Answered(After, Told),
    Cut(Cut),
    Tunnelled(Told),
    Intercepted(Inside, Told),
}

/// What follows a request on its connection.
enum Then {
    Ask,
    Close,
    Enter(Inside),
}

/// Serves a client until the connection ends. `idle` is true while nothing of a request has come.
pub(crate) async fn serve(worker: Rc<Worker>, stream: Transport, peer: SocketAddr, idle: Rc<Cell<bool>>) {
    let mut connection = ClientConnection::new(stream, worker.settings().limits);
    loop {
        match one(&worker, &mut connection, peer, &idle).await {
            Then::Ask => {}
            Then::Close => return,
            Then::Enter(inside) => match intercept::enter(&worker, connection, inside).await {
                Some(entered) => connection = entered,
                None => return,
            },
        }
        if worker.shared.stopping.load(Ordering::Relaxed) {
            break;
        }
    }
}

/// Answers a client that is not served: one too many, or one that speaks plain HTTP where TLS is spoken.
pub(crate) async fn turn_away(worker: Rc<Worker>, stream: TcpStream, reason: ErrorReason) {
    let mut connection = ClientConnection::new(Transport::Plain(stream), worker.settings().limits);
    let (_, mut sender) = connection.split(LINGER);
    // A client that does not take the answer loses nothing by not getting it.
    let _ = answer::error(&worker, &mut sender, CLOSING, reason).await;
    linger(&mut connection).await;
}

/// How a request that cannot be read is answered.
const CLOSING: Asked = Asked { head_only: false, version: Version::Http11, keep: false, trailers: false };

async fn one(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    idle: &Cell<bool>,
) -> Then {
    let (mut receiver, mut sender) = connection.split(worker.settings().client_write);
    idle.set(!receiver.has_begun());
    let (head, body) = match read_head(worker, &mut receiver, idle).await {
        Ok(found) => found,
        Err(ReadEnd::Closed | ReadEnd::Broken) => return Then::Close,
        Err(ReadEnd::Timeout) if !receiver.has_begun() => return Then::Close,
        Err(end) => {
            let reason = match end {
                ReadEnd::Malformed(error) => ErrorReason::Malformed(error),
                _ => ErrorReason::RequestTimeout,
            };
            let started = clock::monotonic();
            let told = answer::error(worker, &mut sender, CLOSING, reason).await;
            let (bytes, told) = (sender.sent, told.ok().map(|(_, told)| told));
            record(worker, peer, started, None, bytes, told);
            linger(connection).await;
            return Then::Close;
        }
    };
    let started = clock::monotonic();
    worker.counters.add(Counter::Requests, 1);
    let (head, refusal) = match &connection.inside {
        None => (head, None),
        Some(inside) => inside.judge(head),
    };
    let (ended, bytes) = request(worker, connection, peer, (&head, body), refusal).await;
    worker.counters.add(Counter::BytesToClients, bytes);
    let mut entrance = None;
    let (after, told) = match ended {
        Ended::Answered(after, told) => (after, Some(told)),
        Ended::Tunnelled(told) => (After::Close, Some(told)),
        Ended::Intercepted(inside, told) => {
            entrance = Some(inside);
            (After::Keep, Some(told))
        }
        Ended::Cut(cut) => {
            if cut == Cut::Client {
                worker.counters.add(Counter::ClientsLeft, 1);
            }
            (After::Close, None)
        }
    };
    record(worker, peer, started, Some(&head), bytes, told);
    if after == After::Close && told.is_some() {
        linger(connection).await;
    }
    match (entrance, after) {
        (Some(inside), _) => Then::Enter(inside),
        (None, After::Keep) => Then::Ask,
        (None, After::Close) => Then::Close,
    }
}

/// Reads a head: the first byte within the idle time, the rest within the head time from then.
async fn read_head(
    worker: &Worker,
    receiver: &mut Receiver<'_>,
    idle: &Cell<bool>,
) -> Result<(RequestHead, BodyLength), ReadEnd> {
    let now = tokio::time::Instant::now();
    let mut deadline =
        now + if idle.get() { worker.settings().client_idle } else { worker.settings().client_head };
    loop {
        match receiver.ready()? {
            Some(RequestEvent::Head(head, body)) => {
                idle.set(false);
                return Ok((head, body));
            }
            Some(_) => return Err(ReadEnd::Broken),
            None => receiver.read(deadline).await?,
        }
        if idle.replace(false) {
            deadline = tokio::time::Instant::now() + worker.settings().client_head;
        }
    }
}

/// Answers one request; also says how many bytes were sent.
async fn request(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    (head, body): (&RequestHead, BodyLength),
    refusal: Option<ErrorReason>,
) -> (Ended, u64) {
    let asked = Asked {
        head_only: head.method == foxy_http::Method::Head,
        version: head.version,
        keep: Persistence::of(head.version, &head.headers) == Persistence::KeepAlive
            && !worker.shared.stopping.load(Ordering::Relaxed),
        trailers: accepts_trailers(&head.headers),
    };
    let (settings, over) = (worker.settings(), connection.stream.scheme());
    let (mut receiver, mut sender) = connection.split(settings.client_write);
    if refusal.is_none() && purger::wants_explanation(worker, head, peer) {
        let result = purger::explain(worker, &mut sender, (head, asked), (body, over)).await;
        let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
        return (ended, sender.sent);
    }
    let planned = refusal.map(Plan::Refuse);
    let planned = planned.unwrap_or_else(|| plan(head, body, over, &settings.mode, &settings.via_name));
    let forward = match planned {
        Plan::Tunnel(origin) => return tunnel(worker, connection, asked, origin).await,
        Plan::Refuse(reason) => {
            let result = answer::error(worker, &mut sender, asked, reason).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent);
        }
        Plan::AnswerHere => {
            let mut answer = ResponseHead::new(200);
            answer.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
            let outcome = CacheStatus::Local { detail: "max-forwards" };
            let result = answer::local(&mut sender, asked, answer, outcome, Bytes::new()).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent);
        }
        Plan::Purge(key) => {
            let key = CacheKey::new(key);
            let result = purger::answer(worker, &mut sender, (head, asked), peer, &key).await;
            let ended = drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
            return (ended, sender.sent);
        }
        Plan::Forward(origin, key, reason) => (origin, CacheKey::new(key), reason, None),
        Plan::LookUp(origin, key) => {
            let wanted = Wanted { head, origin, key: CacheKey::new(key), asked };
            match cached::answer(worker, &mut sender, &wanted).await {
                Ok(Got::Answered(after, told)) => {
                    let result = Ok((after, told));
                    let ended =
                        drained(&mut receiver, settings.drain_limit, settings.client_read, result).await;
                    return (ended, sender.sent);
                }
                Ok(Got::Forward(reason, described)) => (wanted.origin, wanted.key, reason, described),
                Err(cut) => return (Ended::Cut(cut), sender.sent),
            }
        }
    };
    let (origin, key, reason, described) = forward;
    let request = Forward { head, body, origin, key, reason, asked, described };
    let result = forward::forward(worker, &mut receiver, &mut sender, request).await;
    let sent = sender.sent;
    match result {
        Ok(Forwarded::Answered(after, told)) => (Ended::Answered(after, told), sent),
        Ok(Forwarded::Switched(head, stream, rest)) => {
            switched(worker, connection, head, stream, rest, reason).await
        }
        Err(cut) => (Ended::Cut(cut), sent),
    }
}

/// Reads what is left of a request whose answer did not need it, within limits, or gives the connection up.
async fn drained(
    receiver: &mut Receiver<'_>,
    limit: u64,
    patience: Duration,
    result: Result<(After, Told), Cut>,
) -> Ended {
    let (after, told) = match result {
        Ok(found) => found,
        Err(cut) => return Ended::Cut(cut),
    };
    if after == After::Close {
        return Ended::Answered(After::Close, told);
    }
    let mut left = limit;
    loop {
        match receiver.next(patience).await {
            Ok(RequestEvent::End) => return Ended::Answered(After::Keep, told),
            Ok(RequestEvent::Body(data)) if data.len() as u64 <= left => left -= data.len() as u64,
            Ok(RequestEvent::Trailers(_)) => {}
            Ok(RequestEvent::Body(_) | RequestEvent::Head(..)) | Err(_) => {
                return Ended::Answered(After::Close, told);
            }
        }
    }
}

/// Closes a connection without losing the answer: the client's further bytes are read and dropped for a while.
async fn linger(connection: &mut ClientConnection) {
    let drop_rest = async {
        if connection.stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = vec![0; 4096];
        let mut read = 0;
        while read < LINGER_BYTES {
            match tokio::io::AsyncReadExt::read(&mut connection.stream, &mut scratch).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read += count,
            }
        }
    };
    let _patience_over = timeout(LINGER, drop_rest).await;
}
