//! One HTTP/2 connection to an origin: its beginning, the task that carries it, and the requests
//! that share it.

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

/// Requests on one connection at a time, even if the origin allows more.
const MAX_STREAMS: u32 = 64;

/// Bytes of a response that may wait to be read.
const STREAM_WINDOW: u32 = 1 << 20;

/// The windows of all streams, so that no stalled stream takes the room of another.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;

/// Bytes of a request's body that may wait within the library.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Time and number of remembered reset streams, so that their late frames are no error.
const RESET_MEMORY_TIME: Duration = Duration::from_secs(5);
const MAX_REMEMBERED_RESETS: usize = 256;

/// Time for the end of a connection.
const CLOSING_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Http2Connection {
    /// `None` once no further request is to go out.
    requests: RefCell<Option<SendRequest<Bytes>>>,
    meter: Rc<RefCell<Meter>>,
    open: Cell<usize>,
    served: Cell<bool>,
    idle_since: Cell<Instant>,
    changed: Rc<Notify>,
}

/// A request on a connection, until dropped.
pub(crate) struct Lease {
    connection: Rc<Http2Connection>,
    kept: bool,
    stream: Option<u32>,
}

/// Begins HTTP/2 on a connection and starts the task that carries it. `changed` is notified when
/// there may be room for another request. `ended` is called when no further request can go out.
/// `idle` is how long the connection is kept without a request.
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
        // Until the origin has told its limit, the library holds back all streams but the first.
        .initial_max_send_streams(1);
    builder
}

/// Carries a connection until the origin ends it, or we do after `idle` without requests.
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

/// Room on a connection, as its waiters were told.
#[derive(Default, PartialEq, Eq)]
struct Room {
    settled: bool,
    leaving: bool,
    most: usize,
}

impl Http2Connection {
    /// Room for one request.
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

    /// Takes no further request. The connection ends with its last request.
    pub(crate) fn retire(&self) {
        drop(self.requests.take());
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.requests.borrow().is_none()
    }

    /// Whether the connection takes further requests, perhaps once others have ended.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired() && !self.meter.borrow().leaving()
    }

    /// Since when no request is under way.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        (self.open.get() == 0 && !self.is_retired()).then(|| self.idle_since.get())
    }

    /// Wakes the waiters when the room differs from what they know.
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
    /// Whether the connection served another request before.
    pub(crate) const fn kept(&self) -> bool {
        self.kept
    }

    /// Sends a request's head. `ended` says that nothing follows it. Fails when the connection
    /// takes no further request.
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

    /// First field of the stream's last field block.
    pub(crate) fn last_block(&self) -> FirstField {
        let meter = self.connection.meter.borrow();
        self.stream.map_or(FirstField::Regular, |stream| meter.last_block(stream))
    }

    /// The flood that ended the connection.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.connection.meter.borrow().flood()
    }

    /// Nothing came in time. If nothing has come on the connection since `asked`, it takes no
    /// further request: the origin may be gone silently.
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
