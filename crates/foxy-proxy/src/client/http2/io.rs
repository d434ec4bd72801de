//! Passes the bytes of a client's connection to the HTTP/2 library and back. The library first
//! receives the bytes that were read before the protocol was known. The [`Wire`] watches all bytes.
//! [`FrameGatherer`] gathers frames, so that the frames of all ready streams leave in one write.

use crate::client::http2::wire::{MAX_UNSENT_BYTES, Wire};
use crate::core::transport::Transport;
use bytes::{Buf, BytesMut};
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The time since which the client's socket has accepted none of the bytes that wait to be sent.
/// `None` while the socket accepts bytes.
pub(crate) type Stalled = Rc<Cell<Option<Instant>>>;

/// Largest number of bytes of frames that wait for one write.
const MAX_GATHERED: usize = MAX_UNSENT_BYTES;

/// Smallest size of the buffer for frames. The next sizes are powers of two, up to
/// [`MAX_GATHERED`].
const LEAST_BUFFER: usize = 8 << 10;

/// The stream of a client's connection, and the frames that wait for the next write to the stream.
/// Has no buffer while no frames wait.
pub(crate) struct FrameGatherer<'a> {
    stream: &'a mut Transport,
    gathered: Vec<u8>,
    /// If true, a flush of the HTTP/2 library sends nothing, and the caller must call
    /// [`Self::poll_send`]. If false, each flush sends all gathered frames. In both cases, frames
    /// are also sent when the buffer is full.
    ignores_flush: bool,
    stalled: Stalled,
    wire: Rc<Wire>,
}

impl<'a> FrameGatherer<'a> {
    pub(crate) fn new(stream: &'a mut Transport, stalled: Stalled, wire: Rc<Wire>) -> Self {
        Self { stream, gathered: Vec::new(), ignores_flush: false, stalled, wire }
    }

    /// From now on, ignores that the HTTP/2 library flushes after each DATA frame. The caller must
    /// call [`Self::poll_send`] when the library waits.
    pub(crate) fn ignore_flush(&mut self) {
        self.ignores_flush = true;
    }

    /// Sends all gathered frames to the client.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            ready!(self.poll_write_gathered(context))?;
        }
        self.gathered = Vec::new();
        let poll = Pin::new(&mut *self.stream).poll_flush(context);
        self.note(poll)
    }

    /// Takes as many bytes of `slices` as fit into the buffer. If the buffer is full, first writes
    /// to the stream. Returns the number of bytes taken.
    fn poll_gather(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.gathered.len() >= MAX_GATHERED {
            ready!(self.poll_write_gathered(context))?;
        }
        let size = slices.iter().map(|slice| slice.len()).sum::<usize>();
        let taken = size.min(MAX_GATHERED - self.gathered.len());
        let length = self.gathered.len() + taken;
        if length > self.gathered.capacity() {
            let capacity = length.next_power_of_two().max(LEAST_BUFFER);
            self.gathered.reserve_exact(capacity - self.gathered.len());
        }
        let mut left = taken;
        for slice in slices {
            let bytes = &slice[..slice.len().min(left)];
            self.gathered.extend_from_slice(bytes);
            left -= bytes.len();
        }
        Poll::Ready(Ok(taken))
    }

    /// Writes gathered bytes to the stream once. Waits until the stream accepts at least one byte.
    fn poll_write_gathered(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut *self.stream).poll_write(context, &self.gathered);
        let written = ready!(self.note(poll))?;
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.wire.sent(&self.gathered[..written]);
        self.gathered.drain(..written);
        Poll::Ready(Ok(()))
    }

    fn note<T>(&self, poll: Poll<T>) -> Poll<T> {
        match poll {
            Poll::Ready(_) => self.stalled.set(None),
            Poll::Pending => self.stalled.set(self.stalled.get().or_else(|| Some(Instant::now()))),
        }
        poll
    }
}

/// The stream of a client's connection as the HTTP/2 library sees it.
pub(crate) struct WatchedIo<'a> {
    gatherer: Rc<RefCell<FrameGatherer<'a>>>,
    read_before: &'a mut BytesMut,
    wire: Rc<Wire>,
}

impl<'a> WatchedIo<'a> {
    pub(crate) fn new(
        gatherer: Rc<RefCell<FrameGatherer<'a>>>,
        read_before: &'a mut BytesMut,
        wire: Rc<Wire>,
    ) -> Self {
        Self { gatherer, read_before, wire }
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
            let stream = &mut *self.gatherer.borrow_mut().stream;
            ready!(Pin::new(stream).poll_read(context, buffer))?;
        } else {
            let count = self.read_before.len().min(buffer.remaining());
            buffer.put_slice(&self.read_before[..count]);
            self.read_before.advance(count);
            if self.read_before.is_empty() {
                *self.read_before = BytesMut::new();
            }
        }
        self.wire.received(&buffer.filled()[before..], Instant::now());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedIo<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.gatherer.borrow_mut().poll_gather(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gatherer = self.gatherer.borrow_mut();
        if gatherer.ignores_flush { Poll::Ready(Ok(())) } else { gatherer.poll_send(context) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gatherer = self.gatherer.borrow_mut();
        ready!(gatherer.poll_send(context))?;
        let poll = Pin::new(&mut *gatherer.stream).poll_shutdown(context);
        gatherer.note(poll)
    }
}

#[cfg(test)]
#[path = "io_tests.rs"]
mod tests;
