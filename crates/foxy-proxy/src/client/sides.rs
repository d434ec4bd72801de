//! The two directions of a client's connection, plain or TLS, as the one code that reads and writes
//! sees them.

use bytes::BytesMut;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio_rustls::TlsStream;

/// Where bytes come from.
pub(crate) enum ReadSide<'a> {
    Plain(ReadHalf<'a>),
    Tls(&'a RefCell<TlsStream<TcpStream>>),
}

/// Where bytes go.
pub(crate) enum WriteSide<'a> {
    Plain(WriteHalf<'a>),
    Tls(&'a RefCell<TlsStream<TcpStream>>),
}

impl ReadSide<'_> {
    pub(crate) async fn read_buf(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(half) => half.read_buf(buffer).await,
            Self::Tls(stream) => {
                poll_fn(|context| pin!(stream.borrow_mut().read_buf(buffer)).poll(context)).await
            }
        }
    }
}

impl WriteSide<'_> {
    /// Writes what fits; `WouldBlock` when nothing does.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(half) => half.try_write_vectored(slices),
            Self::Tls(stream) => now(|context| {
                Pin::new(&mut *stream.borrow_mut()).poll_write_vectored(context, slices)
            }),
        }
    }

    /// Sends what TLS holds back; `WouldBlock` when not all of it fits.
    pub(crate) fn try_flush(&self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => {
                now(|context| Pin::new(&mut *stream.borrow_mut()).poll_flush(context))
            }
        }
    }

    /// Waits until the socket takes more.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Plain(half) => half.writable().await,
            Self::Tls(stream) => {
                poll_fn(|context| stream.borrow().get_ref().0.poll_write_ready(context)).await
            }
        }
    }

    pub(crate) fn set_zero_linger(&self) -> io::Result<()> {
        match self {
            Self::Plain(half) => half.as_ref().set_zero_linger(),
            Self::Tls(stream) => stream.borrow().get_ref().0.set_zero_linger(),
        }
    }
}

/// What a poll gives without waiting.
fn now<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
    match poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
