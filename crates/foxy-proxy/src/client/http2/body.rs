//! The body of a request as it comes through an HTTP/2 stream. The client may send more once a
//! piece was taken.

use crate::client::http2::fields::fields;
use crate::client::http2::wire::Wire;
use crate::client::io::ReadEnd;
use bytes::Bytes;
use foxy_http::{DecodeError, Limits, RequestEvent, http2};
use h2::RecvStream;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::timeout;

/// What a client sends through a stream, behind the head.
pub(crate) struct Http2Body {
    stream: RecvStream,
    limits: Limits,
    wire: Rc<Wire>,
    /// Bytes handed out that the client does not know to be taken yet.
    held: usize,
    place: BodyPhase,
}

/// How far it has come.
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

    /// The next part; it may take `limit` to come.
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

    /// More of the body, never nothing; `None` at its end.
    pub(crate) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, ReadEnd>> {
        let held = std::mem::take(&mut self.held);
        // That fails once the stream is gone; then nobody waits for room.
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
