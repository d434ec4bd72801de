//! A client's connection as the HTTP/2 library reads and writes it: first what was read before it was known to be HTTP/2;
//! and whoever holds the watch sees since when the client takes nothing.

use crate::upstream::Transport;
use bytes::{Buf, BytesMut};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Since when the client takes nothing of what is to be written; `None` while it takes it.
pub(crate) type Stalled = Rc<Cell<Option<Instant>>>;

/// The connection.
pub(crate) struct WatchedIo<'a> {
    stream: &'a mut Transport,
    read_before: &'a mut BytesMut,
    stalled: Stalled,
}

impl<'a> WatchedIo<'a> {
    pub(crate) fn new(stream: &'a mut Transport, read_before: &'a mut BytesMut, stalled: Stalled) -> Self {
        Self { stream, read_before, stalled }
    }

    fn note<T>(&self, poll: Poll<T>) -> Poll<T> {
        match poll {
            Poll::Ready(_) => self.stalled.set(None),
            Poll::Pending => self.stalled.set(self.stalled.get().or_else(|| Some(Instant::now()))),
        }
        poll
    }
}

impl AsyncRead for WatchedIo<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_before.is_empty() {
            return Pin::new(&mut *self.stream).poll_read(context, buffer);
        }
        let count = self.read_before.len().min(buffer.remaining());
        buffer.put_slice(&self.read_before[..count]);
        self.read_before.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedIo<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut *self.stream).poll_write(context, bytes);
        self.note(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut *self.stream).poll_write_vectored(context, slices);
        self.note(poll)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut *self.stream).poll_flush(context);
        self.note(poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut *self.stream).poll_shutdown(context);
        self.note(poll)
    }
}
