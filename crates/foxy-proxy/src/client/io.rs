//! A client's connection, and its reading half for HTTP/1.1. The writing half is in `http1_sender`.

use crate::client::http1_sender::Http1Sender;
use crate::core::byte_budget::{ByteBudget, HeldBytes};
use crate::core::tls::HandshakeFacts;
use crate::core::transport::{ReadSide, Transport, WriteSide};
use crate::intercept::Inside;
use crate::request::answered::Progress;
use bytes::BytesMut;
use foxy_http::{DecodeError, Limits, RequestDecoder, RequestEvent};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes of buffer space for one read.
const READ_BYTES: usize = 16 << 10;

/// A request head of up to this many bytes does not count against the memory budget for requests.
pub(crate) const SMALL_HEAD: usize = 8 << 10;

/// Number of copies of a request head in memory: the received bytes, the parsed head, and the head
/// that the proxy sends to the origin.
pub(crate) const COPIES_OF_HEAD: usize = 3;

/// The reason why the proxy can read nothing more from a client's connection or stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The client closed the connection between requests.
    Closed,
    /// The client closed or reset the connection within a request, or reset the stream.
    Broken,
    Timeout,
    /// The head is large, and the memory budget for requests has no room for it.
    NoRoom,
    Malformed(DecodeError),
}

/// A timer that limits the time of reads. When a read moves the deadline, the timer is not changed
/// until it fires. Changing the timer for each read would cost more time than parsing the bytes.
pub(crate) struct ReadTimer {
    sleep: Pin<Box<Sleep>>,
}

impl ReadTimer {
    pub(crate) fn new() -> Self {
        Self { sleep: Box::pin(sleep_until(Instant::now() + Duration::from_secs(1))) }
    }

    pub(crate) async fn until(&mut self, deadline: Instant) {
        loop {
            if self.sleep.deadline() > deadline {
                self.sleep.as_mut().reset(deadline);
            }
            self.sleep.as_mut().await;
            let now = Instant::now();
            if now >= deadline {
                return;
            }
            self.sleep.as_mut().reset(deadline);
        }
    }
}

/// A connection with a client before HTTP/2 is known, or an HTTP/1.1 connection.
pub(crate) struct ClientConnection {
    pub(crate) stream: Transport,
    /// The intercepted CONNECT whose tunnel contains this connection, if there is one.
    pub(crate) inside: Option<Inside>,
    /// The client's certificate and the server name of the client's TLS handshake.
    pub(crate) presented: Option<Rc<HandshakeFacts>>,
    /// Number of the node of the fleet that is the client. `None` for every other client.
    pub(crate) node: Option<usize>,
    /// The destination that the client of a transparent listener chose.
    pub(crate) aimed_at: Option<SocketAddr>,
    /// True if the client must receive no HTTP answer, because it expects another protocol. All
    /// bytes in the buffer then belong to a tunnel.
    pub(crate) is_muted: bool,
    decoder: RequestDecoder,
    pub(crate) buffer: BytesMut,
    /// The part of the memory budget for requests that a large head has reserved.
    room: Option<HeldBytes>,
    limits: Limits,
    patience: ReadTimer,
    pub(crate) progress: Rc<Progress>,
}

/// Reads the body of the current request from an HTTP/1.1 connection.
pub(crate) struct Http1Receiver<'a> {
    half: ReadSide<'a>,
    decoder: &'a mut RequestDecoder,
    buffer: &'a mut BytesMut,
    room: &'a mut Option<HeldBytes>,
    limits: Limits,
    patience: &'a mut ReadTimer,
}

impl ClientConnection {
    pub(crate) fn new(stream: Transport, limits: Limits) -> Self {
        let decoder = RequestDecoder::new(limits);
        let (buffer, patience, progress) = (BytesMut::new(), ReadTimer::new(), Rc::default());
        Self {
            stream,
            inside: None,
            presented: None,
            node: None,
            aimed_at: None,
            is_muted: false,
            decoder,
            buffer,
            room: None,
            limits,
            patience,
            progress,
        }
    }

    /// Returns true if the connection can move to another process between two requests.
    pub(crate) const fn can_move(&self) -> bool {
        matches!(self.stream, Transport::Plain(_)) && self.inside.is_none()
    }

    /// Returns true if the decoder is at the end of a CONNECT, which has no body. All further bytes
    /// belong to the tunnel.
    pub(crate) fn is_at_tunnel(&mut self) -> bool {
        self.is_muted || matches!(self.decoder.next(&mut self.buffer), Ok(Some(RequestEvent::End)))
    }

    /// Frees the memory of a large head. The caller must call this function between two requests.
    pub(crate) fn rest(&mut self) {
        if self.buffer.is_empty() {
            self.room = None;
            if self.buffer.capacity() > 2 * READ_BYTES {
                self.buffer = BytesMut::new();
            }
        }
    }

    pub(crate) fn split(&mut self, write_limit: Duration) -> (Http1Receiver<'_>, Http1Sender<'_>) {
        let Self { stream, decoder, buffer, room, limits, patience, progress, .. } = self;
        let (half, write) = stream.split();
        let write = if self.is_muted { WriteSide::Muted } else { write };
        let receiver = Http1Receiver { half, decoder, buffer, room, limits: *limits, patience };
        (receiver, Http1Sender::new(write, write_limit, progress))
    }
}

impl Http1Receiver<'_> {
    /// Returns the bytes that were read but are not part of an accepted request.
    pub(crate) fn unread(&self) -> &[u8] {
        let refused = self.decoder.refused();
        if refused.is_empty() { self.buffer } else { refused }
    }

    /// Returns the next event of a request, such as its head or a piece of its body. Reads nothing:
    /// returns `None` if the bytes that were already read contain no complete event.
    pub(crate) fn ready(&mut self) -> Result<Option<RequestEvent>, ReadEnd> {
        self.decoder.next(self.buffer).map_err(ReadEnd::Malformed)
    }

    /// Returns true if the buffer contains the beginning of an event.
    pub(crate) fn has_begun(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads more bytes of a request head, until `deadline`. A large head must fit in the memory
    /// budget `requests`.
    pub(crate) async fn read_head(
        &mut self,
        deadline: Instant,
        requests: &ByteBudget,
    ) -> Result<(), ReadEnd> {
        if self.buffer.len() > SMALL_HEAD && self.room.is_none() {
            let room = requests.take_share(0, COPIES_OF_HEAD * self.limits.head);
            *self.room = Some(room.ok_or(ReadEnd::NoRoom)?);
        }
        self.read(deadline).await
    }

    pub(crate) async fn read(&mut self, deadline: Instant) -> Result<(), ReadEnd> {
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 4 {
            self.buffer.reserve(READ_BYTES);
        }
        let read = tokio::select! {
            biased;
            read = self.half.read_buf(self.buffer) => read,
            () = self.patience.until(deadline) => return Err(ReadEnd::Timeout),
        };
        match read {
            Ok(0) if self.decoder.eof(self.buffer).is_ok() => Err(ReadEnd::Closed),
            Ok(0) | Err(_) => Err(ReadEnd::Broken),
            Ok(_) => Ok(()),
        }
    }

    /// Returns the next event of a request, such as a piece of its body. `limit` is the time limit
    /// for each read.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        loop {
            if let Some(event) = self.ready()? {
                return Ok(event);
            }
            self.read(Instant::now() + limit).await?;
        }
    }
}
