//! Reads and writes the bytes of a connection, with or without TLS. The proxy uses this type for
//! connections with clients and with origins. The type does not know HTTP, and checks no
//! certificates.

use bytes::BytesMut;
use foxy_http::Scheme;
use socket2::SockRef;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::timeout;
use tokio_rustls::TlsStream;

/// Longest time for which the proxy still reads from a connection that it closes. If received bytes
/// were unread at the close, the kernel would send a reset. The client could then lose the end of
/// its answer.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Largest number of bytes that the proxy reads and drops before it closes a connection.
const LINGER_BYTES: usize = 256 << 10;

/// A TCP connection, with or without TLS. In a tunnel through a parent proxy that speaks TLS, the
/// connection has TLS inside TLS.
#[derive(Debug)]
pub enum Transport {
    /// TCP without TLS.
    Plain(TcpStream),
    /// TLS over TCP, or over other TLS. The read side and the write side share the cell; each side
    /// borrows it only during a poll.
    Tls(Box<RefCell<TlsStream<Transport>>>),
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

    /// Wraps a TLS connection.
    pub fn tls(stream: impl Into<TlsStream<Transport>>) -> Self {
        Self::Tls(Box::new(RefCell::new(stream.into())))
    }

    /// Returns the URL scheme: `https` with TLS, otherwise `http`.
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Plain(_) => Scheme::Http,
            Self::Tls(_) => Scheme::Https,
        }
    }

    /// Notifies the peer that the connection will close (RFC 8446 §6.1). Does not wait until the
    /// socket accepts the notification.
    pub(crate) fn say_goodbye(&mut self) {
        if let Self::Tls(stream) = self {
            let mut nobody_waits = Context::from_waker(Waker::noop());
            let _as_far_as_it_goes = Pin::new(stream.get_mut()).poll_shutdown(&mut nobody_waits);
        }
    }

    /// Returns the application protocol that both sides agreed on during the TLS handshake (ALPN,
    /// RFC 7301).
    pub(crate) fn agreed_protocol(&self) -> Option<Vec<u8>> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.borrow().get_ref().1.alpn_protocol().map(<[u8]>::to_vec),
        }
    }

    /// Calls `act` with the connection's TCP socket, so that `act` can query or set socket options.
    pub fn with_socket<T>(&self, act: impl FnOnce(&TcpStream) -> T) -> T {
        match self {
            Self::Plain(socket) => act(socket),
            Self::Tls(stream) => stream.borrow().get_ref().0.with_socket(act),
        }
    }

    /// Closes the connection without losing the end of the last answer. Before the close, reads and
    /// drops the bytes that the client still sends, for at most [`LINGER`].
    pub(crate) async fn linger(&mut self) {
        let drop_rest = async {
            if self.shutdown().await.is_err() {
                return;
            }
            let mut scratch = vec![0; 4096];
            let mut read = 0;
            while read < LINGER_BYTES {
                match self.read(&mut scratch).await {
                    Ok(0) | Err(_) => return,
                    Ok(count) => read += count,
                }
            }
        };
        let _patience_over = timeout(LINGER, drop_rest).await;
    }

    /// Returns ready if the socket has received bytes or the end of the stream. Needs no buffer.
    /// With TLS, the caller must have read all decrypted bytes before.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with_socket(|socket| socket.poll_read_ready(context))
    }

    /// Returns true if the peer has sent neither application bytes nor the end of the stream. Reads
    /// from the kernel, because the async runtime remembers only the result of its last poll.
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
        let peeked = self.with_socket(peek);
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

/// The half of a connection from which the proxy reads.
pub(crate) enum ReadSide<'a> {
    Plain(ReadHalf<'a>),
    Tls(&'a RefCell<TlsStream<Transport>>),
}

/// The half of a connection to which the proxy writes.
pub(crate) enum WriteSide<'a> {
    /// Drops all bytes, because the peer expects another protocol.
    Muted,
    Plain(WriteHalf<'a>),
    Tls(&'a RefCell<TlsStream<Transport>>),
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

/// Returns the number of bytes, 0 or 1, that a read would return now. 0 means that the peer has
/// ended the stream. Fails with `WouldBlock` if the socket has no bytes.
fn peek(socket: &TcpStream) -> io::Result<usize> {
    SockRef::from(socket).peek(&mut [MaybeUninit::uninit()])
}

impl WriteSide<'_> {
    /// Returns true if the peer has closed its sending side or the whole connection.
    pub(crate) fn peer_has_left(&self) -> bool {
        let peeked = match self {
            Self::Muted => return false,
            Self::Plain(half) => peek(half.as_ref()),
            Self::Tls(stream) => stream.borrow().get_ref().0.with_socket(peek),
        };
        match peeked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Writes as many bytes as the socket accepts. Fails with `WouldBlock` if it accepts none.
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Muted => Ok(slices.iter().map(|slice| slice.len()).sum()),
            Self::Plain(half) => half.try_write_vectored(slices),
            Self::Tls(stream) => now(|context| {
                Pin::new(&mut *stream.borrow_mut()).poll_write_vectored(context, slices)
            }),
        }
    }

    /// Sends bytes that the TLS library has buffered. Fails with `WouldBlock` if the socket does
    /// not accept all of them.
    pub(crate) fn try_flush(&self) -> io::Result<()> {
        match self {
            Self::Muted | Self::Plain(_) => Ok(()),
            Self::Tls(stream) => {
                now(|context| Pin::new(&mut *stream.borrow_mut()).poll_flush(context))
            }
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Muted => Ok(()),
            Self::Plain(half) => half.writable().await,
            Self::Tls(stream) => {
                poll_fn(|context| {
                    let stream = stream.borrow();
                    stream.get_ref().0.with_socket(|socket| socket.poll_write_ready(context))
                })
                .await
            }
        }
    }

    pub(crate) fn set_zero_linger(&self) -> io::Result<()> {
        match self {
            Self::Muted => Ok(()),
            Self::Plain(half) => half.as_ref().set_zero_linger(),
            Self::Tls(stream) => {
                stream.borrow().get_ref().0.with_socket(TcpStream::set_zero_linger)
            }
        }
    }
}

/// Polls once and does not wait. Fails with `WouldBlock` if the result is not ready.
fn now<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>) -> io::Result<T> {
    match poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

/// Returns true if the error is EMFILE or ENFILE (no file descriptors left). The standard library
/// has no error kind for them.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}
