//! Parses a complete header section into a head, with the httparse library. The module `scan` has
//! already checked the lines.

use crate::error::DecodeError;
use crate::headers::{Field, Headers};
use crate::message::{Method, RequestHead, ResponseHead, Version};
use crate::scan::Section;
use crate::syntax::is_token;
use crate::target::{Authority, Target, TargetForm};
use bytes::{Buf, Bytes, BytesMut};
use httparse::{Error, Header, Status};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Largest number of header lines that httparse parses into a table on the stack. A longer head
/// needs an allocated table.
const STACK_HEADERS: usize = 48;

/// Largest header section in bytes that is copied into the arena, a buffer that the connection
/// reuses. A longer section gets its own buffer, so that the connection does not keep a large
/// arena.
const MAX_ARENA_BYTES: usize = 4 << 10;

/// Moves a complete header section out of the connection's buffer, so that a head does not keep the
/// IO buffer in memory. After the previous head is dropped, its arena memory is reused without
/// allocation.
pub(crate) fn take_section(
    buffer: &mut BytesMut,
    arena: &mut BytesMut,
    section: &Section,
) -> Bytes {
    let mut own = BytesMut::new();
    let copy = if section.length <= MAX_ARENA_BYTES { arena } else { &mut own };
    copy.reserve(section.length);
    copy.extend_from_slice(&buffer[..section.length]);
    buffer.advance(section.length);
    if section.folds > 0 {
        unfold(copy);
    }
    copy.split().freeze()
}

/// Replaces every fold (a line break before a continuation line) by blanks (RFC 9112 §5.2).
fn unfold(text: &mut [u8]) {
    for index in 2..text.len() {
        if matches!(text[index], b' ' | b'\t') && text[index - 2..index] == *b"\r\n" {
            text[index - 2..index].fill(b' ');
        }
    }
}

pub(crate) fn request(text: Bytes, section: &Section) -> Result<RequestHead, DecodeError> {
    let (method, target, version, fields) =
        with_slots(section.headers, |slots| request_parts(&text, slots))?;
    let target = Target::from_word(&method, text.slice(target))?;
    let mut headers = Headers::from_parts(text, fields);
    check_host(&target, version, &mut headers)?;
    Ok(RequestHead { method, target, version, headers })
}

type RequestParts = (Method, Range<usize>, Version, Vec<Field>);

fn request_parts<'text>(
    text: &'text [u8],
    slots: &mut [MaybeUninit<Header<'text>>],
) -> Result<RequestParts, DecodeError> {
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(text, slots) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(DecodeError::InvalidRequestLine),
        Err(error) => return Err(bad_byte(text).unwrap_or_else(|| request_error(error, text))),
    }
    let method = Method::parse(request.method.ok_or(DecodeError::InvalidRequestLine)?)?;
    let path = request.path.ok_or(DecodeError::InvalidRequestLine)?.as_bytes();
    let start = start_of(path, text);
    Ok((
        method,
        start..start + path.len(),
        version(request.version)?,
        fields(text, request.headers),
    ))
}

pub(crate) fn response(text: Bytes, section: &Section) -> Result<ResponseHead, DecodeError> {
    let (status, version, fields) =
        with_slots(section.headers, |slots| response_parts(&text, slots))?;
    let reason = reason(&text);
    Ok(ResponseHead { version, status, reason, headers: Headers::from_parts(text, fields) })
}

fn response_parts<'text>(
    text: &'text [u8],
    slots: &mut [MaybeUninit<Header<'text>>],
) -> Result<(u16, Version, Vec<Field>), DecodeError> {
    let mut response = httparse::Response::new(&mut []);
    match httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        text,
        slots,
    ) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(DecodeError::InvalidStatusLine),
        Err(error) => return Err(bad_byte(text).unwrap_or_else(|| response_error(error, text))),
    }
    let status = response
        .code
        .filter(|code| (100..600).contains(code))
        .ok_or(DecodeError::InvalidStatusLine)?;
    Ok((status, version(response.version)?, fields(text, response.headers)))
}

pub(crate) fn trailers(text: Bytes, section: &Section) -> Result<Headers, DecodeError> {
    let mut slots = vec![httparse::EMPTY_HEADER; section.headers];
    let fields = match httparse::parse_headers(&text, &mut slots) {
        Ok(Status::Complete((_, parsed))) => fields(&text, parsed),
        Ok(Status::Partial) => return Err(DecodeError::InvalidHeaderName),
        Err(error) => return Err(bad_byte(&text).unwrap_or_else(|| header_error(error))),
    };
    Ok(Headers::from_parts(text, fields))
}

fn with_slots<'text, T>(
    count: usize,
    parse: impl FnOnce(&mut [MaybeUninit<Header<'text>>]) -> T,
) -> T {
    if count <= STACK_HEADERS {
        parse(&mut [const { MaybeUninit::uninit() }; STACK_HEADERS][..count])
    } else {
        let mut slots: Vec<_> = (0..count).map(|_| MaybeUninit::uninit()).collect();
        parse(&mut slots)
    }
}

fn fields(text: &[u8], parsed: &[Header<'_>]) -> Vec<Field> {
    let field = |header: &Header<'_>| {
        let value_start = if header.value.is_empty() { 0 } else { start_of(header.value, text) };
        Field::new(
            header.name.as_bytes(),
            start_of(header.name.as_bytes(), text),
            header.value,
            value_start,
        )
    };
    parsed.iter().map(field).collect()
}

/// Returns the position in `text` of a slice that httparse returned.
fn start_of(part: &[u8], text: &[u8]) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Finds the reason phrase. httparse omits phrases with bytes outside ASCII, but a proxy must
/// forward them.
fn reason(text: &Bytes) -> Bytes {
    const REASON_START: usize = "HTTP/1.1 200 ".len();
    let end = first_line(text).len();
    if end <= REASON_START { Bytes::new() } else { text.slice(REASON_START..end) }
}

fn version(minor: Option<u8>) -> Result<Version, DecodeError> {
    match minor {
        Some(0) => Ok(Version::Http10),
        Some(1) => Ok(Version::Http11),
        _ => Err(DecodeError::UnsupportedVersion),
    }
}

/// Checks Host (RFC 9112 §3.2, §3.2.2). An HTTP/1.1 request needs exactly one valid Host. An
/// authority in the target replaces Host.
pub(crate) fn check_host(
    target: &Target,
    version: Version,
    headers: &mut Headers,
) -> Result<(), DecodeError> {
    let mut hosts = headers.get_all("host");
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(DecodeError::RepeatedHost);
    }
    drop(hosts);
    let Some(host) = host else {
        if version != Version::Http10 {
            return Err(DecodeError::MissingHost);
        }
        if let TargetForm::Absolute { authority, .. } = target.form() {
            headers.append("Host", authority);
        }
        return Ok(());
    };
    match target.form() {
        TargetForm::Absolute { authority, .. } | TargetForm::Authority(authority)
            if authority == host =>
        {
            Ok(())
        }
        TargetForm::Absolute { authority, .. }
            if host.is_empty() || Authority::parse(host).is_some() =>
        {
            headers.set("Host", authority);
            Ok(())
        }
        TargetForm::Authority(_) if host.is_empty() => Ok(()),
        _ if Authority::parse(host).is_some() => Ok(()),
        _ => Err(DecodeError::InvalidHost),
    }
}

/// Returns the error for the first NUL or CR without LF, if httparse refused the text because of
/// it.
fn bad_byte(text: &[u8]) -> Option<DecodeError> {
    memchr::memchr2_iter(b'\r', 0, text).find_map(|place| match text[place..] {
        [0, ..] => Some(DecodeError::NulByte),
        [_, b'\n', ..] => None,
        _ => Some(DecodeError::BareCarriageReturn),
    })
}

/// Finds the exact error of a request line from its words, because httparse reports only a
/// position.
fn request_error(error: Error, text: &[u8]) -> DecodeError {
    let words: Vec<&[u8]> = first_line(text).split(|&byte| byte == b' ').collect();
    match (error, words.as_slice()) {
        (Error::Token, [method, ..]) if !is_token(method) => DecodeError::InvalidMethod,
        (Error::Token, [_, _, ..]) | (Error::Version, [_, _, _, _, ..]) => {
            DecodeError::InvalidTarget
        }
        (Error::Version, [_, _, version]) if is_version(version) => DecodeError::UnsupportedVersion,
        (Error::Version, [_, _, word]) if !names_http(word) => DecodeError::OtherProtocol,
        (Error::HeaderName | Error::HeaderValue | Error::TooManyHeaders, _) => header_error(error),
        _ => DecodeError::InvalidRequestLine,
    }
}

fn names_http(word: &[u8]) -> bool {
    word.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"HTTP"))
}

fn response_error(error: Error, text: &[u8]) -> DecodeError {
    match error {
        Error::Version if first_line(text).starts_with(b"HTTP/") => DecodeError::UnsupportedVersion,
        Error::HeaderName | Error::HeaderValue | Error::TooManyHeaders => header_error(error),
        _ => DecodeError::InvalidStatusLine,
    }
}

fn header_error(error: Error) -> DecodeError {
    match error {
        Error::HeaderValue => DecodeError::InvalidHeaderValue,
        Error::TooManyHeaders => DecodeError::TooManyHeaders,
        _ => DecodeError::InvalidHeaderName,
    }
}

fn first_line(text: &[u8]) -> &[u8] {
    &text[..memchr::memchr(b'\r', text).unwrap_or(text.len())]
}

/// Whether `word` is `HTTP/`, a digit, `.` and a digit (RFC 9112 §2.3).
fn is_version(word: &[u8]) -> bool {
    matches!(word, [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'])
}
