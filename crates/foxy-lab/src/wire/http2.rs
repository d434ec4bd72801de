//! HTTP/2 (RFC 9113) with clients and servers. The library `h2` handles frames, HPACK and flow
//! control. A [`ConnectionService`] answers the streams of a client. A connection to a server
//! carries one stream at a time.

use crate::wire::tls::entrance::{ConnectionService, Within};
use crate::wire::tls::outbound::Channel;
use bytes::{Bytes, BytesMut};
use foxy_http::http2::{Content, PseudoFields};
use foxy_http::{
    BodyLength, DecodeError, Headers, Limits, Method, RequestHead, ResponseHead, framing, http2,
};
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream, client, server};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const STREAMS: u32 = 100;
const REQUEST_WINDOW: u32 = 256 << 10;
const SEND_BUFFER: usize = 64 << 10;
const IDLE: Duration = Duration::from_secs(60);

pub async fn serve(
    service: &impl ConnectionService,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    within: &Within,
) -> io::Result<()> {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(REQUEST_WINDOW)
        .initial_connection_window_size(REQUEST_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(Limits::default().head).unwrap_or(u32::MAX));
    let handshake = timeout(service.limit(), builder.handshake::<_, Bytes>(stream)).await?;
    let mut frames = handshake.map_err(io::Error::other)?;
    let (open, within) = (Rc::new(Cell::new(0_u32)), Rc::new(within.clone()));
    loop {
        match timeout(IDLE, frames.accept()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
            Ok(Some(Ok((request, respond)))) => {
                open.set(open.get() + 1);
                let (service, open, within) =
                    (service.clone(), Rc::clone(&open), Rc::clone(&within));
                tokio::task::spawn_local(async move {
                    service.stream(request, Frames::new(respond), &within).await;
                    open.set(open.get() - 1);
                });
            }
            Err(_) if open.get() == 0 => {
                frames.graceful_shutdown();
                // The client must acknowledge the shutdown within the service's time limit.
                return timeout(service.limit(), poll_fn(|context| frames.poll_closed(context)))
                    .await?
                    .map_err(io::Error::other);
            }
            Err(_) => {}
        }
    }
}

pub fn request_head(
    request: &http::Request<RecvStream>,
) -> Result<(RequestHead, BodyLength), DecodeError> {
    let uri = request.uri();
    let pseudo = PseudoFields {
        method: request.method().as_str(),
        scheme: uri.scheme_str(),
        authority: uri.authority().map(http::uri::Authority::as_str),
        path: uri.path_and_query().map(http::uri::PathAndQuery::as_str),
    };
    let content = if request.body().is_end_stream() { Content::None } else { Content::Some };
    http2::request(pseudo, fields(request.headers()), content, &Limits::default())
}

pub fn fields(map: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// Copies header fields for HTTP/2. Leaves out fields with invalid names or values.
pub fn fields_of(headers: &Headers) -> HeaderMap {
    let field = |(name, value): (&str, &[u8])| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
    };
    let mut map = HeaderMap::new();
    for (name, value) in headers.iter().filter_map(field) {
        map.append(name, value);
    }
    map
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWhole {
    TooLarge,
    Broken,
}

/// Reads a body of at most `most` bytes. The next bytes must always arrive within `limit`.
pub async fn whole(
    mut stream: RecvStream,
    most: usize,
    limit: Duration,
) -> Result<Bytes, NotWhole> {
    let mut body = BytesMut::new();
    loop {
        match timeout(limit, stream.data()).await {
            Ok(None) => return Ok(body.freeze()),
            Ok(Some(Ok(data))) => {
                // The call fails only if the stream has ended. Then flow control no longer matters.
                let _ = stream.flow_control().release_capacity(data.len());
                if body.len() + data.len() > most {
                    return Err(NotWhole::TooLarge);
                }
                body.extend_from_slice(&data);
            }
            Ok(Some(Err(_))) | Err(_) => return Err(NotWhole::Broken),
        }
    }
}

/// The answer to an HTTP/2 request. If the value is dropped before the end of the answer, it resets
/// the stream.
#[derive(Debug)]
pub struct Frames {
    respond: SendResponse<Bytes>,
    body: Option<SendStream<Bytes>>,
    ended: bool,
}

impl Frames {
    const fn new(respond: SendResponse<Bytes>) -> Self {
        Self { respond, body: None, ended: false }
    }

    pub fn head(&mut self, head: &ResponseHead) -> io::Result<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(head.status).map_err(io::Error::other)?;
        *response.headers_mut() = fields_of(&head.headers);
        for name in ["connection", "keep-alive", "transfer-encoding"] {
            response.headers_mut().remove(name);
        }
        self.body = Some(self.respond.send_response(response, false).map_err(io::Error::other)?);
        Ok(())
    }

    /// Waits for space in the flow control window, then sends the part of `data` that fits.
    pub async fn data(&mut self, data: &mut BytesMut) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let body = self.body.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        body.reserve_capacity(data.len());
        let room = poll_fn(|context| body.poll_capacity(context))
            .await
            .ok_or(io::ErrorKind::BrokenPipe)?;
        let piece = data.split_to(room.map_err(io::Error::other)?.min(data.len()));
        body.send_data(piece.freeze(), false).map_err(io::Error::other)
    }

    pub fn end(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let body = self.body.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        body.send_data(Bytes::new(), true).map_err(io::Error::other)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if !self.ended {
            match &mut self.body {
                Some(body) => body.send_reset(Reason::INTERNAL_ERROR),
                None => self.respond.send_reset(Reason::INTERNAL_ERROR),
            }
        }
    }
}

const RESPONSE_WINDOW: u32 = 1 << 20;

#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
pub struct Http2Connection {
    sender: SendRequest<Bytes>,
    driver: Driver,
}

impl Http2Connection {
    pub async fn open(stream: Channel) -> Result<Self, h2::Error> {
        let mut builder = client::Builder::new();
        builder
            .initial_window_size(RESPONSE_WINDOW)
            .initial_connection_window_size(RESPONSE_WINDOW)
            .enable_push(false);
        let (mut sender, connection) = builder.handshake::<_, Bytes>(stream).await?;
        // The stream reports this error too, so the result does not matter here.
        let driver = Driver(tokio::task::spawn_local(async move { drop(connection.await) }));
        poll_fn(|context| sender.poll_ready(context)).await?;
        Ok(Self { sender, driver })
    }

    /// Whether the connection can send another request now.
    pub fn is_ready(&mut self) -> bool {
        // The waker does nothing, because the next request registers its own waker.
        let mut context = Context::from_waker(Waker::noop());
        !self.driver.0.is_finished()
            && matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    pub fn ask(
        &mut self,
        request: http::Request<()>,
        body: Option<Bytes>,
    ) -> Result<ResponseFuture, h2::Error> {
        let (response, mut stream) = self.sender.send_request(request, body.is_none())?;
        if let Some(body) = body {
            stream.send_data(body, true)?;
        }
        Ok(response)
    }
}

/// Converts a response head from HTTP/2 and checks it by the rules of HTTP/1. Returns `None` if the
/// head breaks these rules.
pub fn response_head(
    method: &Method,
    parts: &http::response::Parts,
) -> Option<(ResponseHead, BodyLength)> {
    let mut head = ResponseHead::new(parts.status.as_u16());
    for (name, value) in fields(&parts.headers) {
        head.headers.try_append(name, value).ok()?;
    }
    let (length, _) = framing::response(method, &mut head).ok()?;
    // Without a length, the end of the stream ends the body. So the body counts as chunked.
    let length = if length == BodyLength::UntilClose { BodyLength::Chunked } else { length };
    Some((head, length))
}
