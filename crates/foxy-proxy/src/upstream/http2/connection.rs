//! One HTTP/2 connection to an origin. Several requests share the connection. One task runs it.

use crate::core::frames::FirstField;
use crate::core::transport::Transport;
use crate::upstream::http2::meter::{Flood, Meter, Metered};
use bytes::Bytes;
use foxy_http::Limits;
use h2::SendStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Largest number of requests on one connection at the same time, even if the origin allows more.
const MAX_STREAMS: u32 = 64;

/// Flow-control window of one stream in bytes: how many bytes of a response body may wait until the
/// proxy reads them.
const STREAM_WINDOW: u32 = 1 << 20;

/// Flow-control window of a connection in bytes. It is the sum of all stream windows, so that an
/// unread response never blocks another response.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

/// Number of bytes of one request body that may wait in the HTTP/2 library.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// The HTTP/2 library remembers the streams that were reset recently. It remembers at most
/// [`MAX_REMEMBERED_RESETS`] streams, each for this time. Frames that still arrive for such a
/// stream are not an error.
const RESET_MEMORY_TIME: Duration = Duration::from_secs(5);
const MAX_REMEMBERED_RESETS: usize = 256;

/// Time limit for closing a connection in an orderly way.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// An HTTP/2 connection with an origin, which several exchanges share.
pub(crate) struct Http2Connection {
    /// The library's handle for sending requests. `None` once no more requests may use the
    /// connection.
    requests: RefCell<Option<SendRequest<Bytes>>>,
    meter: Rc<RefCell<Meter>>,
    open: Cell<usize>,
    served: Cell<bool>,
    idle_since: Cell<Instant>,
    changed: Rc<Notify>,
}

/// A *lease*: the permit for one request on a shared connection. Dropping the lease ends the
/// request.
pub(crate) struct Lease {
    connection: Rc<Http2Connection>,
    kept: bool,
    stream: Option<u32>,
}

/// Starts HTTP/2 on a connection, and starts the task that runs it. Notifies `changed` when the
/// connection may accept another request. Calls `ended` when the connection accepts no more
/// requests. A connection without requests closes after the time `idle`.
pub(crate) async fn begin(
    stream: Transport,
    limits: &Limits,
    idle: Duration,
    changed: Rc<Notify>,
    ended: impl FnOnce() + 'static,
) -> Result<Rc<Http2Connection>, h2::Error> {
    let meter = Rc::new(RefCell::new(Meter::new(Instant::now())));
    let stream = Metered::new(stream, Rc::clone(&meter));
    let (requests, carried) = builder(limits).handshake(stream).await?;
    let connection = Rc::new(Http2Connection {
        requests: RefCell::new(Some(requests)),
        meter,
        open: Cell::new(0),
        served: Cell::new(false),
        idle_since: Cell::new(Instant::now()),
        changed,
    });
    let carrying = Rc::clone(&connection);
    tokio::task::spawn_local(async move {
        carry(carried, &carrying, idle).await;
        carrying.retire();
        ended();
        carrying.changed.notify_waiters();
    });
    Ok(connection)
}

fn builder(limits: &Limits) -> Builder {
    let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(head)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .reset_stream_duration(RESET_MEMORY_TIME)
        .max_concurrent_reset_streams(MAX_REMEMBERED_RESETS)
        // Before the origin has sent its limit on streams, the library sends only one request and
        // delays the others.
        .initial_max_send_streams(1);
    builder
}

/// Runs a connection until the origin closes it, or until it has had no request for the time
/// `idle`.
async fn carry(carried: Connection<Metered, Bytes>, connection: &Http2Connection, idle: Duration) {
    let mut carried = pin!(carried);
    let mut look = Instant::now() + idle;
    let mut known = Room::default();
    loop {
        let step = poll_fn(|context| {
            let done = carried.as_mut().poll(context);
            connection.announce(&mut known, carried.max_concurrent_send_streams());
            done.map(|_| ())
        });
        tokio::select! {
            biased;
            () = step => return,
            () = tokio::time::sleep_until(look) => {
                let now = Instant::now();
                match (connection.open.get(), connection.is_retired()) {
                    (0, true) => return,
                    (0, false) if connection.idle_since.get() + idle <= now => {
                        connection.retire();
                        look = now + CLOSING_TIME;
                    }
                    (0, false) => look = connection.idle_since.get() + idle,
                    _ => look = now + idle,
                }
            }
        }
    }
}

/// The values that decide whether a connection accepts another request. When one of these values
/// changes, the connection's task wakes the exchanges that wait.
#[derive(Default, PartialEq, Eq)]
struct Room {
    settled: bool,
    leaving: bool,
    most: usize,
}

impl Http2Connection {
    /// Reserves a permit for one request. Returns `None` if the connection accepts no more requests
    /// now.
    pub(crate) fn lease(self: &Rc<Self>) -> Option<Lease> {
        let most = {
            let (requests, meter) = (self.requests.borrow(), self.meter.borrow());
            let allowed =
                requests.as_ref().filter(|_| !meter.leaving())?.current_max_send_streams();
            if meter.settled() { allowed.min(MAX_STREAMS as usize) } else { MAX_STREAMS as usize }
        };
        if self.open.get() >= most {
            return None;
        }
        self.open.set(self.open.get() + 1);
        Some(Lease { connection: Rc::clone(self), kept: self.served.replace(true), stream: None })
    }

    /// Accepts no more requests on this connection. It closes after its last request.
    pub(crate) fn retire(&self) {
        drop(self.requests.take());
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.requests.borrow().is_none()
    }

    /// Returns true if the connection will accept more requests, now or after other requests have
    /// ended.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired() && !self.meter.borrow().leaving()
    }

    /// Returns the time when the last request ended. Returns `None` while a request is in progress,
    /// or if the connection accepts no more requests.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.open.get() == 0 && !self.is_retired()).then(|| self.idle_since.get())
    }

    /// If the number of permits for requests has changed, wakes the exchanges that wait for a
    /// permit.
    fn announce(&self, known: &mut Room, most: usize) {
        let room = {
            let meter = self.meter.borrow();
            Room { settled: meter.settled(), leaving: meter.leaving(), most }
        };
        if *known != room {
            *known = room;
            self.changed.notify_waiters();
        }
    }
}

impl Lease {
    /// Returns true if the connection has served another request before.
    pub(crate) const fn kept(&self) -> bool {
        self.kept
    }

    /// Sends the head of a request. `ended` means that the request has no body. Fails if the
    /// connection accepts no more requests.
    pub(crate) fn send(
        &mut self,
        request: http::Request<()>,
        ended: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let connection = &self.connection;
        let requests = connection.requests.borrow().clone();
        let mut requests = requests.ok_or(h2::Reason::REFUSED_STREAM)?;
        let sent = requests.send_request(request, ended);
        match &sent {
            Ok((_, stream)) => {
                let stream = stream.stream_id().as_u32();
                self.stream = Some(stream);
                connection.meter.borrow_mut().opened(stream);
            }
            Err(_) => connection.retire(),
        }
        sent
    }

    pub(crate) fn read_head(&self) {
        if let Some(stream) = self.stream {
            self.connection.meter.borrow_mut().read_head(stream);
        }
    }

    /// Returns the kind of the first field in the last head or trailers that arrived on the stream.
    pub(crate) fn last_block(&self) -> FirstField {
        let meter = self.connection.meter.borrow();
        self.stream.map_or(FirstField::Regular, |stream| meter.last_block(stream))
    }

    /// If the connection was closed because the origin sent too many messages, returns the kind of
    /// these messages: frames or response heads.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.connection.meter.borrow().flood()
    }

    /// Notes that an answer did not arrive in time. If nothing has arrived on the connection since
    /// `asked`, the connection may be dead, so no more requests use it.
    pub(crate) fn timed_out(&self, asked: Instant) {
        if self.connection.meter.borrow().heard() <= asked {
            self.connection.retire();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let connection = &self.connection;
        if let Some(stream) = self.stream {
            connection.meter.borrow_mut().closed(stream);
        }
        connection.open.set(connection.open.get() - 1);
        connection.idle_since.set(Instant::now());
        connection.changed.notify_one();
    }
}
