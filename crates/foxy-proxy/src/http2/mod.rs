//! HTTP/2 with clients (RFC 9113): a connection, its streams, and what a client may ask of both. Each stream is a task of
//! its own that answers one request as a connection of HTTP/1.1 would. Frames, HPACK and flow control are the library's;
//! what it does not bound is bounded here.

mod body;
mod io;
mod resets;
mod sender;
mod stream;
mod tunnel;

pub(crate) use body::Http2Body;
pub(crate) use sender::Http2Sender;
pub(crate) use stream::Http2Stream;

use crate::client_io::{ClientConnection, Patience};
use crate::counters::Counter;
use crate::http2::io::{Stalled, WatchedIo};
use crate::http2::resets::{Resets, Verdict};
use crate::places::Activity;
use crate::serve::linger;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, Limits};
use h2::server::{Builder, Connection};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// What a client begins with that speaks HTTP/2 (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Streams a client may have open on a connection.
const STREAMS: u32 = 100;

/// Requests of one connection that may be worked on. Those whose client gave them up may not be over yet.
const WORKED_ON: u32 = 2 * STREAMS;

/// Bytes of the heads of requests that are worked on, for one connection: compressed to a few bytes, a head may be as large as
/// one of HTTP/1.1. The first is taken whatever it has.
const HEADS: usize = 256 << 10;

/// Bytes of a request's body that may be under way or wait here, for one stream.
const STREAM_WINDOW: u32 = 128 << 10;

/// The same for all streams of a connection.
const CONNECTION_WINDOW: u32 = 256 << 10;

/// Bytes of an answer that may wait here for the connection to take them, for one stream.
pub(crate) const SEND_BUFFER: usize = 64 << 10;

/// Streams given up by the client that may wait to be looked at; one more ends the connection (CVE-2023-44487).
const RESETS_WAITING: usize = 20;

/// Streams a client may make us reset by breaking rules, in the life of a connection; one more ends it.
const BROKEN_STREAMS: usize = 100;

/// How long a connection stays when it was said to be over.
const FAREWELL: Duration = Duration::from_secs(2);

/// How a connection ended.
enum End {
    /// Both sides know.
    Closed,
    /// The client broke a rule, and was told so.
    Broken,
    /// The client took nothing for too long.
    Stalled,
}

/// The streams of a connection, as their tasks share them.
struct Streams {
    activity: Activity,
    open: Cell<u32>,
    /// Bytes of their heads.
    heads: Cell<usize>,
    /// Since when as many are open.
    since: Cell<Instant>,
    resets: RefCell<Resets>,
    too_many_resets: Notify,
}

impl Streams {
    fn new(now: Instant, activity: Activity) -> Self {
        Self {
            activity,
            open: Cell::new(0),
            heads: Cell::new(0),
            since: Cell::new(now),
            resets: RefCell::new(Resets::new(now)),
            too_many_resets: Notify::new(),
        }
    }

    /// Whether another request with a head of so many bytes may be worked on.
    fn takes(&self, head: usize) -> bool {
        let (open, heads) = (self.open.get(), self.heads.get());
        open < WORKED_ON && (open == 0 || heads + head <= HEADS) && self.activity.works()
    }
}

/// A stream that is worked on, until dropped.
pub(crate) struct Open {
    streams: Rc<Streams>,
    head: usize,
}

impl Open {
    fn count(streams: &Rc<Streams>, head: usize) -> Self {
        streams.open.set(streams.open.get() + 1);
        streams.heads.set(streams.heads.get() + head);
        Self { streams: Rc::clone(streams), head }
    }

    /// Notes that the client gave it up.
    pub(crate) fn given_up(&self) {
        if self.streams.resets.borrow_mut().one(Instant::now()) == Verdict::TooMany {
            self.streams.too_many_resets.notify_one();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let streams = &self.streams;
        streams.open.set(streams.open.get() - 1);
        streams.heads.set(streams.heads.get() - self.head);
        let now = Instant::now();
        streams.since.set(now);
        if streams.open.get() == 0 {
            streams.activity.waits(now);
        }
    }
}

/// Serves a client that speaks HTTP/2, from its preface on.
pub(crate) async fn serve(
    worker: &Rc<Worker>,
    connection: &mut ClientConnection,
    peer: SocketAddr,
    activity: &Activity,
) {
    worker.counters.add(Counter::Http2Connections, 1);
    let (scheme, inside) = (connection.stream.scheme(), connection.inside.clone().map(Rc::new));
    let stalled = Stalled::default();
    let io = WatchedIo::new(&mut connection.stream, &mut connection.buffer, Rc::clone(&stalled));
    let handshake = builder(&worker.settings().limits).handshake::<_, Bytes>(io);
    let end = match timeout(worker.settings().client_head, handshake).await {
        Ok(Ok(frames)) => {
            let streams = Rc::new(Streams::new(Instant::now(), activity.clone()));
            drive(worker, frames, (&stalled, streams), |request, respond, open| {
                tokio::task::spawn_local(stream::serve(
                    Rc::clone(worker),
                    (peer, scheme, inside.clone()),
                    request,
                    respond,
                    open,
                ));
            })
            .await
        }
        Ok(Err(_)) => End::Broken,
        Err(_) => End::Stalled,
    };
    match end {
        End::Closed => {}
        End::Broken => linger(connection).await,
        End::Stalled => {
            // Should the system not make a reset of the coming close, what the client does not take is sent for a while.
            let _ = connection.stream.with_socket(tokio::net::TcpStream::set_zero_linger);
        }
    }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESETS_WAITING)
        .max_local_error_reset_streams(Some(BROKEN_STREAMS));
    builder
}

type Respond = h2::server::SendResponse<Bytes>;

/// Carries frames until the connection ends; each new stream is given to `start`.
async fn drive(
    worker: &Worker,
    mut frames: Connection<WatchedIo<'_>, Bytes>,
    (stalled, streams): (&Stalled, Rc<Streams>),
    start: impl Fn(http::Request<RecvStream>, Respond, Open),
) -> End {
    let (idle, write) = (worker.settings().client_idle, worker.settings().client_write);
    let mut stop = worker.stop.clone();
    let mut patience = Patience::new();
    let mut leaving: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let stalled_until = stalled.get().map(|since| since + write);
        let quiet_until = (streams.open.get() == 0).then(|| match leaving {
            Some(began) => began.max(streams.since.get()) + FAREWELL,
            None => streams.since.get() + idle,
        });
        match (stalled_until, quiet_until) {
            (Some(until), _) if until <= now => return End::Stalled,
            (_, Some(until)) if until <= now && leaving.is_some() => return End::Closed,
            (_, Some(until)) if until <= now => {
                frames.graceful_shutdown();
                leaving = Some(now);
            }
            _ => {}
        }
        // What begins from here on is over in no less than the shortest of these.
        let shortest = now + idle.min(write).min(FAREWELL);
        let known = [stalled_until, quiet_until].into_iter().flatten().filter(|until| *until > now);
        let look_again = known.fold(shortest, Instant::min);
        tokio::select! {
            accepted = frames.accept() => match accepted {
                Some(Ok((request, mut respond))) => {
                    let head = size_of_head(&request);
                    if streams.takes(head) {
                        start(request, respond, Open::count(&streams, head));
                    } else {
                        respond.send_reset(Reason::REFUSED_STREAM);
                    }
                }
                Some(Err(_)) => return End::Broken,
                None => return End::Closed,
            },
            () = streams.too_many_resets.notified() => frames.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
            _ = stop.wait_for(|stopping| *stopping), if leaving.is_none() => {
                frames.graceful_shutdown();
                leaving = Some(Instant::now());
            }
            () = patience.until(look_again) => {}
        }
    }
}

/// Bytes of a head, its target among them, with as much for each field as HPACK counts (RFC 7541 §4.1).
fn size_of_head(request: &http::Request<RecvStream>) -> usize {
    let authority = request.uri().authority().map_or(0, |authority| authority.as_str().len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let sizes = fields(request.headers()).map(|(name, value)| name.len() + value.len() + 32);
    authority + path + sizes.sum::<usize>()
}

/// The library's fields as names and values.
fn fields(map: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// Our fields as the library's, without those that HTTP/2 does not have (RFC 9113 §8.2.2).
fn fields_of(headers: &Headers) -> HeaderMap {
    const OF_A_CONNECTION: [&str; 6] =
        ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];
    let mut map = HeaderMap::with_capacity(headers.len() + 3);
    for (name, value) in headers.iter() {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        else {
            continue;
        };
        if !OF_A_CONNECTION.contains(&name.as_str()) {
            map.append(name, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::Places;

    #[test]
    fn heads_of_one_connection_are_bounded_together() {
        let Ok((place, _)) = Places::new(1, 1).take(None) else { panic!("a place is free") };
        let streams = Rc::new(Streams::new(Instant::now(), place.activity().clone()));
        assert!(streams.takes(HEADS + 1), "the first is taken whatever it has");
        let first = Open::count(&streams, HEADS - 10);
        assert!(streams.takes(10) && !streams.takes(11));
        drop(first);
        assert!(streams.takes(11));
    }
}
