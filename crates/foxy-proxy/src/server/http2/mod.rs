//! Serves HTTP/2 clients (RFC 9113): a connection and its streams. Each stream has a task that
//! answers one request, in the same way as for HTTP/1.1. The HTTP/2 library handles frames, HPACK
//! and flow control. This module enforces limits that the library does not have.

pub(crate) mod stream;

use crate::client::io::{COPIES_OF_HEAD, ClientConnection, ReadTimer, SMALL_HEAD};
use crate::core::tls::HandshakeFacts;
use crate::core::transport::Transport;

use crate::client::http2::io::{FrameGatherer, Stalled, WatchedIo};
use crate::client::http2::sender::SEND_BUFFER;
use crate::client::http2::stream::fields;
use crate::client::http2::wire::Wire;
use crate::core::byte_budget::{ByteBudget, HeldBytes};
use crate::core::counters::Counter;
use crate::core::places::Activity;
use crate::intercept::Inside;
use crate::upstream::Scheme;
use crate::worker::{Course, Worker};
use bytes::{Bytes, BytesMut};
use foxy_http::Limits;
use h2::server::{Builder, Connection};
use h2::{Reason, RecvStream};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Number of streams that a client may have open on one connection.
const MAX_STREAMS: u32 = 100;

/// Number of requests that may be in progress on one connection. This is more than [`MAX_STREAMS`],
/// because a request may continue for some time after the client has reset its stream.
const MAX_REQUESTS: u32 = 2 * MAX_STREAMS;

/// Number of bytes that the heads of all requests in progress on one connection may have together,
/// uncompressed. A few compressed bytes may become a large head. If a connection has only one
/// request, its head may be larger.
const MAX_HEAD_BYTES: usize = 256 << 10;

/// Bytes that each stream in progress reserves in the memory budget for requests, in addition to
/// its head. The first stream in progress of a connection reserves nothing.
const STREAM_BYTES: usize = 16 << 10;

/// Flow-control window in bytes of one stream: how many bytes of a request body may be on the way,
/// or received but unread.
const STREAM_WINDOW: u32 = 128 << 10;

/// Flow-control window in bytes of a connection whose client sends bodies, if the memory budget for
/// requests has space. Other connections have the default window of RFC 9113 §6.9.2.
const CONNECTION_WINDOW: u32 = 256 << 10;
const USUAL_WINDOW: u32 = (64 << 10) - 1;

/// A waiting stream is a stream whose request the proxy has not accepted yet. Up to this number of
/// waiting streams may be reset by the client. One more reset closes the connection
/// (CVE-2023-44487).
const MAX_WAITING_RESETS: usize = 20;

/// Largest number of streams on a connection that the proxy resets because the client violated the
/// protocol. One more such stream closes the connection.
const MAX_BROKEN_STREAMS: usize = 100;

/// Time for which a connection stays open after the proxy has announced its end with GOAWAY.
/// Requests that are on the way are still answered.
const FAREWELL_TIME: Duration = Duration::from_secs(2);

/// The reason why an HTTP/2 connection ended.
enum ConnectionEnd {
    /// The connection has ended, and the client and the proxy know this.
    Closed,
    /// The client violated the protocol, and the proxy has sent the error to the client.
    Broken,
    /// The client accepted no bytes for longer than the time limit.
    Stalled,
}

/// Facts about a connection that each of its streams needs.
#[derive(Clone)]
pub(crate) struct SharedByStreams {
    peer: SocketAddr,
    scheme: Scheme,
    /// The address to which the client connected.
    reached: Option<SocketAddr>,
    /// The intercepted CONNECT around the connection.
    inside: Option<Rc<Inside>>,
    /// The client's certificate and the server name of the client's TLS handshake.
    presented: Option<Rc<HandshakeFacts>>,
    /// Number of the node of the fleet that is the client. `None` for every other client.
    node: Option<usize>,
}

/// State that the tasks of a connection's streams share.
struct Streams {
    activity: Activity,
    open: Cell<u32>,
    /// Number of bytes in the heads of all requests in progress, uncompressed.
    heads: Cell<usize>,
    /// Time when the last stream ended, or when the connection began.
    since: Cell<Instant>,
    /// Number of bytes that this connection has reserved in the memory budget `requests`.
    held: Cell<usize>,
    requests: ByteBudget,
    resets: RefCell<Resets>,
    wire: Rc<Wire>,
}

impl Streams {
    fn new(now: Instant, activity: Activity, requests: ByteBudget, wire: Rc<Wire>) -> Self {
        Self {
            activity,
            open: Cell::new(0),
            heads: Cell::new(0),
            since: Cell::new(now),
            held: Cell::new(0),
            requests,
            resets: RefCell::new(Resets::new(now)),
            wire,
        }
    }

    /// Starts a request whose head has `head` bytes. Returns `None` if a limit forbids the request.
    fn take(self: &Rc<Self>, stream: u32, head: usize) -> Option<OpenStream> {
        let (open, heads) = (self.open.get(), self.heads.get());
        if open >= MAX_REQUESTS || (open > 0 && heads + head > MAX_HEAD_BYTES) {
            return None;
        }
        let for_head = if head > SMALL_HEAD { COPIES_OF_HEAD * head } else { 0 };
        let bytes = if open == 0 { for_head } else { STREAM_BYTES + for_head };
        let held = self
            .requests
            .take_share(self.held.get(), bytes)
            .filter(|_| self.activity.begin_work())?;
        self.open.set(open + 1);
        self.heads.set(heads + head);
        self.held.set(self.held.get() + bytes);
        Some(OpenStream { streams: Rc::clone(self), stream, head, held })
    }
}

/// A stream in progress. Dropping this value ends the stream.
pub(crate) struct OpenStream {
    streams: Rc<Streams>,
    stream: u32,
    head: usize,
    held: HeldBytes,
}

impl OpenStream {
    fn wire(&self) -> &Rc<Wire> {
        &self.streams.wire
    }

    /// Notes that the client reset this stream. If the client resets streams too often, its
    /// connection closes.
    pub(crate) fn given_up(&self) {
        if !self.streams.resets.borrow_mut().may_reset(Instant::now()) {
            self.wire().flood_notice.notify_one();
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let streams = &self.streams;
        streams.open.set(streams.open.get() - 1);
        streams.heads.set(streams.heads.get() - self.head);
        streams.held.set(streams.held.get() - self.held.bytes());
        streams.wire.end_request(self.stream);
        let now = Instant::now();
        streams.since.set(now);
        if streams.open.get() == 0 {
            streams.activity.begin_wait(now);
        }
    }
}

/// Serves a client that speaks HTTP/2. The client's first bytes must be the HTTP/2 preface. The
/// future keeps no state of HTTP/1.1.
pub(crate) fn serve(
    worker: &Rc<Worker>,
    connection: Box<ClientConnection>,
    peer: SocketAddr,
    activity: &Activity,
) -> impl Future<Output = ()> {
    worker.counters.add(Counter::Http2Connections, 1);
    let ClientConnection { mut stream, mut buffer, inside, presented, node, .. } = *connection;
    let shared = SharedByStreams {
        peer,
        scheme: stream.scheme(),
        reached: stream.with_socket(|socket| socket.local_addr()).ok(),
        inside: inside.map(Rc::new),
        presented,
        node,
    };
    async move {
        match serve_streams(worker, (&mut stream, &mut buffer), &shared, activity).await {
            ConnectionEnd::Closed => {}
            ConnectionEnd::Broken => stream.linger().await,
            ConnectionEnd::Stalled => {
                // Without the TCP reset, the kernel would try to deliver bytes that the client does
                // not read.
                let _ = stream.with_socket(tokio::net::TcpStream::set_zero_linger);
            }
        }
    }
}

async fn serve_streams(
    worker: &Rc<Worker>,
    (stream, buffer): (&mut Transport, &mut BytesMut),
    shared: &SharedByStreams,
    activity: &Activity,
) -> ConnectionEnd {
    let stalled = Stalled::default();
    let wire = Rc::new(Wire::new(Instant::now()));
    let gatherer = FrameGatherer::new(stream, Rc::clone(&stalled), Rc::clone(&wire));
    let gatherer = Rc::new(RefCell::new(gatherer));
    let io = WatchedIo::new(Rc::clone(&gatherer), buffer, Rc::clone(&wire));
    let connection = match Box::pin(handshake(worker, io)).await {
        Ok(connection) => connection,
        Err(end) => return end,
    };
    let requests = worker.shared.requests.clone();
    let streams = Rc::new(Streams::new(Instant::now(), activity.clone(), requests, wire));
    gatherer.borrow_mut().ignore_flush();
    let mut frames = Frames { connection, gatherer };
    drive(worker, &mut frames, &stalled, &streams, |request, respond, open| {
        let worker = Rc::clone(worker);
        let served = stream::serve(worker, shared.clone(), request, respond, open);
        // The runtime moves the future of a new task several times, and moves a box cheaply.
        tokio::task::spawn_local(Box::pin(served));
    })
    .await
}

/// Does the HTTP/2 handshake. Returns a box, because futures contain a moved value several times.
async fn handshake<'a>(
    worker: &Worker,
    io: WatchedIo<'a>,
) -> Result<Box<Connection<WatchedIo<'a>, Bytes>>, ConnectionEnd> {
    let handshake = builder(&worker.settings().limits).handshake(io);
    match timeout(worker.settings().client_head, handshake).await {
        Ok(Ok(connection)) => Ok(Box::new(connection)),
        Ok(Err(_)) => Err(ConnectionEnd::Broken),
        Err(_) => Err(ConnectionEnd::Stalled),
    }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(MAX_WAITING_RESETS)
        .max_local_error_reset_streams(Some(MAX_BROKEN_STREAMS));
    builder
}

type Respond = h2::server::SendResponse<Bytes>;

/// A connection with its HTTP/2 library. Sends all frames that are ready in one write.
struct Frames<'a> {
    connection: Box<Connection<WatchedIo<'a>, Bytes>>,
    gatherer: Rc<RefCell<FrameGatherer<'a>>>,
}

impl Frames<'_> {
    /// Accepts the next request. Returns `None` after the end of the connection. While no request
    /// arrives, sends the frames of all streams.
    async fn accept(&mut self) -> Option<Result<(http::Request<RecvStream>, Respond), h2::Error>> {
        poll_fn(|context| {
            let accepted = self.connection.poll_accept(context);
            if accepted.is_pending()
                && let Poll::Ready(Err(_)) = self.gatherer.borrow_mut().poll_send(context)
            {
                return Poll::Ready(Some(Err(Reason::INTERNAL_ERROR.into())));
            }
            accepted
        })
        .await
    }
}

/// Processes frames until the connection ends. Passes each new stream to `start`.
async fn drive(
    worker: &Worker,
    frames: &mut Frames<'_>,
    stalled: &Stalled,
    streams: &Rc<Streams>,
    start: impl Fn(http::Request<RecvStream>, Respond, OpenStream),
) -> ConnectionEnd {
    let (idle, write) = (worker.settings().client_idle, worker.settings().client_write);
    let mut course = worker.course.clone();
    let mut patience = ReadTimer::new();
    let mut leaving: Option<Instant> = None;
    let (mut calmed, mut wide) = (false, None);
    loop {
        let now = Instant::now();
        let stalled_until = stalled.get().map(|since| since + write);
        let quiet_until = (streams.open.get() == 0).then(|| match leaving {
            Some(began) => began.max(streams.since.get()) + FAREWELL_TIME,
            None => streams.since.get() + idle,
        });
        match (stalled_until, quiet_until) {
            (Some(until), _) if until <= now => return ConnectionEnd::Stalled,
            (_, Some(until)) if until <= now && leaving.is_some() => return ConnectionEnd::Closed,
            (_, Some(until)) if until <= now => {
                frames.connection.graceful_shutdown();
                leaving = Some(now);
            }
            _ => {}
        }
        // Each timeout that starts after `now` lasts at least as long as the shortest of `idle`,
        // `write` and `FAREWELL_TIME`. So it cannot end before `shortest`, and the loop need not
        // wake earlier.
        let shortest = now + idle.min(write).min(FAREWELL_TIME);
        let deadlines =
            [stalled_until, quiet_until].into_iter().flatten().filter(|until| *until > now);
        let look_again = deadlines.fold(shortest, Instant::min);
        tokio::select! {
            accepted = frames.accept() => match accepted {
                Some(Ok((request, mut respond))) => {
                    let stream = respond.stream_id().as_u32();
                    if wide.is_none() && !request.body().is_end_stream() {
                        wide = streams.requests.take_share(0, (CONNECTION_WINDOW - USUAL_WINDOW) as usize);
                        if wide.is_some() {
                            frames.connection.set_target_window_size(CONNECTION_WINDOW);
                        }
                    }
                    match streams.take(stream, size_of_head(&request)) {
                        Some(open) => start(request, respond, open),
                        None => respond.send_reset(Reason::REFUSED_STREAM),
                    }
                }
                Some(Err(_)) => return ConnectionEnd::Broken,
                // If received bytes were unread at the close, the kernel would reset the
                // connection. The client could then lose the last frames. So `serve` first reads
                // the rest.
                None if calmed => return ConnectionEnd::Broken,
                None => return ConnectionEnd::Closed,
            },
            () = streams.wire.flood_notice.notified(), if !calmed => {
                calmed = true;
                worker.counters.add(Counter::Http2Floods, 1);
                frames.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            _ = course.wait_for(|course| *course != Course::Serve), if leaving.is_none() => {
                frames.connection.graceful_shutdown();
                leaving = Some(Instant::now());
            }
            () = patience.until(look_again) => {}
        }
    }
}

/// Returns the size in bytes of a request head with its target. Each field counts 32 bytes more
/// than its text, as in HPACK (RFC 7541 §4.1).
fn size_of_head(request: &http::Request<RecvStream>) -> usize {
    let authority = request.uri().authority().map_or(0, |authority| authority.as_str().len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let sizes = fields(request.headers()).map(|(name, value)| name.len() + value.len() + 32);
    authority + path + sizes.sum::<usize>()
}

/// Number of streams that a client may reset at the same moment. A browser that leaves a page
/// resets all its streams.
const RESETS_AT_ONCE: u32 = 200;

/// Interval after which a client may reset one more stream. The client can save up at most
/// [`RESETS_AT_ONCE`] resets.
const TIME_OF_RESET: Duration = Duration::from_millis(50);

/// Counts how many more streams a client may reset. A reset stream no longer counts as open. But it
/// may have caused a look-up in the store or a request to an origin (CVE-2023-44487).
#[derive(Debug)]
struct Resets {
    left: u32,
    /// `left` contains the resets that the client has regained until this time.
    at: Instant,
}

impl Resets {
    fn new(now: Instant) -> Self {
        Self { left: RESETS_AT_ONCE, at: now }
    }

    fn may_reset(&mut self, now: Instant) -> bool {
        let regained =
            now.saturating_duration_since(self.at).as_millis() / TIME_OF_RESET.as_millis();
        let regained = u32::try_from(regained).unwrap_or(u32::MAX);
        if regained >= RESETS_AT_ONCE - self.left {
            *self = Self::new(now);
        } else {
            self.left += regained;
            self.at += TIME_OF_RESET * regained;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::places::Places;

    #[test]
    fn heads_of_one_connection_are_bounded_together() {
        let streams = streams_within(ByteBudget::new(1 << 30));
        assert!(
            streams.take(1, MAX_HEAD_BYTES + 1).is_some(),
            "the first is taken whatever it has"
        );
        let first = streams.take(1, MAX_HEAD_BYTES - 10);
        assert!(streams.take(3, 10).is_some() && streams.take(3, 11).is_none());
        drop(first);
        assert!(streams.take(3, 11).is_some());
    }

    #[test]
    fn streams_beyond_the_first_are_bounded_over_all_connections() {
        let budget = 100 * STREAM_BYTES;
        let requests = ByteBudget::new(budget);
        let connections: Vec<_> = (0..15).map(|_| streams_within(requests.clone())).collect();
        let take = |streams: &Rc<Streams>| {
            (0..200).filter_map(|_| streams.take(1, 100)).collect::<Vec<_>>()
        };
        let open: Vec<_> = connections.iter().map(take).collect();
        let count: usize = open.iter().map(Vec::len).sum();
        assert!((50..=115).contains(&count), "{count} streams");
        let other = streams_within(requests.clone());
        let modest = [other.take(1, 100), other.take(3, 100)];
        assert!(modest.iter().all(Option::is_some), "a modest client has room beside greedy ones");
        let large = other.take(5, 60 << 10);
        assert!(large.is_none(), "a large head has its price");
        drop((open, modest));
        assert_eq!(requests.free(), budget);
    }

    fn streams_within(requests: ByteBudget) -> Rc<Streams> {
        let Ok((place, _)) = Places::new(1, 1, 1).take(None) else { panic!("a place is free") };
        let (now, activity) = (Instant::now(), place.activity().clone());
        Rc::new(Streams::new(now, activity, requests, Rc::new(Wire::new(now))))
    }

    #[test]
    fn a_page_left_is_fine_and_a_flood_is_not() {
        let start = Instant::now();
        let mut resets = Resets::new(start);
        let mut taken =
            |count: u32, at: Instant| (0..count).filter(|_| resets.may_reset(at)).count();
        assert_eq!(taken(RESETS_AT_ONCE + 10, start), RESETS_AT_ONCE as usize);
        assert_eq!(taken(10, start + TIME_OF_RESET * 3), 3);
        assert_eq!(
            taken(RESETS_AT_ONCE + 10, start + TIME_OF_RESET * (RESETS_AT_ONCE + 3)),
            RESETS_AT_ONCE as usize
        );
    }
}
