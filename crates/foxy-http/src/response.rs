//! Reads the responses of one origin connection. It must know every request, because the method
//! frames the response.

use crate::body::{BodyDecoder, BodyEvent, Padding};
use crate::connection::{CloseReason, Persistence};
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::Headers;
use crate::message::{Method, ResponseHead};
use crate::parse;
use crate::scan::{FirstLine, Folds, Limits, SectionRules, SectionScanner};
use bytes::{Bytes, BytesMut};

/// A part of a response, in the order Interim*, Head, Body*, Trailers?, End.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseEvent {
    /// A 1xx head other than 101. The final head is still to come.
    Interim(ResponseHead),
    /// The final head, and the framing of its body. With [`BodyLength::Tunnel`] an `End` follows,
    /// and all later bytes, those in the buffer too, belong to the tunnel.
    Head(ResponseHead, BodyLength),
    /// At least one byte of the body, cut from the buffer without copying.
    Body(Bytes),
    /// At least one trailer after a chunked body, without the fields that trailers must not have.
    Trailers(Headers),
    /// The end of the response.
    End,
}

/// Why a connection cannot take another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReusable {
    /// A response is awaited or not read to its end, or the stream had an error.
    Unfinished,
    /// The last response ended the connection.
    Closing(CloseReason),
    /// Unrequested bytes follow the last response (RFC 9112 §9.2).
    ExtraBytes,
}

/// Whether a response may begin with these bytes, of which more may follow (RFC 9112 §4).
pub fn may_begin_response(bytes: &[u8]) -> bool {
    let fits = |(&expected, byte): (&u8, &u8)| {
        if expected == b'#' { byte.is_ascii_digit() } else { expected == *byte }
    };
    b"HTTP/1.# ###".iter().zip(bytes).all(fits)
}

/// Reads responses from one connection, one exchange at a time.
///
/// Call [`ResponseDecoder::expect`] when a request is sent. Append received bytes to a buffer and
/// call [`ResponseDecoder::next`] until it returns `None`, then read more. Call
/// [`ResponseDecoder::eof`] at the end of the stream, and [`ResponseDecoder::reusable`] before the
/// next request.
#[derive(Debug)]
pub struct ResponseDecoder {
    limits: Limits,
    arena: BytesMut,
    persistence: Persistence,
    /// Whether an interim response announced a body.
    body_may_come: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Idle,
    Head { method: Method, upgrade: Upgrade, scanner: SectionScanner, interim: usize },
    Body(BodyDecoder),
    Tunnel,
    Failed(DecodeError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upgrade {
    Asked,
    NotAsked,
}

impl Default for ResponseDecoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl ResponseDecoder {
    /// A decoder for a new connection. Allocates nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            arena: BytesMut::new(),
            persistence: Persistence::KeepAlive,
            body_may_come: false,
            state: State::Idle,
        }
    }

    /// Notes a sent request without Upgrade.
    ///
    /// # Panics
    /// If the previous response is not complete: one exchange at a time.
    pub fn expect(&mut self, method: &Method) {
        self.start(method, Upgrade::NotAsked);
    }

    /// Notes a sent request with Upgrade, which a 101 may answer.
    ///
    /// # Panics
    /// If the previous response is not complete.
    pub fn expect_upgrade(&mut self, method: &Method) {
        self.start(method, Upgrade::Asked);
    }

    fn start(&mut self, method: &Method, upgrade: Upgrade) {
        assert!(
            matches!(self.state, State::Idle),
            "a request was sent before the last response was complete"
        );
        let method = method.clone();
        self.state =
            State::Head { method, upgrade, scanner: SectionScanner::default(), interim: 0 };
    }

    /// Next part, or `None` if more bytes are needed. Every call takes the same `buffer`, which may
    /// only have grown.
    ///
    /// # Errors
    /// The bytes are not an acceptable response. Answer 502 if no head was forwarded yet, else
    /// close both connections. Later calls return the same error.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseEvent>, DecodeError> {
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// The server has closed and [`ResponseDecoder::next`] returned `None`. Returns the `End` of a
    /// body until the close, or `None` if no response was under way.
    ///
    /// # Errors
    /// [`DecodeError::TruncatedHead`] or [`DecodeError::TruncatedBody`] within a response, or the
    /// earlier error.
    pub fn eof(&mut self) -> Result<Option<ResponseEvent>, DecodeError> {
        let result = match self.state {
            State::Idle | State::Tunnel => Ok(None),
            State::Body(BodyDecoder::UntilClose) => {
                self.state = State::Idle;
                return Ok(Some(ResponseEvent::End));
            }
            State::Head { .. } => Err(DecodeError::TruncatedHead),
            State::Body(_) => Err(DecodeError::TruncatedBody),
            State::Failed(error) => Err(error),
        };
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// Whether another request may be sent on this connection.
    ///
    /// # Errors
    /// Why not. Close the connection.
    pub fn reusable(&self, buffer: &BytesMut) -> Result<(), NotReusable> {
        match (&self.state, self.persistence) {
            (State::Tunnel, _) => Err(NotReusable::Closing(CloseReason::Tunnel)),
            (State::Head { .. } | State::Body(_) | State::Failed(_), _) => {
                Err(NotReusable::Unfinished)
            }
            (State::Idle, Persistence::Close(reason)) => Err(NotReusable::Closing(reason)),
            (State::Idle, Persistence::KeepAlive) if !buffer.is_empty() => {
                Err(NotReusable::ExtraBytes)
            }
            (State::Idle, Persistence::KeepAlive) => Ok(()),
        }
    }

    fn advance(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseEvent>, DecodeError> {
        match &mut self.state {
            State::Failed(error) => Err(*error),
            State::Tunnel => Ok(None),
            State::Idle if buffer.is_empty() => Ok(None),
            State::Idle => Err(DecodeError::UnexpectedResponse),
            State::Head { .. } => self.next_head(buffer),
            State::Body(body) => {
                Ok(body.next(buffer, &mut self.arena, &self.limits)?.map(|event| match event {
                    BodyEvent::Data(bytes) => ResponseEvent::Body(bytes),
                    BodyEvent::Trailers(trailers) => ResponseEvent::Trailers(trailers),
                    BodyEvent::End => {
                        let tunnel = self.persistence == Persistence::Close(CloseReason::Tunnel);
                        self.state = if tunnel { State::Tunnel } else { State::Idle };
                        ResponseEvent::End
                    }
                }))
            }
        }
    }

    fn next_head(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseEvent>, DecodeError> {
        let State::Head { method, upgrade, scanner, interim } = &mut self.state else {
            return Ok(None);
        };
        let rules = SectionRules::head(&self.limits, FirstLine::Status, Folds::Allowed);
        let Some(section) = scanner.scan(buffer, &rules)? else {
            return Ok(None);
        };
        let text = parse::take_section(buffer, &mut self.arena, &section);
        let mut head = parse::response(text, &section)?;
        let (length, persistence) = framing::response(method, &mut head)?;
        if head.status == 101 && *upgrade == Upgrade::NotAsked {
            return Err(DecodeError::UnexpectedSwitch);
        }
        if head.status < 200 && head.status != 101 {
            *interim += 1;
            if *interim > self.limits.interim_responses {
                return Err(DecodeError::TooManyInterimResponses);
            }
            *scanner = SectionScanner::default();
            self.body_may_come |= persistence == Persistence::Close(CloseReason::BodyNotAllowed);
            return Ok(Some(ResponseEvent::Interim(head)));
        }
        self.persistence = match persistence {
            Persistence::KeepAlive if self.body_may_come => {
                Persistence::Close(CloseReason::BodyNotAllowed)
            }
            found => found,
        };
        self.state = State::Body(BodyDecoder::new(length, Padding::Skipped));
        Ok(Some(ResponseEvent::Head(head, length)))
    }
}
