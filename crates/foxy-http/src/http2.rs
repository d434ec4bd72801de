//! Converts requests from HTTP/2 fields (RFC 9113 §8.3) to the same [`RequestHead`] as requests
//! from HTTP/1.1 text, with the same checks. Later code and an HTTP/1.1 origin must not see a
//! difference. The caller handles frames, HPACK and flow control.

use crate::body::drop_forbidden_trailers;
use crate::error::DecodeError;
use crate::framing::{self, BodyLength};
use crate::headers::{Headers, InvalidHeader};
use crate::message::{Method, RequestHead, Version};
use crate::parse::check_host;
use crate::scan::Limits;
use crate::target::{Target, is_scheme};

/// Bytes of an HTTP/1.1 header line in addition to its name and value: `: ` and CRLF.
const LINE_OVERHEAD_BYTES: usize = 4;

/// Pseudo-header fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct PseudoFields<'a> {
    /// The value of `:method`.
    pub method: &'a str,
    /// The value of `:scheme`. `None` for a CONNECT request.
    pub scheme: Option<&'a str>,
    /// The value of `:authority`.
    pub authority: Option<&'a str>,
    /// The value of `:path`. `None` for a CONNECT request.
    pub path: Option<&'a str>,
}

/// Whether a request has content after its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The stream ended with the head, so the request has no content.
    None,
    /// More frames may follow the head.
    Some,
}

/// Reads the head of a request and the framing of its content. Without Content-Length, the end of
/// the stream ends the content, so an HTTP/1.1 origin receives chunks.
///
/// # Errors
/// Returns the errors of an HTTP/1.1 request line or header line. Fields that concern an HTTP/1.1
/// connection are errors too, and so is a Host that differs from the authority. After an error, the
/// caller resets the stream; the connection may continue.
pub fn request<'a>(
    pseudo: PseudoFields<'_>,
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    content: Content,
    limits: &Limits,
) -> Result<(RequestHead, BodyLength), DecodeError> {
    let method = Method::parse(pseudo.method)?;
    let target = target(&method, pseudo)?;
    if target.raw().len() > limits.request_line {
        return Err(DecodeError::RequestLineTooLong);
    }
    let mut headers = Headers::new();
    if let Some(authority) = pseudo.authority {
        headers.append("Host", authority);
    }
    let bytes = take(&mut headers, fields, Place::Head(pseudo.authority), limits)?;
    if target.raw().len() + bytes > limits.head {
        return Err(DecodeError::HeadTooLarge);
    }
    check_host(&target, Version::Http2, &mut headers)?;
    let head = RequestHead { method, target, version: Version::Http2, headers };
    let length = match (framing::request(&head)?, content) {
        (BodyLength::Length(length), Content::None) if length > 0 => {
            return Err(DecodeError::TruncatedBody);
        }
        (BodyLength::None, Content::Some) if head.method != Method::Connect => BodyLength::Chunked,
        (length, _) => length,
    };
    Ok((head, length))
}

/// Reads trailers. Drops the fields that trailers must not contain.
pub fn trailers<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    limits: &Limits,
) -> Result<Headers, DecodeError> {
    let mut trailers = Headers::new();
    if take(&mut trailers, fields, Place::Trailers, limits)? > limits.trailers {
        return Err(DecodeError::TrailersTooLarge);
    }
    drop_forbidden_trailers(&mut trailers);
    Ok(trailers)
}

/// The part of a message to which fields belong. `Head` contains the request's `:authority`.
#[derive(Clone, Copy)]
enum Place<'a> {
    Head(Option<&'a str>),
    Trailers,
}

/// Appends `fields` to `headers`. Returns the size in bytes of these fields as HTTP/1.1 header
/// lines.
fn take<'a>(
    headers: &mut Headers,
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    place: Place<'_>,
    limits: &Limits,
) -> Result<usize, DecodeError> {
    let mut cookies = Vec::new();
    let (mut count, mut bytes) = (0, headers.wire_length());
    for (name, value) in fields {
        count += 1;
        bytes += name.len() + value.len() + LINE_OVERHEAD_BYTES;
        if count > limits.headers {
            return Err(DecodeError::TooManyHeaders);
        }
        if is_of_a_connection(name, value) {
            return Err(DecodeError::ConnectionField);
        }
        if matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
            return Err(DecodeError::InvalidHeaderValue);
        }
        match (name, place) {
            // RFC 9113 §8.3.1: a Host that differs from `:authority` makes the request malformed.
            ("host", Place::Head(Some(authority))) => {
                if !value.eq_ignore_ascii_case(authority.as_bytes()) {
                    return Err(DecodeError::HostDiffers);
                }
            }
            ("cookie", Place::Head(_)) => cookies.push(value),
            _ => append(headers, name, value)?,
        }
    }
    if !cookies.is_empty() {
        // RFC 9113 §8.2.3: several Cookie fields are pieces of a single Cookie value.
        append(headers, "cookie", &cookies.join(&b"; "[..]))?;
    }
    Ok(bytes)
}

fn append(headers: &mut Headers, name: &str, value: &[u8]) -> Result<(), DecodeError> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(DecodeError::InvalidHeaderName);
    }
    headers.try_append(name, value).map_err(|error| match error {
        InvalidHeader::Name => DecodeError::InvalidHeaderName,
        InvalidHeader::Value if value.contains(&0) => DecodeError::NulByte,
        InvalidHeader::Value => DecodeError::InvalidHeaderValue,
    })
}

/// RFC 9113 §8.2.2: HTTP/2 forbids the connection fields of HTTP/1.1, except `TE: trailers`.
fn is_of_a_connection(name: &str, value: &[u8]) -> bool {
    match name {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => true,
        "te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    }
}

/// Returns the HTTP/1.1 form of the target: a whole URL if the request has an authority, otherwise
/// a path. For a CONNECT, returns the authority.
fn target(method: &Method, pseudo: PseudoFields<'_>) -> Result<Target, DecodeError> {
    if pseudo.scheme.is_some_and(|scheme| !is_scheme(scheme.as_bytes())) {
        return Err(DecodeError::InvalidTarget);
    }
    let text = match pseudo {
        PseudoFields { scheme: None, authority: Some(authority), path: None, .. }
            if *method == Method::Connect =>
        {
            authority.to_owned()
        }
        _ if *method == Method::Connect => return Err(DecodeError::InvalidTarget),
        PseudoFields {
            path: Some("*"), scheme: Some(scheme), authority: Some(authority), ..
        } if *method == Method::Options => {
            format!("{scheme}://{authority}")
        }
        PseudoFields { path: Some("*"), .. } if *method == Method::Options => "*".to_owned(),
        PseudoFields { path: Some(path), .. } if !path.starts_with('/') => {
            return Err(DecodeError::InvalidTarget);
        }
        PseudoFields {
            scheme: Some(scheme), authority: Some(authority), path: Some(path), ..
        } => {
            format!("{scheme}://{authority}{path}")
        }
        PseudoFields { authority: None, path: Some(path), .. } => path.to_owned(),
        _ => return Err(DecodeError::InvalidTarget),
    };
    Target::parse(method, text.into())
}
