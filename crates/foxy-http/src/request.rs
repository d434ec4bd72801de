//! Decodes the requests of one client connection without IO. The caller appends received bytes to a
//! buffer and asks for the next part of a request.

use crate::body::{BodyDecoder, BodyEvent, Padding};
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::Headers;
use crate::message::RequestHead;
use crate::parse;
use crate::scan::{FirstLine, Folds, Limits, SectionRules, SectionScanner};
use bytes::{Buf, Bytes, BytesMut};

/// Largest number of empty lines that the decoder skips before a request line. RFC 9112 §2.2 asks
/// for at least one.
const MAX_EMPTY_LINES: usize = 8;

/// A part of a request. The order is Head, Body*, Trailers?, End.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestEvent {
    /// The head of the request and the framing of its body.
    Head(RequestHead, BodyLength),
    /// At least one byte of the body. The bytes share the buffer's memory, without a copy.
    Body(Bytes),
    /// At least one trailer after a chunked body. Fields that trailers must not contain are already
    /// dropped.
    Trailers(Headers),
    /// The end of the request. The bytes that remain in the buffer belong to the next request, or
    /// to a tunnel if the caller opens one.
    End,
}

/// Decodes the requests of one connection, including pipelined requests.
///
/// Append received bytes to a buffer and call [`RequestDecoder::next`] until it returns `None`.
/// Then read more bytes. The decoder removes the bytes that it has decoded. An incomplete head
/// stays in the buffer. Between an `End` and the next `Head`, the buffer belongs to the caller. For
/// a tunnel after CONNECT or Upgrade, the caller no longer calls the decoder.
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
    /// Creates a decoder for a new connection. Allocates no memory.
    pub fn new(limits: Limits) -> Self {
        Self { limits, arena: BytesMut::new(), refused: Bytes::new(), state: DecodeState::head() }
    }

    /// Returns the next part, or `None` if more bytes are needed. Pass the same `buffer` to every
    /// call. Between calls, only append bytes to `buffer`.
    ///
    /// # Errors
    /// The bytes are not an acceptable request. Send [`DecodeError::status`] and close the
    /// connection. Later calls return the same error.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<RequestEvent>, DecodeError> {
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.state = DecodeState::Failed(error);
        }
        result
    }

    /// Returns the refused head if it was complete. Bytes of an incomplete head are still in the
    /// buffer.
    pub fn refused(&self) -> &[u8] {
        &self.refused
    }

    /// Checks that the client closed between requests. Call this function after the client closed
    /// and [`RequestDecoder::next`] returned `None`.
    ///
    /// # Errors
    /// [`DecodeError::TruncatedHead`] or [`DecodeError::TruncatedBody`] if a request is incomplete,
    /// or the error of an earlier call.
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
                let first_line = FirstLine::Request(self.limits.request_line);
                let rules = SectionRules::head(&self.limits, first_line, Folds::Refused);
                let Some(section) = scanner.scan(buffer, &rules)? else {
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

/// Removes empty lines before a request line. Returns whether the buffer may now start with a
/// request line.
fn skip_empty_lines(buffer: &mut BytesMut, skipped: &mut usize) -> Result<bool, DecodeError> {
    loop {
        match buffer.as_ref() {
            [] | [b'\r'] => return Ok(false),
            [b'\r', b'\n', ..] if *skipped < MAX_EMPTY_LINES => {
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
