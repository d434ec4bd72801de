//! A stream of HTTP/2 as a connection through which bytes pass both ways, after CONNECT (RFC 9113
//! §8.5).

use crate::client::http2::body::Http2Body;
use crate::client::http2::sender::Out;
use bytes::{Buf, Bytes};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Both directions of a stream.
pub(crate) struct Http2Tunnel<'a> {
    out: &'a RefCell<Out>,
    body: &'a mut Http2Body,
    /// What was received and not read yet.
    rest: Bytes,
}

impl<'a> Http2Tunnel<'a> {
    pub(crate) fn new(out: &'a RefCell<Out>, body: &'a mut Http2Body) -> Self {
        Self { out, body, rest: Bytes::new() }
    }
}

impl AsyncRead for Http2Tunnel<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            match ready!(this.body.poll_data(context)) {
                Ok(Some(data)) => this.rest = data,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(_) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }
        let count = this.rest.len().min(buffer.remaining());
        buffer.put_slice(&this.rest[..count]);
        this.rest.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http2Tunnel<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut out = self.out.borrow_mut();
        let room = ready!(out.poll_room(context, bytes.len()))
            .map_err(|_| io::ErrorKind::ConnectionReset)?;
        let sent = out.data(Bytes::copy_from_slice(&bytes[..room]), false);
        Poll::Ready(sent.map(|()| room).map_err(|_| io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = self.out.borrow_mut().data(Bytes::new(), true);
        Poll::Ready(ended.map_err(|_| io::ErrorKind::ConnectionReset.into()))
    }
}
