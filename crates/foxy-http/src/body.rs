//! Reads message bodies: by length, until the connection closes, or in the chunked coding (RFC 9112
//! §7.1). The chunked reader is strict: every line must end in CRLF, and sizes must be plain
//! hexadecimal. It limits the size of chunk extensions and drops them. Only responses may have
//! blanks after a size, because old origins send them.

use crate::error::DecodeError;
use crate::framing::BodyLength;
use crate::headers::Headers;
use crate::parse;
use crate::scan::{FirstLine, Folds, Limits, SectionRules, SectionScanner};
use bytes::{Buf, Bytes, BytesMut};

pub(crate) enum BodyEvent {
    Data(Bytes),
    Trailers(Headers),
    End,
}

/// Reads the remaining bytes of one body.
#[derive(Debug)]
pub(crate) enum BodyDecoder {
    Left(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

impl BodyDecoder {
    pub(crate) fn new(length: BodyLength, padding: Padding) -> Self {
        match length {
            BodyLength::None | BodyLength::Tunnel => Self::Left(0),
            BodyLength::Length(bytes) => Self::Left(bytes),
            BodyLength::Chunked => Self::Chunked(ChunkedDecoder::new(padding)),
            BodyLength::UntilClose => Self::UntilClose,
        }
    }

    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        arena: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<BodyEvent>, DecodeError> {
        Ok(Some(match self {
            Self::Left(0) => BodyEvent::End,
            Self::Chunked(chunked) => return chunked.next(buffer, arena, limits),
            _ if buffer.is_empty() => return Ok(None),
            Self::UntilClose => BodyEvent::Data(buffer.split().freeze()),
            Self::Left(left) => take_data(left, buffer),
        }))
    }
}

/// Removes up to `left` bytes of the body from the buffer.
fn take_data(left: &mut u64, buffer: &mut BytesMut) -> BodyEvent {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
    *left -= length as u64;
    BodyEvent::Data(buffer.split_to(length).freeze())
}

/// Largest number of hexadecimal digits in a 64-bit size.
const MAX_SIZE_DIGITS: usize = 16;

/// Fields that a recipient needs before the body, so they must not come as trailers (RFC 9110
/// §6.5.1). Some recipients add the trailers to the header.
const FORBIDDEN_TRAILERS: [&str; 36] = [
    "age",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
    "warning",
    "www-authenticate",
];

/// Whether blanks may stand between a chunk size and the end of its line. Blanks before an
/// extension are always allowed (RFC 9112 §7.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    Refused,
    Skipped,
}

#[derive(Debug)]
pub(crate) struct ChunkedDecoder {
    state: ChunkedState,
    padding: Padding,
    extension_bytes: usize,
}

#[derive(Debug, Default)]
enum ChunkedState {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers(SectionScanner),
    End,
}

impl ChunkedDecoder {
    pub(crate) fn new(padding: Padding) -> Self {
        Self { state: ChunkedState::default(), padding, extension_bytes: 0 }
    }

    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        arena: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<BodyEvent>, DecodeError> {
        loop {
            match &mut self.state {
                ChunkedState::Size => match self.take_size(buffer, limits)? {
                    None => return Ok(None),
                    Some(0) => self.state = ChunkedState::Trailers(SectionScanner::default()),
                    Some(size) => self.state = ChunkedState::Data(size),
                },
                ChunkedState::Data(_) if buffer.is_empty() => return Ok(None),
                ChunkedState::Data(left) => {
                    let data = take_data(left, buffer);
                    if *left == 0 {
                        self.state = ChunkedState::DataEnd;
                    }
                    return Ok(Some(data));
                }
                ChunkedState::DataEnd => match buffer.as_ref() {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        self.state = ChunkedState::Size;
                    }
                    [] | [b'\r'] => return Ok(None),
                    _ => return Err(DecodeError::InvalidChunkEnd),
                },
                ChunkedState::Trailers(scanner) => {
                    let Some(section) = scanner.scan(buffer, &trailer_rules(limits))? else {
                        return Ok(None);
                    };
                    self.state = ChunkedState::End;
                    let text = parse::take_section(buffer, arena, &section);
                    let mut trailers = parse::trailers(text, &section)?;
                    drop_forbidden_trailers(&mut trailers);
                    if !trailers.is_empty() {
                        return Ok(Some(BodyEvent::Trailers(trailers)));
                    }
                }
                ChunkedState::End => return Ok(Some(BodyEvent::End)),
            }
        }
    }

    /// Reads a whole chunk-size line. Returns `None` if more bytes are needed.
    fn take_size(
        &mut self,
        buffer: &mut BytesMut,
        limits: &Limits,
    ) -> Result<Option<u64>, DecodeError> {
        let digits = buffer
            .iter()
            .take(MAX_SIZE_DIGITS + 1)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        if digits > MAX_SIZE_DIGITS || (digits == 0 && !buffer.is_empty()) {
            return Err(DecodeError::InvalidChunkSize);
        }
        let most = limits.chunk_extensions.saturating_sub(self.extension_bytes);
        let window = &buffer[digits..buffer.len().min(digits + most + 2)];
        let Some(index) = memchr::memchr2(b'\r', b'\n', window) else {
            check_extension(window)?;
            return if window.len() > most {
                Err(DecodeError::ChunkExtensionsTooLarge)
            } else {
                Ok(None)
            };
        };
        check_extension(&window[..index])?;
        match window[index..] {
            [b'\r', b'\n', ..] => {}
            [b'\r'] if index <= most && buffer.len() == digits + index + 1 => return Ok(None),
            [b'\r'] => return Err(DecodeError::ChunkExtensionsTooLarge),
            _ => return Err(DecodeError::InvalidChunkLine),
        }
        if index > 0 && self.padding == Padding::Refused && !window[..index].contains(&b';') {
            return Err(DecodeError::InvalidChunkSize);
        }
        let size = buffer[..digits]
            .iter()
            .fold(0, |size, &digit| size << 4 | u64::from(hexadecimal(digit)));
        self.extension_bytes += index;
        buffer.advance(digits + index + 2);
        Ok(Some(size))
    }
}

/// Checks the bytes after the size in a chunk-size line. These bytes may be blanks, then optionally
/// an extension without control bytes.
fn check_extension(text: &[u8]) -> Result<(), DecodeError> {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if text.get(blanks).is_some_and(|&byte| byte != b';') {
        return Err(DecodeError::InvalidChunkSize);
    }
    let is_forbidden = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    if text.iter().any(is_forbidden) { Err(DecodeError::InvalidChunkLine) } else { Ok(()) }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn trailer_rules(limits: &Limits) -> SectionRules {
    SectionRules {
        length: limits.trailers,
        too_long: DecodeError::TrailersTooLarge,
        first_line: FirstLine::Absent,
        headers: limits.headers,
        folds: Folds::Refused,
    }
}

/// Removes the fields that trailers must not have.
pub fn drop_forbidden_trailers(trailers: &mut Headers) {
    trailers
        .retain(|name, _| !FORBIDDEN_TRAILERS.iter().any(|other| other.eq_ignore_ascii_case(name)));
}
