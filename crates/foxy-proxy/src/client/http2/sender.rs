//! Sends answers as HTTP/2 frames. The HTTP/2 library receives only bytes that the client's flow
//! control permits. For each stream, at most [`SEND_BUFFER`] bytes wait in the library until the
//! connection's socket accepts them.

use crate::client::http2::wire::Wire;
use crate::core::client_limits::Pace;
use crate::core::tags;
use crate::request::answered::{
    ClientTook, ConnectionFate, Framing, Opening, Progress, WriteEnd, within,
};
use crate::request::cache_status::CacheStatus;
use crate::upstream::Responder;
use crate::upstream::fleet::signs::{MOST_SIGNS, SIGN_INTERVAL, sign};
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_store::Key;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Number of bytes of one stream's answer that may wait in the HTTP/2 library for the socket.
pub(crate) const SEND_BUFFER: usize = 64 << 10;

/// Number of bytes of a stored body that are copied at a time. The number is small, because a slow
/// client may leave the copy in memory.
const COPY_BYTES: usize = 16 << 10;

/// The sending direction of a stream. Two pieces of code share this value: one sends the answer,
/// and one waits until the client resets the stream. Each may borrow the value only during a poll.
pub(crate) struct Out {
    respond: SendResponse<Bytes>,
    body: Option<SendStream<Bytes>>,
    wire: Rc<Wire>,
    stream: u32,
    ended: bool,
    /// Number of times that this node will still tell another node that it waits for the origin.
    signs_left: u32,
    /// Number of bytes sent: bodies, and heads in their size before compression.
    pub(crate) sent: u64,
    pub(crate) progress: Rc<Progress>,
}

impl Out {
    pub(crate) fn new(respond: SendResponse<Bytes>, wire: Rc<Wire>) -> Self {
        let stream = respond.stream_id().as_u32();
        let progress = Rc::default();
        Self { respond, body: None, wire, stream, ended: false, signs_left: 0, sent: 0, progress }
    }

    /// Waits until the client has reset the stream or closed the connection. After the end of the
    /// answer, waits for ever.
    pub(crate) fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.body {
            _ if self.ended => return Poll::Pending,
            Some(body) => body.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        reset.map(|_| ())
    }

    /// Resets the stream. Does nothing if the answer is already complete.
    pub(crate) fn reset(&mut self, reason: Reason) {
        if self.ended {
            return;
        }
        match &mut self.body {
            Some(body) => body.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
        self.wire.reset(self.stream);
        self.ended = true;
    }

    fn open(&mut self, head: Response<()>, end: bool) -> Result<(), WriteEnd> {
        let wire_size = wire_size(head.headers());
        self.count(wire_size);
        self.wire.handed_head(self.stream, usize::try_from(wire_size).unwrap_or(usize::MAX));
        self.body = Some(self.respond.send_response(head, end).map_err(|_| WriteEnd::Gone)?);
        self.ended = end;
        Ok(())
    }

    /// Waits until the connection's socket has accepted most of the waiting bytes. Returns the
    /// number of bytes that may be passed to the HTTP/2 library now.
    fn poll_wire(&self, context: &Context<'_>) -> Poll<usize> {
        self.wire.poll_room(context)
    }

    /// Waits until at least one byte may be sent. Returns how many bytes may be sent, at most
    /// `wanted`.
    pub(crate) fn poll_room(
        &mut self,
        context: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<Result<usize, WriteEnd>> {
        let wanted = wanted.min(ready!(self.poll_wire(context)));
        let Some(body) = &mut self.body else { return Poll::Ready(Err(WriteEnd::Gone)) };
        body.reserve_capacity(wanted);
        loop {
            let room = body.capacity().min(wanted);
            if room > 0 {
                return Poll::Ready(Ok(room));
            }
            match ready!(body.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(Err(WriteEnd::Gone)),
            }
        }
    }

    /// Sends data for which [`Self::poll_room`] reserved space. `end` means that the data ends the
    /// body.
    pub(crate) fn data(&mut self, data: Bytes, end: bool) -> Result<(), WriteEnd> {
        let length = data.len() as u64;
        let Some(body) = &mut self.body else { return Err(WriteEnd::Gone) };
        self.ended = end;
        self.wire.handed_data(self.stream, data.len());
        let sent = body.send_data(data, end).map_err(|_| WriteEnd::Gone);
        self.count(length);
        sent
    }

    /// Sends an interim response.
    fn interim(&mut self, head: Response<()>) -> Result<(), WriteEnd> {
        let wire_size = wire_size(head.headers());
        self.count(wire_size);
        self.wire.handed_head(self.stream, usize::try_from(wire_size).unwrap_or(usize::MAX));
        self.respond.send_informational(head).map_err(|_| WriteEnd::Gone)
    }

    /// Returns true if this node has told another node that it waits for the origin, and has to
    /// repeat this.
    fn has_signs_left(&self) -> bool {
        self.signs_left > 0 && !self.ended && self.body.is_none()
    }

    fn count(&mut self, bytes: u64) {
        self.sent += bytes;
        self.progress.send(bytes);
    }

    /// Gives flow-control capacity back to the connection, if this stream reserved but did not use
    /// it.
    fn release_room(&mut self) {
        if let Some(body) = &mut self.body {
            body.reserve_capacity(0);
        }
    }
}

/// Repeats the interim response with which this node tells another node that it waits for the
/// origin. Never ends: the caller must poll it together with the code that sends the answer.
pub(crate) async fn repeat_signs(out: &RefCell<Out>) {
    poll_fn(|_| if out.borrow().has_signs_left() { Poll::Ready(()) } else { Poll::Pending }).await;
    loop {
        sleep(SIGN_INTERVAL).await;
        let mut out = out.borrow_mut();
        if out.has_signs_left() {
            out.signs_left -= 1;
            let head = sign(out.signs_left);
            // This call fails if the other node has gone. The code that sends the answer notices.
            let _ = out.interim(head_of(head.status, &head.headers));
        }
    }
}

/// The sending side of a stream, for one answer.
pub(crate) struct Http2Sender<'a> {
    out: &'a RefCell<Out>,
    limit: Duration,
    pending: Option<Response<()>>,
    framing: Framing,
    body_sent: u64,
}

impl<'a> Http2Sender<'a> {
    pub(crate) fn new(out: &'a RefCell<Out>, limit: Duration) -> Self {
        Self { out, limit, pending: None, framing: Framing::Empty, body_sent: 0 }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.out.borrow().sent
    }

    pub(crate) fn record_opening(&self, status: u16, outcome: CacheStatus) {
        self.out.borrow().progress.open(status, outcome, 0);
    }

    pub(crate) fn answered_by(&self, responder: Responder) {
        self.out.borrow().progress.answered_by(responder);
    }

    pub(crate) fn with_progress<T>(&self, read: impl FnOnce(&Progress) -> T) -> T {
        read(&self.out.borrow().progress)
    }

    pub(crate) fn sent_by(&self, user: Option<Arc<str>>) {
        self.out.borrow().progress.sent_by(user);
    }

    pub(crate) fn keyed(&self, key: Key) {
        self.out.borrow().progress.keyed(key);
    }

    pub(crate) fn paced_by(&self, pace: Option<Pace>) {
        self.out.borrow().progress.paced_by(pace);
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        self.out.borrow().progress.pace()
    }

    fn cache_status(&self, outcome: CacheStatus) -> Result<HeaderValue, InvalidHeaderValue> {
        let status = self.out.borrow().progress.cache_status(outcome);
        HeaderValue::try_from(status.to_string())
    }

    pub(crate) fn begin(&mut self, opening: Opening<'_>) -> ConnectionFate {
        let told = self.out.borrow().progress.told(opening.outcome);
        // A node of the fleet also receives the response's tags, because it purges its copies by
        // their tags.
        let fields = match told {
            None => tags::for_client(opening.headers),
            Some(_) => Cow::Borrowed(opening.headers),
        };
        let mut head = head_with(opening.status, &fields);
        let own = head.headers_mut();
        if let Some(age) = opening.age {
            own.append("age", HeaderValue::from(age));
        }
        if opening.varies {
            own.append("vary", HeaderValue::from_static("Accept-Encoding"));
        }
        if let Ok(outcome) = self.cache_status(opening.outcome) {
            own.append("cache-status", outcome);
        }
        if let Some(Ok(told)) = told.map(|told| HeaderValue::try_from(told.to_string())) {
            // Replaces a stored field of this name: the response may be from the time before this
            // node had a fleet.
            own.insert(HeaderName::from_static("foxy-fleet"), told);
        }
        let timing = self.out.borrow().progress.server_timing(opening.outcome);
        if let Some(timing) = timing.and_then(|timing| HeaderValue::try_from(timing).ok()) {
            own.append("server-timing", timing);
        }
        if let Framing::Length(length) = opening.framing {
            own.insert("content-length", HeaderValue::from(length));
        }
        self.out.borrow().progress.open(opening.status, opening.outcome, wire_size(head.headers()));
        self.pending = Some(head);
        self.framing = opening.framing;
        ConnectionFate::Keep
    }

    pub(crate) async fn finish(&mut self, body: Bytes) -> Result<(), WriteEnd> {
        self.open(body.is_empty()).await?;
        self.send(body, true).await
    }

    pub(crate) async fn body(&mut self, data: Bytes) -> Result<(), WriteEnd> {
        self.open(false).await?;
        let last = self.framing == Framing::Length(self.body_sent + data.len() as u64);
        self.send(data, last).await
    }

    pub(crate) async fn end(&mut self, trailers: &Headers) -> Result<(), WriteEnd> {
        self.open(trailers.is_empty()).await?;
        let mut out = self.out.borrow_mut();
        if out.ended {
            return Ok(());
        }
        if trailers.is_empty() {
            return out.data(Bytes::new(), true);
        }
        let trailers = fields_of(trailers);
        out.count(wire_size(&trailers));
        out.ended = true;
        let Some(body) = &mut out.body else { return Err(WriteEnd::Gone) };
        body.send_trailers(trailers).map_err(|_| WriteEnd::Gone)
    }

    pub(crate) async fn flush(&mut self) -> Result<(), WriteEnd> {
        self.open(self.framing == Framing::Empty).await
    }

    /// Sends small pieces of `part`, each as a copy. Without copies, a few bytes that wait for a
    /// slow socket would keep the whole part (up to 1 MiB) in memory.
    pub(crate) async fn part(
        &mut self,
        part: &mut Bytes,
        patience: impl Fn() -> Duration,
    ) -> Result<ClientTook, WriteEnd> {
        self.open(false).await?;
        while !part.is_empty() {
            let room = within(patience(), self.room(part.len().min(COPY_BYTES))).await;
            let Some(room) = room else {
                self.out.borrow_mut().release_room();
                return Ok(ClientTook::Partly);
            };
            let piece = Bytes::copy_from_slice(&part.split_to(room?));
            self.body_sent += piece.len() as u64;
            let last = self.framing == Framing::Length(self.body_sent);
            self.out.borrow_mut().data(piece, last)?;
        }
        Ok(ClientTook::All)
    }

    pub(crate) async fn head(&mut self, head: &ResponseHead) -> Result<(), WriteEnd> {
        let response = head_of(head.status, &head.headers);
        self.wire_room().await?;
        let mut out = self.out.borrow_mut();
        if head.status >= 200 {
            return out.open(response, false);
        }
        out.interim(response)
    }

    /// Tells another node that this node waits for the origin. [`repeat_signs`] repeats this.
    pub(crate) async fn waits_for_origin(&mut self) -> Result<(), WriteEnd> {
        self.head(&sign(MOST_SIGNS)).await?;
        self.out.borrow_mut().signs_left = MOST_SIGNS;
        Ok(())
    }

    pub(crate) async fn writable(&mut self) -> Result<(), WriteEnd> {
        timeout(self.limit, self.room(1)).await.unwrap_or(Err(WriteEnd::Timeout)).map(|_| ())
    }

    /// Sends the head if it was not sent yet. Waits first until the connection's socket has
    /// accepted most of the waiting bytes. `end` means that no body follows.
    async fn open(&mut self, end: bool) -> Result<(), WriteEnd> {
        if self.pending.is_none() {
            return Ok(());
        }
        self.wire_room().await?;
        let Some(head) = self.pending.take() else { return Ok(()) };
        self.out.borrow_mut().open(head, end)
    }

    async fn send(&mut self, mut data: Bytes, last: bool) -> Result<(), WriteEnd> {
        while !data.is_empty() {
            let room = timeout(self.limit, self.room(data.len()))
                .await
                .unwrap_or(Err(WriteEnd::Timeout))?;
            let piece = data.split_to(room);
            self.body_sent += piece.len() as u64;
            self.out.borrow_mut().data(piece, last && data.is_empty())?;
        }
        Ok(())
    }

    async fn wire_room(&self) -> Result<(), WriteEnd> {
        let room = poll_fn(|context| self.out.borrow().poll_wire(context));
        timeout(self.limit, room).await.map(drop).map_err(|_| WriteEnd::Timeout)
    }

    async fn room(&self, wanted: usize) -> Result<usize, WriteEnd> {
        poll_fn(|context| self.out.borrow_mut().poll_room(context, wanted)).await
    }
}

/// Creates an HTTP/2 response head from a status and end-to-end header fields.
fn head_of(status: u16, fields: &Headers) -> Response<()> {
    head_with(status, &tags::for_client(fields))
}

fn head_with(status: u16, fields: &Headers) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *head.headers_mut() = fields_of(fields);
    head
}

/// Returns the number of bytes that the fields would have as HTTP/1.1 header lines.
fn wire_size(fields: &HeaderMap) -> u64 {
    fields.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}

/// Converts header fields for the HTTP/2 library. Leaves out the fields that HTTP/2 forbids (RFC
/// 9113 §8.2.2).
pub(crate) fn fields_of(headers: &Headers) -> HeaderMap {
    const OF_A_CONNECTION: [&str; 6] =
        ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];
    let mut map = HeaderMap::with_capacity(headers.len() + 3);
    for (name, value) in headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        else {
            continue;
        };
        if !OF_A_CONNECTION.contains(&name.as_str()) {
            map.append(name, value);
        }
    }
    map
}
