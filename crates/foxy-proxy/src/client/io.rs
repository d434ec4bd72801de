//! A client's connection, and what is read from it as HTTP/1.1. What is written to it is in
//! `http1_sender`.

use crate::client::held_heads::{HELD_HEADS, SMALL_HEAD};
use crate::client::http1_sender::Http1Sender;
use crate::client::sides::{ReadSide, WriteSide};
use crate::core::transport::Transport;
use crate::core::waiting::{HeldBytes, Waiting};
use crate::intercept::Inside;
use crate::request::answered::Progress;
use bytes::BytesMut;
use foxy_http::{DecodeError, Limits, RequestDecoder, RequestEvent};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes a read has room for.
const READ: usize = 16 << 10;

/// Why nothing more comes from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// It closed between requests.
    Closed,
    /// It closed or reset within a request, or gave up its stream.
    Broken,
    /// It took too long.
    Timeout,
    /// Its head is large, and other large heads take all the room there is for them.
    NoRoom,
    /// What it sent is no request.
    Malformed(DecodeError),
}

/// A timer that is armed anew only when it fires: re-arming for each read would cost more than the
/// read's parsing.
pub(crate) struct ReadTimer {
    sleep: Pin<Box<Sleep>>,
}

impl ReadTimer {
    pub(crate) fn new() -> Self {
        Self { sleep: Box::pin(sleep_until(Instant::now() + Duration::from_secs(1))) }
    }

    /// Waits until `deadline`.
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

/// A connection.
pub(crate) struct ClientConnection {
    pub(crate) stream: Transport,
    /// Which CONNECT it is inside of, once that was intercepted.
    pub(crate) inside: Option<Inside>,
    decoder: RequestDecoder,
    pub(crate) buffer: BytesMut,
    /// The room that a large head takes.
    room: Option<HeldBytes>,
    limits: Limits,
    patience: ReadTimer,
    /// How far the answer in progress has come.
    pub(crate) progress: Rc<Progress>,
}

/// Its reading half.
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
        Self { stream, inside: None, decoder, buffer, room: None, limits, patience, progress }
    }

    /// Gives back what only a large head needed, if nothing of a request is here.
    pub(crate) fn rest(&mut self) {
        if self.buffer.is_empty() {
            self.room = None;
            if self.buffer.capacity() > 2 * READ {
                self.buffer = BytesMut::new();
            }
        }
    }

    pub(crate) fn split(&mut self, write_limit: Duration) -> (Http1Receiver<'_>, Http1Sender<'_>) {
        let (read, write) = match &mut self.stream {
            Transport::Plain(stream) => {
                let (read, write) = stream.split();
                (ReadSide::Plain(read), WriteSide::Plain(write))
            }
            Transport::Tls(stream) => {
                let stream: &RefCell<_> = stream;
                (ReadSide::Tls(stream), WriteSide::Tls(stream))
            }
        };
        let Self { decoder, buffer, room, limits, patience, progress, .. } = self;
        let receiver =
            Http1Receiver { half: read, decoder, buffer, room, limits: *limits, patience };
        (receiver, Http1Sender::new(write, write_limit, progress))
    }

    /// Whether the client has closed its side, or the whole connection.
    pub(crate) fn has_been_left(&self) -> bool {
        let end = self.stream.with_socket(|socket| {
            let mut byte = [MaybeUninit::uninit()];
            socket2::SockRef::from(socket).peek(&mut byte)
        });
        match end {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

impl Http1Receiver<'_> {
    /// What was read and makes no part of a request.
    pub(crate) fn unread(&self) -> &[u8] {
        let refused = self.decoder.refused();
        if refused.is_empty() { self.buffer } else { refused }
    }

    /// The next part of a request that is already here.
    pub(crate) fn ready(&mut self) -> Result<Option<RequestEvent>, ReadEnd> {
        self.decoder.next(self.buffer).map_err(ReadEnd::Malformed)
    }

    /// Whether bytes of a request are here that make no part yet.
    pub(crate) fn has_begun(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads more of a head, until `deadline`. A large one must have room among `requests`.
    pub(crate) async fn read_head(
        &mut self,
        deadline: Instant,
        requests: &Waiting,
    ) -> Result<(), ReadEnd> {
        if self.buffer.len() > SMALL_HEAD && self.room.is_none() {
            let room = requests.take_share(0, HELD_HEADS * self.limits.head);
            *self.room = Some(room.ok_or(ReadEnd::NoRoom)?);
        }
        self.read(deadline).await
    }

    /// Reads more, until `deadline`.
    pub(crate) async fn read(&mut self, deadline: Instant) -> Result<(), ReadEnd> {
        if self.buffer.capacity() - self.buffer.len() < READ / 4 {
            self.buffer.reserve(READ);
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

    /// The next part of a request; each read may take `limit`.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        loop {
            if let Some(event) = self.ready()? {
                return Ok(event);
            }
            self.read(Instant::now() + limit).await?;
        }
    }
}
