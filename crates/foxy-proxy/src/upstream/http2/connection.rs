//! One HTTP/2 connection to an origin. Requests share the connection, and a task runs it.

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

/// Number of requests that may use one connection at a time, even if the origin allows more.
const MAX_STREAMS: u32 = 64;

/// Number of bytes of one response that may wait until the proxy reads them.
const STREAM_WINDOW: u32 = 1 << 20;

/// Flow-control window of a connection in bytes. It is the sum of the windows of all streams, so
/// that a stalled stream does not use the space of another stream.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

/// Number of bytes of a request's body that may wait in the HTTP/2 library.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Limits for remembered reset streams, by time and by number. Late frames for a remembered stream
/// are not an error.
const RESET_MEMORY_TIME: Duration = Duration::from_secs(5);
const MAX_REMEMBERED_RESETS: usize = 256;

/// Time limit for closing a connection.
const CLOSING_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Http2Connection {
    /// The sender of requests. `None` once the connection must not be used for more requests.
    requests: RefCell<Option<SendRequest<Bytes>>>,
    meter: Rc<RefCell<Meter>>,
    open: Cell<usize>,
    served: Cell<bool>,
    idle_since: Cell<Instant>,
    changed: Rc<Notify>,
}

/// The place of one request on a connection. Dropping the lease ends the request.
pub(crate) struct Lease {
    connection: Rc<Http2Connection>,
    kept: bool,
    stream: Option<u32>,
}

/// Starts HTTP/2 on a connection, and starts the task that runs it. Notifies `changed` when there
/// may be space for another request. Calls `ended` when the connection can no longer be used for
/// requests. A connection without requests closes after `idle`.
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
        // The origin has not sent its limit yet. Until then, the library sends only one stream and
        // delays the others.
        .initial_max_send_streams(1);
    builder
}

/// Runs a connection until the origin closes it, or until it has had no request for `idle`.
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

/// The values that decide whether a connection permits another request, as last announced to the
/// waiting exchanges.
#[derive(Default, PartialEq, Eq)]
struct Room {
    settled: bool,
    leaving: bool,
    most: usize,
}

impl Http2Connection {
    /// Reserves space for one request. Returns `None` if the connection permits no more requests
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

    /// Ends the connection for new requests. It closes after its last request.
    pub(crate) fn retire(&self) {
        drop(self.requests.take());
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.requests.borrow().is_none()
    }

    /// Returns true if the connection permits more requests, now or after other requests have
    /// ended.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired() && !self.meter.borrow().leaving()
    }

    /// Returns the time when the last request ended. Returns `None` while a request is in progress,
    /// or if the connection is retired.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.open.get() == 0 && !self.is_retired()).then(|| self.idle_since.get())
    }

    /// Wakes the waiting exchanges if the room for requests has changed.
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

    /// Sends the head of a request. `ended` means that no body follows. Fails if the connection
    /// permits no more requests.
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

    /// Returns the kind of the first field in the stream's last field block.
    pub(crate) fn last_block(&self) -> FirstField {
        let meter = self.connection.meter.borrow();
        self.stream.map_or(FirstField::Regular, |stream| meter.last_block(stream))
    }

    /// Returns the kind of flood that closed the connection, if there was one.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.connection.meter.borrow().flood()
    }

    /// Notes that an answer did not arrive in time. If the connection has received nothing since
    /// `asked`, it may be dead. It is then not used for more requests.
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
