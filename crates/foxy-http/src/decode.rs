//! Reads the requests of one client connection. It does no IO: the caller fills the buffer and asks
//! for events.

use crate::body::{BodyDecoder, BodyEvent};
use crate::chunked::Padding;
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::Headers;
use crate::limits::Limits;
use crate::message::RequestHead;
use crate::parse;
use crate::scan::{FirstLine, Folds, SectionRules, SectionScanner};
use bytes::{Buf, Bytes, BytesMut};

/// Empty lines before a request line that are skipped (RFC 9112 §2.2 asks for one at least).
const EMPTY_LINES: usize = 8;

/// A part of a request, in the order Head, Body*, Trailers?, End.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestEvent {
    /// The head, and how its body is delimited.
    Head(RequestHead, BodyLength),
    /// Body bytes, cut from the buffer without copying. Never empty.
    Body(Bytes),
    /// Trailers after a chunked body, without the fields trailers must not have. Never empty.
    Trailers(Headers),
    /// The request is complete. Bytes left in the buffer are of the next one, or of a tunnel if the
    /// caller makes one.
    End,
}

/// Reads requests from one connection, pipelined ones too.
///
/// Append received bytes to a buffer and call [`RequestDecoder::next`] until it gives `None`; then
/// read more. The decoder takes what it has understood out of the buffer and leaves the rest, so it
/// holds no bytes but those of heads in flight. Between an `End` and the next `Head` the buffer is
/// the caller's: a tunnel after CONNECT or Upgrade simply stops asking.
#[derive(Debug)]
pub struct RequestDecoder {
    limits: Limits,
    arena: BytesMut,
    refused: Bytes,
    state: DecodeState,
}

#[derive(Debug)]
enum DecodeState {
    Head { scanner: SectionScanner, empty_lines: usize },
    Body(BodyDecoder),
    Failed(DecodeError),
}

impl DecodeState {
    fn head() -> Self {
        Self::Head { scanner: SectionScanner::default(), empty_lines: 0 }
    }
}

impl Default for RequestDecoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl RequestDecoder {
    /// A decoder for a new connection; allocates nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, arena: BytesMut::new(), refused: Bytes::new(), state: DecodeState::head() }
    }

    /// The next part, or `None` if more bytes are needed. `buffer` must be the same at every call,
    /// only grown.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes are not a request we accept. Answer with its status and close;
    /// the error is given again at every later call.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<RequestEvent>, DecodeError> {
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.state = DecodeState::Failed(error);
        }
        result
    }

    /// What was read of the head that is refused, where that was whole; what is not whole is still
    /// in the buffer.
    pub fn refused(&self) -> &[u8] {
        &self.refused
    }

    /// Whether the client may close here: call it when the client has closed and
    /// [`RequestDecoder::next`] gave `None`.
    ///
    /// # Errors
    /// [`DecodeError::TruncatedHead`] or [`DecodeError::TruncatedBody`] within a request, or the
    /// earlier error.
    pub fn eof(&self, buffer: &BytesMut) -> Result<(), DecodeError> {
        match self.state {
            DecodeState::Head { .. } if buffer.is_empty() => Ok(()),
            DecodeState::Head { .. } => Err(DecodeError::TruncatedHead),
            DecodeState::Body(_) => Err(DecodeError::TruncatedBody),
            DecodeState::Failed(error) => Err(error),
        }
    }

    fn advance(&mut self, buffer: &mut BytesMut) -> Result<Option<RequestEvent>, DecodeError> {
        match &mut self.state {
            DecodeState::Failed(error) => Err(*error),
            DecodeState::Head { scanner, empty_lines } => {
                if !skip_empty_lines(buffer, empty_lines)? {
                    return Ok(None);
                }
                let Some(section) = scanner.scan(buffer, &head_rules(&self.limits))? else {
                    return Ok(None);
                };
                let text = parse::take_section(buffer, &mut self.arena, &section);
                let head = parse::request(text.clone(), &section).and_then(|head| {
                    let length = framing::request(&head)?;
                    Ok((head, length))
                });
                let (head, length) = head.inspect_err(|_| self.refused = text)?;
                self.state = DecodeState::Body(BodyDecoder::new(length, Padding::Refused));
                Ok(Some(RequestEvent::Head(head, length)))
            }
            DecodeState::Body(body) => {
                Ok(body.next(buffer, &mut self.arena, &self.limits)?.map(|event| match event {
                    BodyEvent::Data(bytes) => RequestEvent::Body(bytes),
                    BodyEvent::Trailers(trailers) => RequestEvent::Trailers(trailers),
                    BodyEvent::End => {
                        self.state = DecodeState::head();
                        RequestEvent::End
                    }
                }))
            }
        }
    }
}

/// Drops CRLFs before a request line; whether a request line can start at the front now.
fn skip_empty_lines(buffer: &mut BytesMut, skipped: &mut usize) -> Result<bool, DecodeError> {
    loop {
        match buffer.as_ref() {
            [] | [b'\r'] => return Ok(false),
            [b'\r', b'\n', ..] if *skipped < EMPTY_LINES => {
                *skipped += 1;
                buffer.advance(2);
            }
            [b'\r', b'\n', ..] => return Err(DecodeError::InvalidRequestLine),
            [b'\r', ..] => return Err(DecodeError::BareCarriageReturn),
            [b'\n', ..] => return Err(DecodeError::BareLineFeed),
            _ => return Ok(true),
        }
    }
}

fn head_rules(limits: &Limits) -> SectionRules {
    SectionRules {
        length: limits.head,
        too_long: DecodeError::HeadTooLarge,
        first_line: FirstLine::Request(limits.request_line),
        headers: limits.headers,
        folds: Folds::Refused,
    }
}
