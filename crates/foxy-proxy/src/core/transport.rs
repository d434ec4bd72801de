//! A connection's bytes, with or without TLS: both sides of the proxy read and write this type. It
//! knows no HTTP and decides nothing about certificates.

use bytes::BytesMut;
use foxy_http::Scheme;
use socket2::SockRef;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio_rustls::TlsStream;

/// A connection.
#[derive(Debug)]
pub enum Transport {
    /// TCP alone.
    Plain(TcpStream),
    /// TLS over TCP. The cell lets the two directions share it; it is borrowed only within a poll.
    Tls(Box<RefCell<TlsStream<TcpStream>>>),
}

impl Transport {
    pub(crate) fn split(&mut self) -> (ReadSide<'_>, WriteSide<'_>) {
        match self {
            Self::Plain(stream) => {
                let (read, write) = stream.split();
                (ReadSide::Plain(read), WriteSide::Plain(write))
            }
            Self::Tls(stream) => {
                let stream: &RefCell<_> = stream;
                (ReadSide::Tls(stream), WriteSide::Tls(stream))
            }
        }
    }

    /// Wraps TLS over TCP.
    pub fn tls(stream: impl Into<TlsStream<TcpStream>>) -> Self {
        Self::Tls(Box::new(RefCell::new(stream.into())))
    }

    /// `https` over TLS, else `http`.
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Plain(_) => Scheme::Http,
            Self::Tls(_) => Scheme::Https,
        }
    }

    /// Tells the peer of the coming close, as far as that takes no waiting (RFC 8446 §6.1).
    pub(crate) fn say_goodbye(&mut self) {
        if let Self::Tls(stream) = self {
            let mut nobody_waits = Context::from_waker(Waker::noop());
            let _as_far_as_it_goes = Pin::new(stream.get_mut()).poll_shutdown(&mut nobody_waits);
        }
    }

    /// Protocol that both sides agreed on in TLS (RFC 7301).
    pub(crate) fn agreed_protocol(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.borrow().get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
        }
    }

    /// Calls `act` with the TCP socket, to query or set socket options.
    pub fn with_socket<T>(&self, act: impl FnOnce(&TcpStream) -> T) -> T {
        match self {
            Self::Plain(socket) => act(socket),
            Self::Tls(stream) => act(stream.borrow().get_ref().0),
        }
    }

    /// Whether neither bytes of the application nor the end have arrived. This asks the kernel,
    /// because the runtime knows only the result of its last poll.
    pub(crate) fn is_silent(&mut self) -> bool {
        if let Self::Tls(stream) = self {
            let mut byte = [0];
            let mut nobody_waits = Context::from_waker(Waker::noop());
            let read = Pin::new(stream.get_mut())
                .poll_read(&mut nobody_waits, &mut ReadBuf::new(&mut byte));
            if read.is_ready() {
                return false;
            }
        }
        let peeked =
            self.with_socket(|socket| SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]));
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.get_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.get_mut()).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream.get_mut()).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.get_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.get_mut()).poll_shutdown(context),
        }
    }
}

pub(crate) enum ReadSide<'a> {
    Plain(ReadHalf<'a>),
    Tls(&'a RefCell<TlsStream<TcpStream>>),
}

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
    /// Writes the bytes that fit. Fails with `WouldBlock` when none fit.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(half) => half.try_write_vectored(slices),
            Self::Tls(stream) => now(|context| {
                Pin::new(&mut *stream.borrow_mut()).poll_write_vectored(context, slices)
            }),
        }
    }

    /// Sends bytes that TLS holds back. Fails with `WouldBlock` when some do not fit.
    pub(crate) fn try_flush(&self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => {
                now(|context| Pin::new(&mut *stream.borrow_mut()).poll_flush(context))
            }
        }
    }

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

/// Polls once without waiting.
fn now<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
    match poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Whether the error is EMFILE or ENFILE, for which std has no kind.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}
