//! A *tunnel* passes bytes in both directions between a client and an origin, after CONNECT or an
//! upgrade. It counts the bytes, and ends if no bytes pass for too long.

use bytes::{Buf, Bytes};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Largest number of bytes of one read. A direction keeps a buffer only while the receiving side
/// accepts no bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// The two ends of a tunnel, and the bytes that were read before it opened.
#[derive(Debug)]
pub struct Tunnel<'a, C, O> {
    /// The client's connection.
    pub client: &'a mut C,
    /// Bytes that the client sent after its request.
    pub from_client: Bytes,
    /// The origin's connection.
    pub origin: O,
    /// Bytes that the origin sent after its response head.
    pub from_origin: Bytes,
}

/// The reason why a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TunnelEnd {
    /// Both sides closed their connections.
    Closed,
    /// No bytes passed for longer than the idle timeout.
    Idle,
    /// The client or the origin reset its connection.
    Reset,
}

/// The number of bytes that passed through a tunnel, and the reason why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelReport {
    /// Bytes from the client to the origin.
    pub to_origin: u64,
    /// Bytes from the origin to the client.
    pub to_client: u64,
    /// The reason why the tunnel ended.
    pub end: TunnelEnd,
}

/// The time when bytes last passed. Both directions of a tunnel update it.
struct TunnelActivity {
    last: Cell<Instant>,
}

impl<C, O> Tunnel<'_, C, O>
where
    C: AsyncRead + AsyncWrite + Unpin,
    O: AsyncRead + AsyncWrite + Unpin,
{
    /// Passes bytes until both sides have closed, a side has reset its connection, or no bytes have
    /// passed for `idle`. If a side only closes its sending direction, it still receives bytes.
    pub async fn run(self, idle: Duration) -> TunnelReport {
        let Self { client, from_client, mut origin, from_origin } = self;
        let activity = TunnelActivity { last: Cell::new(Instant::now()) };
        let mut to_origin = Direction::new(from_client, &activity);
        let mut to_client = Direction::new(from_origin, &activity);
        let carried = poll_fn(|context| {
            let first = to_origin.poll(context, client, &mut origin)?;
            let second = to_client.poll(context, &mut origin, client)?;
            if first.is_ready() && second.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        let end = tokio::select! {
            carried = carried => {
                let carried: io::Result<()> = carried;
                if carried.is_ok() { TunnelEnd::Closed } else { TunnelEnd::Reset }
            }
            () = activity.silent_for(idle) => TunnelEnd::Idle,
        };
        TunnelReport { to_origin: to_origin.count, to_client: to_client.count, end }
    }
}

impl TunnelActivity {
    async fn silent_for(&self, idle: Duration) {
        loop {
            let deadline = self.last.get() + idle;
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }
}

/// The state of one direction of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayStage {
    Open,
    /// The sending side has closed this direction. The proxy has not yet closed it towards the
    /// receiving side.
    Closing,
    Closed,
}

/// One direction of a tunnel, with the bytes that wait to be written.
struct Direction<'a> {
    pending: Bytes,
    flushed: bool,
    stage: RelayStage,
    activity: &'a TunnelActivity,
    count: u64,
}

impl<'a> Direction<'a> {
    fn new(first: Bytes, activity: &'a TunnelActivity) -> Self {
        Self { pending: first, flushed: true, stage: RelayStage::Open, activity, count: 0 }
    }

    /// Passes more bytes in this direction. The result is ready once this direction is closed
    /// towards the receiving side.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.pending.is_empty() {
                let written = ready!(Pin::new(&mut *to).poll_write(context, &self.pending))?;
                self.wrote(written)?;
                self.pending.advance(written);
            }
            self.pending = Bytes::new();
            match self.stage {
                RelayStage::Open => ready!(self.poll_more(context, from, to))?,
                RelayStage::Closing => {
                    ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                    self.stage = RelayStage::Closed;
                }
                RelayStage::Closed => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Reads bytes, and writes as many of them as the receiving side accepts immediately. Flushes
    /// before it waits for more bytes.
    fn poll_more(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Poll<io::Result<()>> {
        let mut scratch = [0; BUFFER_BYTES];
        let mut read = ReadBuf::new(&mut scratch);
        if Pin::new(from).poll_read(context, &mut read)?.is_pending() {
            if !self.flushed {
                ready!(Pin::new(to).poll_flush(context))?;
                self.flushed = true;
            }
            return Poll::Pending;
        }
        let mut bytes = read.filled();
        if bytes.is_empty() {
            self.stage = RelayStage::Closing;
        }
        while !bytes.is_empty() {
            let Poll::Ready(written) = Pin::new(&mut *to).poll_write(context, bytes)? else {
                self.pending = Bytes::copy_from_slice(bytes);
                break;
            };
            self.wrote(written)?;
            bytes = &bytes[written..];
        }
        Poll::Ready(Ok(()))
    }

    fn wrote(&mut self, written: usize) -> io::Result<()> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.count += written as u64;
        self.flushed = false;
        self.activity.last.set(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
