//! Sends bytes to a client no faster than a rule of the operator permits. The *pace* is the
//! client's limit in bytes per second. Without such a rule, none of this code runs.

use crate::client::Sender;
use crate::core::client_limits::Pace;
use crate::request::answered::{ClientTook, WriteEnd, within};
use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

impl Sender<'_> {
    /// Sends all pieces of a body except the last piece, at the client's pace. The last piece stays
    /// in `data`. The caller may send it at once, because this method has already waited for it.
    pub(super) async fn send_all_but_last(
        &mut self,
        data: &mut Bytes,
        pace: &Pace,
    ) -> Result<(), WriteEnd> {
        let piece = pace.piece();
        while data.len() > piece {
            pace.wait(piece).await;
            self.body_now(data.split_to(piece)).await?;
        }
        pace.wait(data.len()).await;
        Ok(())
    }

    /// Sends `part` at the client's pace. Stops if a wait for the pace or for the client is longer
    /// than the time that `patience` returns.
    pub(super) async fn paced_part(
        &mut self,
        part: &mut Bytes,
        patience: &impl Fn() -> Duration,
        pace: &Pace,
    ) -> Result<ClientTook, WriteEnd> {
        while !part.is_empty() {
            let length = part.len().min(pace.piece());
            if within(patience(), pace.wait(length)).await.is_none() {
                return Ok(ClientTook::Partly);
            }
            let mut piece = part.slice(..length);
            let took = self.part_now(&mut piece, patience).await;
            part.advance(length - piece.len());
            if took? == ClientTook::Partly {
                return Ok(ClientTook::Partly);
            }
        }
        Ok(ClientTook::All)
    }
}

/// A connection to an origin, whose bytes a tunnel passes to the client at the client's pace.
#[derive(Debug)]
pub(crate) struct PacedConnection<S> {
    inner: S,
    pace: Pace,
    /// The timer that ends when the pace (limit in bytes per second) permits the next piece.
    wait: Option<Pin<Box<Sleep>>>,
    /// Number of bytes that may be read now without exceeding the pace (limit in bytes per second).
    granted: usize,
}

impl<S> PacedConnection<S> {
    pub(crate) const fn new(inner: S, pace: Pace) -> Self {
        Self { inner, pace, wait: None, granted: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.granted == 0 {
            if let Some(wait) = &mut self.wait {
                ready!(wait.as_mut().poll(context));
                self.wait = None;
            }
            let piece = self.pace.piece();
            match self.pace.take(piece) {
                Ok(()) => self.granted = piece,
                Err(time) => self.wait = Some(Box::pin(sleep(time))),
            }
        }
        let length = self.granted.min(buffer.remaining());
        let mut piece = ReadBuf::new(buffer.initialize_unfilled_to(length));
        ready!(Pin::new(&mut self.inner).poll_read(context, &mut piece))?;
        let read = piece.filled().len();
        buffer.advance(read);
        self.granted -= read;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PacedConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
