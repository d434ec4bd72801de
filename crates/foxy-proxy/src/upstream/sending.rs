//! A request that is being sent to an origin. This module receives pieces of the body from the
//! client, frames them for HTTP/1.1, and decides how long to wait for the origin. It does not read
//! or write a connection.

use crate::upstream::error::UpstreamError;
use crate::upstream::settings::UpstreamSettings;
use bytes::{Buf, Bytes, BytesMut};
use foxy_http::{BodyLength, Headers, Method, ResponseEvent, encode};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Number of pieces of a request body that may wait between the client and the origin.
const MAX_WAITING_PIECES: usize = 2;

/// Largest number of buffers that one vectored write sends.
const MAX_SLICES: usize = 8;

/// A piece of a request body. First any number of `Data`, then `End`.
#[derive(Debug)]
pub enum BodyPiece {
    /// Bytes of the body.
    Data(Bytes),
    /// The end of the body, with its trailers.
    End(Headers),
}

/// Passes the pieces of a request body from the client to the exchange. Sending waits while the
/// origin reads nothing. Sending fails once the origin needs no more of the body. Dropping the
/// sender before [`BodyPiece::End`] means that the client has disconnected. A body of known length
/// needs no `End`.
pub type BodySender = mpsc::Sender<BodyPiece>;

/// The body of a request to an origin.
#[derive(Debug)]
pub struct RequestBody {
    length: BodyLength,
    left: BodyLeft,
    pieces: Option<mpsc::Receiver<BodyPiece>>,
}

/// A piece of a body that fits the announced length of the body.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Bytes of the body. `last` marks the last bytes of a body of known length.
    Data { data: Bytes, last: bool },
    /// The end of a body of unknown length, with its trailers.
    End(Headers),
    /// The end of a body that was already complete, so nothing is left to send.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLeft {
    Bytes(u64),
    Chunks,
}

impl RequestBody {
    /// Creates a body for a request that has none, and sends no header field about a body.
    pub fn none() -> Self {
        Self { length: BodyLength::None, left: BodyLeft::Bytes(0), pieces: None }
    }

    /// Creates a body with this framing, whose pieces arrive through the returned sender. A body of
    /// length 0 is complete immediately, and accepts no pieces.
    pub fn channel(length: BodyLength) -> (BodySender, Self) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_PIECES);
        let left = match length {
            BodyLength::Chunked => BodyLeft::Chunks,
            BodyLength::Length(bytes) => BodyLeft::Bytes(bytes),
            BodyLength::None | BodyLength::UntilClose | BodyLength::Tunnel => BodyLeft::Bytes(0),
        };
        let pieces = (left != BodyLeft::Bytes(0)).then_some(receiver);
        (sender, Self { length, left, pieces })
    }

    /// Returns the framing of the body: its length, chunks, or no body.
    pub fn length(&self) -> BodyLength {
        self.length
    }

    /// Returns true if no more pieces of the body are needed. A request whose body is complete from
    /// the start can be sent a second time.
    pub(crate) fn is_complete(&self) -> bool {
        self.pieces.is_none() || self.left == BodyLeft::Bytes(0)
    }

    /// Accepts no more pieces. The client's side then fails to send pieces.
    pub(crate) fn refuse(&mut self) {
        self.pieces = None;
    }

    /// Returns the next piece of the body, or `None` if the client has disconnected. If the body is
    /// complete, waits for ever. Dropping the future loses no piece.
    pub(crate) async fn next(&mut self) -> Option<BodyPiece> {
        match &mut self.pieces {
            Some(pieces) => pieces.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Checks a piece against the announced length of the body. `None` as a piece means that the
    /// client has disconnected.
    pub(crate) fn accept(&mut self, piece: Option<BodyPiece>) -> Result<Accepted, UpstreamError> {
        match (piece, self.left) {
            (Some(BodyPiece::Data(data)), BodyLeft::Chunks) => {
                Ok(Accepted::Data { data, last: false })
            }
            (Some(BodyPiece::End(trailers)), BodyLeft::Chunks) => {
                self.pieces = None;
                Ok(Accepted::End(trailers))
            }
            (Some(BodyPiece::Data(data)), BodyLeft::Bytes(left)) if data.len() as u64 <= left => {
                let left = left - data.len() as u64;
                self.left = BodyLeft::Bytes(left);
                Ok(Accepted::Data { data, last: left == 0 })
            }
            (Some(BodyPiece::End(_)), BodyLeft::Bytes(0)) => Ok(Accepted::Nothing),
            _ => Err(UpstreamError::RequestBodyBroken),
        }
    }

    /// Adds a piece in HTTP/1.1 framing to the queue. `None` as a piece means that the client has
    /// disconnected.
    pub(crate) fn frame(
        &mut self,
        piece: Option<BodyPiece>,
        out: &mut OutgoingBody,
    ) -> Result<(), UpstreamError> {
        match self.accept(piece)? {
            Accepted::Data { data, .. } if self.left != BodyLeft::Chunks => out.push(data),
            Accepted::Data { data, .. } if data.is_empty() => {}
            Accepted::Data { data, .. } => {
                out.push(Bytes::copy_from_slice(encode::ChunkHeader::new(data.len()).as_bytes()));
                out.push(data);
                out.push(Bytes::from_static(encode::CRLF));
            }
            Accepted::End(trailers) => {
                let mut end = BytesMut::new();
                encode::last_chunk(&trailers, &mut end);
                out.push(end.freeze());
            }
            Accepted::Nothing => {}
        }
        Ok(())
    }
}

/// Bytes of a request that wait to be written to the connection.
#[derive(Debug, Default)]
pub(crate) struct OutgoingBody {
    queue: VecDeque<Bytes>,
}

impl OutgoingBody {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.queue.push_back(bytes);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }

    /// Returns the first bytes of the queue for one vectored write, and the number of buffers that
    /// contain them.
    pub(crate) fn slices(&self) -> ([IoSlice<'_>; MAX_SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let mut count = 0;
        for (slice, bytes) in slices.iter_mut().zip(&self.queue) {
            *slice = IoSlice::new(bytes);
            count += 1;
        }
        (slices, count)
    }

    /// Removes `count` written bytes from the queue.
    pub(crate) fn written(&mut self, mut count: usize) {
        while let Some(front) = self.queue.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.queue.pop_front();
        }
    }
}

/// The request, with the bytes of its body that the origin has not received yet.
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) target: Bytes,
    pub(crate) headers: Headers,
    pub(crate) body: RequestBody,
    pub(crate) upgrade: bool,
    pub(crate) waits_for_continue: bool,
    /// True if a piece of the body was already taken from the client. The request can then not be
    /// sent a second time.
    pub(crate) taken: bool,
    pub(crate) stage: Stage,
    /// Time limit for the final response head.
    pub(crate) head_timeout: Duration,
    /// Time when the origin last accepted bytes of the request, or last sent a byte of the response
    /// body.
    pub(crate) active: Instant,
}

/// The part of the response that the exchange expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Head,
    Body,
    Done,
}

/// The event that ended a wait for the origin.
pub(crate) enum WaitEnd {
    Event(ResponseEvent),
    ContinueTimeout,
    /// The origin did not answer. The reason decides whether the request may be sent again.
    Retry(RetryReason),
}

/// The reason why a request may perhaps be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryReason {
    /// The origin closed an idle connection before it answered the request on this connection.
    Lost,
    /// The origin reported that it did not process the request (RFC 9113 §8.7).
    Refused,
    /// The origin requires HTTP/1.1 for this request (RFC 9113 §9.2.3).
    OverHttp1,
    /// A parent proxy refused the credentials, and another parent exists.
    OtherParent,
    /// A server of the origin failed, and another server exists.
    OtherServer,
}

impl OutgoingRequest {
    /// Returns true if the exchange should take the next piece of the body from the client.
    pub(crate) fn wants_piece(&self) -> bool {
        !self.waits_for_continue && !self.body.is_complete()
    }

    pub(crate) fn touch(&mut self) {
        self.active = Instant::now();
    }

    /// Returns the time at which the proxy stops waiting if the origin neither accepts nor sends a
    /// byte. `sending` means that bytes are ready for the origin. Returns `None` while the proxy
    /// waits for the client.
    pub(crate) fn deadline(&self, sending: bool, settings: &UpstreamSettings) -> Option<Instant> {
        let wait = match self.stage {
            Stage::Head if self.waits_for_continue && !sending => settings.continue_timeout,
            Stage::Head if !sending && self.wants_piece() => return None,
            Stage::Head => self.head_timeout,
            Stage::Body | Stage::Done => settings.body_timeout,
        };
        Some(self.active + wait)
    }

    /// Handles a deadline that has passed: returns the next step of the exchange, or an error.
    /// `sent` means that all available bytes were sent.
    pub(crate) fn timed_out(&self, sent: bool) -> Result<WaitEnd, UpstreamError> {
        match self.stage {
            Stage::Head if self.waits_for_continue && sent => Ok(WaitEnd::ContinueTimeout),
            Stage::Head => Err(UpstreamError::HeadTimeout),
            Stage::Body | Stage::Done => Err(UpstreamError::BodyTimeout),
        }
    }
}

/// Waits until `deadline`. Without a deadline, waits for ever.
pub(crate) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(length: BodyLength, pieces: Vec<Option<BodyPiece>>) -> Result<Vec<u8>, UpstreamError> {
        let (_sender, mut body) = RequestBody::channel(length);
        let mut out = OutgoingBody::default();
        for piece in pieces {
            body.frame(piece, &mut out)?;
        }
        Ok(out.queue.into_iter().flatten().collect())
    }

    fn data(bytes: &'static [u8]) -> Option<BodyPiece> {
        Some(BodyPiece::Data(Bytes::from_static(bytes)))
    }

    fn end() -> Option<BodyPiece> {
        Some(BodyPiece::End(Headers::new()))
    }

    #[test]
    fn pieces_are_framed_as_the_head_said() {
        let chunked = wire(BodyLength::Chunked, vec![data(b"hello"), data(b""), data(b"!"), end()]);
        assert_eq!(chunked.expect("chunked"), b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n");
        let counted = wire(BodyLength::Length(6), vec![data(b"hello"), data(b"!"), end()]);
        assert_eq!(counted.expect("counted"), b"hello!");
    }

    #[test]
    fn trailers_follow_the_last_chunk() {
        let mut trailers = Headers::new();
        trailers.append("X-Sum", "1");
        let body = wire(BodyLength::Chunked, vec![Some(BodyPiece::End(trailers))]);
        assert_eq!(body.expect("trailers"), b"0\r\nX-Sum: 1\r\n\r\n");
    }

    #[test]
    fn a_body_that_breaks_its_length_is_not_sent_as_whole() {
        let cases = [
            (BodyLength::Length(6), vec![data(b"hello"), end()]),
            (BodyLength::Length(4), vec![data(b"hello")]),
            (BodyLength::Length(6), vec![data(b"hello"), None]),
            (BodyLength::Chunked, vec![data(b"hello"), None]),
        ];
        for (length, pieces) in cases {
            assert_eq!(wire(length, pieces), Err(UpstreamError::RequestBodyBroken), "{length:?}");
        }
    }

    #[test]
    fn partial_writes_leave_the_rest() {
        let mut out = OutgoingBody::default();
        out.push(Bytes::from_static(b"abc"));
        out.push(Bytes::from_static(b"def"));
        out.written(4);
        let (slices, count) = out.slices();
        assert_eq!((count, &slices[0][..]), (1, &b"ef"[..]));
        out.written(2);
        assert!(out.is_empty());
    }
}
