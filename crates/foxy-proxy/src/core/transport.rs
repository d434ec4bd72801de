//! A connection's bytes, with or without TLS around them: the one type that both sides read from
//! and write to. It knows no HTTP and decides nothing about certificates.

use foxy_http::Scheme;
use socket2::SockRef;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
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
    /// TLS over TCP.
    pub fn tls(stream: impl Into<TlsStream<TcpStream>>) -> Self {
        Self::Tls(Box::new(RefCell::new(stream.into())))
    }

    /// What is spoken over it.
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Plain(_) => Scheme::Http,
            Self::Tls(_) => Scheme::Https,
        }
    }

    /// Tells the peer of a coming close, as far as that takes no waiting (RFC 8446 §6.1).
    pub(crate) fn say_goodbye(&mut self) {
        if let Self::Tls(stream) = self {
            let mut nobody_waits = Context::from_waker(Waker::noop());
            let _as_far_as_it_goes = Pin::new(stream.get_mut()).poll_shutdown(&mut nobody_waits);
        }
    }

    /// What both sides agreed in TLS to speak (RFC 7301), if they did.
    pub(crate) fn agreed_protocol(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.borrow().get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
        }
    }

    /// The TCP connection at the bottom, for what is asked of or set on sockets.
    pub fn with_socket<T>(&self, act: impl FnOnce(&TcpStream) -> T) -> T {
        match self {
            Self::Plain(socket) => act(socket),
            Self::Tls(stream) => act(stream.borrow().get_ref().0),
        }
    }

    /// Whether nothing has arrived: neither bytes of the application nor the end. The kernel is
    /// asked: the runtime knows only what its last poll found.
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
