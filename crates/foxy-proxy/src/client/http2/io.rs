//! Passes the bytes of a client's connection to the HTTP/2 library and back. The library first
//! receives the bytes that were read before the protocol was known. The [`Wire`] sees all bytes.
//! The cell `Stalled` tells since when the client's socket has accepted no bytes.

use crate::client::http2::wire::Wire;
use crate::core::transport::Transport;
use bytes::{Buf, BytesMut};
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The time since which the client's socket has accepted none of the bytes that wait to be sent.
/// `None` while the socket accepts bytes.
pub(crate) type Stalled = Rc<Cell<Option<Instant>>>;

/// The stream of a client's connection as the HTTP/2 library sees it.
pub(crate) struct WatchedIo<'a> {
    stream: &'a mut Transport,
    read_before: &'a mut BytesMut,
    stalled: Stalled,
    wire: Rc<Wire>,
}

impl<'a> WatchedIo<'a> {
    pub(crate) fn new(
        stream: &'a mut Transport,
        read_before: &'a mut BytesMut,
        stalled: Stalled,
        wire: Rc<Wire>,
    ) -> Self {
        Self { stream, read_before, stalled, wire }
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
    /// Reads nothing more once the [`Wire`] has decided that the client sends too many frames. The
    /// connection is then closed.
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.wire.is_flooded() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if self.read_before.is_empty() {
            ready!(Pin::new(&mut *self.stream).poll_read(context, buffer))?;
        } else {
            let count = self.read_before.len().min(buffer.remaining());
            buffer.put_slice(&self.read_before[..count]);
            self.read_before.advance(count);
        }
        self.wire.received(&buffer.filled()[before..], Instant::now());
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
        if let Poll::Ready(Ok(written)) = poll {
            self.wire.sent(&bytes[..written]);
        }
        self.note(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut *self.stream).poll_write_vectored(context, slices);
        if let Poll::Ready(Ok(mut written)) = poll {
            for slice in slices {
                let taken = written.min(slice.len());
                self.wire.sent(&slice[..taken]);
                written -= taken;
            }
        }
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
