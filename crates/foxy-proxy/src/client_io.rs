//! A client's connection: what is read from it, what is written to it, and how long either may take.

use crate::client_sides::{ReadSide, WriteSide};
use crate::upstream::Transport;
use bytes::{Buf, Bytes, BytesMut};
use foxy_http::{DecodeError, Limits, RequestDecoder, RequestEvent};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Bytes a read has room for.
const READ: usize = 16 << 10;

/// Slices given to one write.
const SLICES: usize = 8;

/// Why nothing more comes from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// It closed between requests.
    Closed,
    /// It closed or reset within a request.
    Broken,
    /// It took too long.
    Timeout,
    /// What it sent is no request.
    Malformed(DecodeError),
}

/// Why a client gets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// It closed or reset the connection.
    Gone,
    /// It took nothing for too long.
    Timeout,
}

/// Whether a client has taken all that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    Partly,
}

/// A timer that is armed anew only when it fires: re-arming for each read would cost more than the read's parsing.
pub(crate) struct Patience {
    sleep: Pin<Box<Sleep>>,
}

impl Patience {
    fn new() -> Self {
        Self { sleep: Box::pin(sleep_until(Instant::now() + Duration::from_secs(1))) }
    }

    /// Waits until `deadline`.
    async fn until(&mut self, deadline: Instant) {
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
    decoder: RequestDecoder,
    pub(crate) buffer: BytesMut,
    patience: Patience,
}

/// Its reading half.
pub(crate) struct Receiver<'a> {
    half: ReadSide<'a>,
    decoder: &'a mut RequestDecoder,
    buffer: &'a mut BytesMut,
    patience: &'a mut Patience,
}

/// Its writing half.
pub(crate) struct Sender<'a> {
    half: WriteSide<'a>,
    limit: Duration,
    /// Bytes written.
    pub(crate) sent: u64,
}

impl ClientConnection {
    pub(crate) fn new(stream: Transport, limits: Limits) -> Self {
        let decoder = RequestDecoder::new(limits);
        Self { stream, decoder, buffer: BytesMut::new(), patience: Patience::new() }
    }

    pub(crate) fn split(&mut self, write_limit: Duration) -> (Receiver<'_>, Sender<'_>) {
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
        let Self { decoder, buffer, patience, .. } = self;
        (
            Receiver { half: read, decoder, buffer, patience },
            Sender { half: write, limit: write_limit, sent: 0 },
        )
    }
}

impl Receiver<'_> {
    /// The next part of a request that is already here.
    pub(crate) fn ready(&mut self) -> Result<Option<RequestEvent>, ReadEnd> {
        self.decoder.next(self.buffer).map_err(ReadEnd::Malformed)
    }

    /// Whether bytes of a request are here that make no part yet.
    pub(crate) fn has_begun(&self) -> bool {
        !self.buffer.is_empty()
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

impl Sender<'_> {
    /// Writes all of `pieces`, in as few calls as the client takes them.
    pub(crate) async fn write(&mut self, pieces: &mut [Bytes]) -> Result<(), WriteEnd> {
        while self.write_now(pieces)? == Taken::Partly {
            self.writable().await?;
        }
        Ok(())
    }

    /// Writes `pieces` until the client takes nothing for as long as `patience` says when that begins; what is left of
    /// them stays in `pieces`.
    pub(crate) async fn write_while_taken(
        &mut self,
        pieces: &mut [Bytes],
        patience: impl Fn() -> Duration,
    ) -> Result<Taken, WriteEnd> {
        while self.write_now(pieces)? == Taken::Partly {
            match tokio::time::timeout(patience(), self.half.writable()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(WriteEnd::Gone),
                Err(_) => return Ok(Taken::Partly),
            }
        }
        Ok(Taken::All)
    }

    /// Writes what the client takes without waiting.
    fn write_now(&mut self, pieces: &mut [Bytes]) -> Result<Taken, WriteEnd> {
        let mut first = 0;
        loop {
            while pieces.get(first).is_some_and(Bytes::is_empty) {
                first += 1;
            }
            if first == pieces.len() {
                return taken(self.half.try_flush());
            }
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&pieces[first..]) {
                *slice = IoSlice::new(piece);
                count += 1;
            }
            match self.half.try_write_vectored(&slices[..count]) {
                Ok(written) => {
                    self.sent += written as u64;
                    advance(&mut pieces[first..], written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Taken::Partly),
                Err(_) => return Err(WriteEnd::Gone),
            }
        }
    }

    /// Makes the coming close a reset, for a client that would take a plain one for the end of the body.
    pub(crate) fn end_with_reset(&self) {
        // Should the system not do it, the connection is closed as every other.
        let _ = self.half.set_zero_linger();
    }

    /// Waits until the client takes more.
    pub(crate) async fn writable(&mut self) -> Result<(), WriteEnd> {
        match tokio::time::timeout(self.limit, self.half.writable()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(WriteEnd::Gone),
            Err(_) => Err(WriteEnd::Timeout),
        }
    }
}

fn taken(flushed: io::Result<()>) -> Result<Taken, WriteEnd> {
    match flushed {
        Ok(()) => Ok(Taken::All),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Taken::Partly),
        Err(_) => Err(WriteEnd::Gone),
    }
}

fn advance(pieces: &mut [Bytes], mut written: usize) {
    for piece in pieces {
        let taken = written.min(piece.len());
        piece.advance(taken);
        written -= taken;
    }
}
