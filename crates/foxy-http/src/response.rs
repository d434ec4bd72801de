//! Reads the responses of one origin connection. It is told of every request, because a response
//! cannot be framed without the method it answers.

use crate::body::{BodyDecoder, BodyEvent};
use crate::chunked::Padding;
use crate::connection::{CloseReason, Persistence};
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::Headers;
use crate::limits::Limits;
use crate::message::{Method, ResponseHead};
use crate::parse;
use crate::scan::{FirstLine, Folds, SectionRules, SectionScanner};
use bytes::{Bytes, BytesMut};

/// A part of a response, in the order Interim*, Head, Body*, Trailers?, End.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseEvent {
    /// A 1xx head other than 101; the final head is still to come.
    Interim(ResponseHead),
    /// The final head, and how its body is delimited. With [`BodyLength::Tunnel`] an `End` follows,
    /// and all bytes after it, those in the buffer too, belong to the tunnel.
    Head(ResponseHead, BodyLength),
    /// Body bytes, cut from the buffer without copying. Never empty.
    Body(Bytes),
    /// Trailers after a chunked body, without the fields trailers must not have. Never empty.
    Trailers(Headers),
    /// The response is complete.
    End,
}

/// Why a connection cannot take another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReusable {
    /// A response is awaited or not read to its end, or the stream had an error.
    Unfinished,
    /// The last response ended the connection.
    Closing(CloseReason),
    /// There are bytes after the last response that no request asked for (RFC 9112 §9.2).
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
/// Call [`ResponseDecoder::expect`] when a request is sent; then append received bytes to a buffer
/// and call [`ResponseDecoder::next`] until it gives `None`, then read more; at the end of the
/// stream call [`ResponseDecoder::eof`]. Before the connection is used again, ask
/// [`ResponseDecoder::reusable`].
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
    /// A decoder for a new connection; allocates nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            arena: BytesMut::new(),
            persistence: Persistence::KeepAlive,
            body_may_come: false,
            state: State::Idle,
        }
    }

    /// Says that a request with this method and without Upgrade was sent.
    ///
    /// # Panics
    /// If the response before is not complete: one exchange at a time.
    pub fn expect(&mut self, method: &Method) {
        self.start(method, Upgrade::NotAsked);
    }

    /// Says that a request with this method and with Upgrade was sent, so that a 101 may answer it.
    ///
    /// # Panics
    /// If the response before is not complete.
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

    /// The next part, or `None` if more bytes are needed. `buffer` must be the same at every call,
    /// only grown.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not a response we accept. Answer 502 if no head was
    /// forwarded yet, and close both connections otherwise; the error is given again at every later
    /// call.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<ResponseEvent>, DecodeError> {
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// The server has closed and [`ResponseDecoder::next`] gave `None`: the `End` of a body until
    /// the close, or `None` if no response was under way.
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
    /// [`NotReusable`] says why not; the connection must then be closed.
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
        let Some(section) = scanner.scan(buffer, &head_rules(&self.limits))? else {
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

fn head_rules(limits: &Limits) -> SectionRules {
    SectionRules {
        length: limits.head,
        too_long: DecodeError::HeadTooLarge,
        first_line: FirstLine::Status,
        headers: limits.headers,
        folds: Folds::Allowed,
    }
}
