//! An HTTP/2 stream while its request is in progress: the body from the client, or the tunnel after
//! CONNECT (RFC 9113 §8.5).

use crate::client::http2::sender::{Http2Sender, Out};
use crate::client::http2::wire::Wire;
use crate::client::io::ReadEnd;
use crate::core::tls::HandshakeFacts;
use crate::intercept::Inside;
use crate::upstream::Scheme;
use bytes::{Buf, Bytes};
use foxy_http::{DecodeError, Limits, RequestEvent, http2};
use h2::RecvStream;
use http::HeaderMap;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// Returns the names and values of the HTTP/2 library's header fields.
pub(crate) fn fields(map: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

pub(crate) struct Http2Stream<'a> {
    pub(crate) out: &'a RefCell<Out>,
    pub(crate) body: &'a mut Http2Body,
    pub(crate) scheme: Scheme,
    /// The address to which the client connected.
    pub(crate) reached: Option<SocketAddr>,
    /// The intercepted CONNECT whose tunnel contains this request, if there is one.
    pub(crate) inside: Option<&'a Inside>,
    /// The client's certificate and the server name of the client's TLS handshake.
    pub(crate) presented: Option<&'a HandshakeFacts>,
    /// Number of the node of the fleet that is the client. `None` for every other client.
    pub(crate) node: Option<usize>,
}

impl Http2Stream<'_> {
    pub(crate) fn split(&mut self, write_limit: Duration) -> (&mut Http2Body, Http2Sender<'_>) {
        (&mut *self.body, Http2Sender::new(self.out, write_limit))
    }

    pub(crate) fn as_tunnel(&mut self) -> Http2Tunnel<'_> {
        Http2Tunnel::new(self.out, self.body)
    }
}

/// A request body that arrives through a stream. The client receives flow-control credit for a
/// piece only when the proxy takes the next piece.
pub(crate) struct Http2Body {
    stream: RecvStream,
    limits: Limits,
    wire: Rc<Wire>,
    /// Number of bytes that the proxy has taken, and for which the client has received no new
    /// flow-control credit yet.
    held: usize,
    place: BodyPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyPhase {
    Data,
    Trailers,
    End,
}

impl Http2Body {
    pub(crate) fn new(stream: RecvStream, limits: Limits, wire: Rc<Wire>) -> Self {
        Self { stream, limits, wire, held: 0, place: BodyPhase::Data }
    }

    /// Returns the next event of the body: data, trailers or the end. Fails if no event arrives
    /// within `limit`.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        timeout(limit, poll_fn(|context| self.poll(context))).await.unwrap_or(Err(ReadEnd::Timeout))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<RequestEvent, ReadEnd>> {
        if self.place == BodyPhase::Data {
            if let Some(data) = ready!(self.poll_data(context)?) {
                return Poll::Ready(Ok(RequestEvent::Body(data)));
            }
            self.place = BodyPhase::Trailers;
        }
        if self.place == BodyPhase::Trailers {
            let found = ready!(self.stream.poll_trailers(context)).map_err(|_| ReadEnd::Broken)?;
            self.place = BodyPhase::End;
            if let Some(found) = found {
                if self.wire.has_malformed_trailers(self.stream.stream_id().as_u32()) {
                    return Poll::Ready(Err(ReadEnd::Malformed(DecodeError::InvalidHeaderName)));
                }
                let trailers =
                    http2::trailers(fields(&found), &self.limits).map_err(ReadEnd::Malformed)?;
                if !trailers.is_empty() {
                    return Poll::Ready(Ok(RequestEvent::Trailers(trailers)));
                }
            }
        }
        Poll::Ready(Ok(RequestEvent::End))
    }

    /// Returns the next bytes of the body, at least one, or `None` at the end.
    pub(crate) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadEnd>> {
        let held = std::mem::take(&mut self.held);
        // This call fails if the stream has ended. The client then needs no more credit.
        let _ = self.stream.flow_control().release_capacity(held);
        loop {
            match ready!(self.stream.poll_data(context)) {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.held = data.len();
                    return Poll::Ready(Ok(Some(data)));
                }
                Some(Err(_)) => return Poll::Ready(Err(ReadEnd::Broken)),
                None => return Poll::Ready(Ok(None)),
            }
        }
    }
}

/// Uses an HTTP/2 stream as a tunnel: a connection through which bytes pass in both directions.
pub(crate) struct Http2Tunnel<'a> {
    out: &'a RefCell<Out>,
    body: &'a mut Http2Body,
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
