//! Decides where a message body ends (RFC 9112 §6). These functions do no IO. They refuse framing
//! that two parsers could read differently.

use crate::connection::{CloseReason, Persistence};
use crate::error::DecodeError;
use crate::headers::Headers;
use crate::message::{Method, RequestHead, ResponseHead, Version};

/// The framing of a message body, which decides the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// The message has no body.
    None,
    /// The body has this many bytes, possibly 0.
    Length(u64),
    /// The body consists of pieces with a marked end, and trailers may follow: HTTP/1.1 chunks or
    /// HTTP/2 frames.
    Chunked,
    /// The body is everything until the server closes the connection. Only responses use this
    /// framing.
    UntilClose,
    /// The connection is now a tunnel (after a 101, or a 2xx to CONNECT). Only responses use this
    /// framing.
    Tunnel,
}

/// Returns the framing of a request (RFC 9112 §6.3).
///
/// # Errors
/// Returns an error for each of these requests:
/// - It has both Content-Length and Transfer-Encoding.
/// - It repeats Content-Length, even with equal values.
/// - It has Transfer-Encoding in HTTP/1.0.
/// - It has any transfer coding except one final `chunked`.
/// - It is a CONNECT with content.
pub fn request(head: &RequestHead) -> Result<BodyLength, DecodeError> {
    let chunked = transfer_encoding(head.version, &head.headers)?;
    let mut lengths = head.headers.get_all("content-length");
    let body = match (chunked, lengths.next()) {
        (Some(_), Some(_)) => return Err(DecodeError::LengthAndTransferEncoding),
        (None, Some(value)) if lengths.next().is_some() || value.contains(&b',') => {
            return Err(DecodeError::RepeatedContentLength);
        }
        (None, Some(value)) => BodyLength::Length(decimal(value)?),
        (chunked, None) => chunked.unwrap_or(BodyLength::None),
    };
    match body {
        BodyLength::None | BodyLength::Length(0) => Ok(body),
        _ if head.method == Method::Connect => Err(DecodeError::ConnectWithContent),
        _ => Ok(body),
    }
}

/// Returns the framing of the response to a request with `method` (RFC 9112 §6.3), and whether the
/// connection can be used again.
///
/// Removes invalid framing headers:
/// - Content-Length next to Transfer-Encoding (RFC 9112 §6.3 rule 3). The connection then closes.
/// - Both headers in 204, 304 and 1xx responses, and in the response that opens a tunnel.
///
/// Merges equal Content-Length lines. After a 204 or 1xx that announced a body, the connection
/// closes because the body may still arrive.
///
/// # Errors
/// Returns an error for differing or invalid lengths, for Transfer-Encoding in HTTP/1.0, and for
/// any transfer coding except one final `chunked`.
pub fn response(
    method: &Method,
    head: &mut ResponseHead,
) -> Result<(BodyLength, Persistence), DecodeError> {
    let persistence = Persistence::of(head.version, &head.headers);
    let opens_tunnel =
        head.status == 101 || (*method == Method::Connect && (200..300).contains(&head.status));
    if opens_tunnel || matches!(head.status, 100..=199 | 204 | 304) {
        // Content-Length in a 304 is the length of the stored representation (RFC 9110 §8.6). It
        // does not announce a body in this response.
        let announced = head.status != 304 && announces_body(&head.headers);
        head.headers.remove("content-length");
        head.headers.remove("transfer-encoding");
        return Ok(if opens_tunnel {
            (BodyLength::Tunnel, Persistence::Close(CloseReason::Tunnel))
        } else if announced {
            (BodyLength::None, Persistence::Close(CloseReason::BodyNotAllowed))
        } else {
            (BodyLength::None, persistence)
        });
    }
    let chunked = transfer_encoding(head.version, &head.headers)?;
    let length = response_length(&mut head.headers, chunked.is_some())?;
    let (body, persistence) = match (chunked, length) {
        (Some(body), Some(_)) => (body, Persistence::Close(CloseReason::AmbiguousLength)),
        (Some(body), None) => (body, persistence),
        (None, Some(length)) => (BodyLength::Length(length), persistence),
        (None, None) if *method == Method::Head => (BodyLength::None, persistence),
        (None, None) => (BodyLength::UntilClose, Persistence::Close(CloseReason::EndOfBody)),
    };
    Ok(if *method == Method::Head { (BodyLength::None, persistence) } else { (body, persistence) })
}

/// Whether a head announces a body that is not empty.
fn announces_body(headers: &Headers) -> bool {
    let mut lengths =
        headers.get_all("content-length").flat_map(|line| line.split(|&byte| byte == b','));
    headers.contains("transfer-encoding")
        || lengths.any(|length| decimal(length.trim_ascii()) != Ok(0))
}

/// Returns the Content-Length of a response. Removes Content-Length if the body is chunked.
fn response_length(headers: &mut Headers, chunked: bool) -> Result<Option<u64>, DecodeError> {
    let mut length = None;
    let mut values = 0;
    for value in headers.get_all("content-length").flat_map(|line| line.split(|&byte| byte == b','))
    {
        let value = decimal(value.trim_ascii())?;
        if length.is_some_and(|other| other != value) {
            return Err(DecodeError::RepeatedContentLength);
        }
        length = Some(value);
        values += 1;
    }
    if chunked {
        headers.remove("content-length");
    } else if let (Some(length), 2..) = (length, values) {
        headers.set("Content-Length", length.to_string());
    }
    Ok(length)
}

/// Returns `Some(Chunked)` if Transfer-Encoding is exactly one `chunked`, and `None` without the
/// header. An empty list member, as in `chunked,`, counts as an unknown coding. RFC 9110 §5.6.1
/// permits empty members, but parsers treat them differently.
fn transfer_encoding(
    version: Version,
    headers: &Headers,
) -> Result<Option<BodyLength>, DecodeError> {
    let (mut codings, mut chunked, mut last_is_chunked) = (0, 0, false);
    for coding in
        headers.get_all("transfer-encoding").flat_map(|line| line.split(|&byte| byte == b','))
    {
        last_is_chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        codings += 1;
        chunked += usize::from(last_is_chunked);
    }
    match (codings, chunked) {
        (0, _) => Ok(None),
        _ if version == Version::Http10 => Err(DecodeError::TransferEncodingInHttp10),
        (_, 2..) => Err(DecodeError::RepeatedChunked),
        _ if !last_is_chunked => Err(DecodeError::ChunkedNotLast),
        (2.., _) => Err(DecodeError::UnsupportedTransferCoding),
        _ => Ok(Some(BodyLength::Chunked)),
    }
}

/// Reads a Content-Length: one or more digits (RFC 9110 §8.6).
fn decimal(value: &[u8]) -> Result<u64, DecodeError> {
    if value.is_empty() {
        return Err(DecodeError::InvalidContentLength);
    }
    value.iter().try_fold(0u64, |number, &byte| {
        let digit = if byte.is_ascii_digit() {
            u64::from(byte - b'0')
        } else {
            return Err(DecodeError::InvalidContentLength);
        };
        number
            .checked_mul(10)
            .and_then(|number| number.checked_add(digit))
            .ok_or(DecodeError::InvalidContentLength)
    })
}

/// Whether the headers already describe `length`, the framing of the body. Returns true if `length`
/// needs no framing header and the headers contain no framing header.
pub fn says_body_length(headers: &Headers, length: BodyLength) -> bool {
    let needs_none =
        matches!(length, BodyLength::None | BodyLength::UntilClose | BodyLength::Tunnel);
    needs_none && !headers.contains("transfer-encoding") && !headers.contains("content-length")
}

/// Replaces the framing headers by the header that `length` needs.
pub fn set_body_length(headers: &mut Headers, length: BodyLength) {
    headers.remove("transfer-encoding");
    match length {
        BodyLength::Length(bytes) => headers.set("Content-Length", bytes.to_string()),
        BodyLength::Chunked => {
            headers.remove("content-length");
            headers.append("Transfer-Encoding", "chunked");
        }
        BodyLength::None | BodyLength::UntilClose | BodyLength::Tunnel => {
            headers.remove("content-length");
        }
    }
}
