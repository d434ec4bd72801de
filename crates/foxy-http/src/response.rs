//! Decodes the responses of one origin connection. The decoder must know the method of each
//! request, because the framing of the response depends on it.

use crate::body::{BodyDecoder, BodyEvent, Padding};
use crate::connection::{CloseReason, Persistence};
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::Headers;
use crate::message::{Method, ResponseHead};
use crate::parse;
use crate::scan::{FirstLine, Folds, Limits, SectionRules, SectionScanner};
use bytes::{Bytes, BytesMut};

/// A part of a response. The order is Interim*, Head, Body*, Trailers?, End.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseEvent {
    /// A 1xx head other than 101. The final head follows later.
    Interim(ResponseHead),
    /// The final head and the framing of its body. After [`BodyLength::Tunnel`], an `End` follows.
    /// All later bytes then belong to the tunnel, including the bytes in the buffer.
    Head(ResponseHead, BodyLength),
    /// At least one byte of the body. The bytes share the buffer's memory, without a copy.
    Body(Bytes),
    /// At least one trailer after a chunked body. Fields that trailers must not contain are already
    /// dropped.
    Trailers(Headers),
    /// The end of the response.
    End,
}

/// The reason why a connection cannot carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReusable {
    /// A response has not arrived completely, or the stream had an error.
    Unfinished,
    /// The last response ends the use of the connection, for this reason.
    Closing(CloseReason),
    /// The server sent bytes after the last response that belong to no request (RFC 9112 §9.2).
    ExtraBytes,
}

/// Whether `bytes` can be the beginning of a response (RFC 9112 §4). More bytes may follow.
pub fn may_begin_response(bytes: &[u8]) -> bool {
    let fits = |(&expected, byte): (&u8, &u8)| {
        if expected == b'#' { byte.is_ascii_digit() } else { expected == *byte }
    };
    b"HTTP/1.# ###".iter().zip(bytes).all(fits)
}

/// Decodes the responses of one connection, one exchange at a time.
///
/// Call [`ResponseDecoder::expect`] when a request is sent. Append received bytes to a buffer and
/// call [`ResponseDecoder::next`] until it returns `None`. Then read more bytes. Call
/// [`ResponseDecoder::eof`] at the end of the stream, and [`ResponseDecoder::reusable`] before the
/// next request.
#[derive(Debug)]
pub struct ResponseDecoder {
    limits: Limits,
    arena: BytesMut,
    persistence: Persistence,
    /// Whether an interim response announced a body. Bytes of that body may still arrive, so the
    /// connection must close after the response.
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
    /// Creates a decoder for a new connection. Allocates no memory.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            arena: BytesMut::new(),
            persistence: Persistence::KeepAlive,
            body_may_come: false,
            state: State::Idle,
        }
    }

    /// Tells the decoder that a request without Upgrade was sent.
    ///
    /// # Panics
    /// If the previous response is not complete: only one exchange at a time is possible.
    pub fn expect(&mut self, method: &Method) {
        self.start(method, Upgrade::NotAsked);
    }

    /// Tells the decoder that a request with Upgrade was sent. A 101 may answer this request.
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

    /// Returns the next part, or `None` if more bytes are needed. Pass the same `buffer` to every
    /// call. Between calls, only append bytes to `buffer`.
    ///
    /// # Errors
    /// The bytes are not an acceptable response. Send 502 if no head was forwarded yet, otherwise
    /// close both connections. Later calls return the same error.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseEvent>, DecodeError> {
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// Call this function after the server has closed and [`ResponseDecoder::next`] has returned
    /// `None`. Returns the `End` of a body that lasts until the close, or `None` if no response was
    /// in progress.
    ///
    /// # Errors
    /// [`DecodeError::TruncatedHead`] or [`DecodeError::TruncatedBody`] if a response is
    /// incomplete, or the error of an earlier call.
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

    /// Checks whether another request may be sent on this connection.
    ///
    /// # Errors
    /// Returns the reason why the connection cannot be reused. The caller must close the
    /// connection.
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
