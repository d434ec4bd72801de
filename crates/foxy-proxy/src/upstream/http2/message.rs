//! Converts requests and responses between foxy's types and the types of the HTTP/2 library. It
//! refuses the same messages as the HTTP/1.1 decoder, and does no IO.

use bytes::Bytes;
use foxy_http::{
    BodyLength, DecodeError, Headers, Limits, Method, ResponseHead, Version,
    drop_forbidden_trailers, framing, reason_phrase,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};

/// Header fields that HTTP/2 does not have or expresses in another way (RFC 9113 §8.2.2, §8.3.1).
/// TE is allowed with the value `trailers`.
const OF_HTTP1: [&str; 8] = [
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Creates the head of a request. Returns `None` if the authority or target has bytes that RFC 3986
/// does not allow. The HTTP/2 library cannot represent such bytes, so the proxy sends the request
/// unchanged over HTTP/1.1.
pub(crate) fn request(
    scheme: foxy_http::Scheme,
    method: &Method,
    target: &Bytes,
    headers: &Headers,
    body: BodyLength,
) -> Option<Request<()>> {
    let authority = headers.get("host").filter(|host| !host.contains(&b'@'))?;
    let path = PathAndQuery::from_maybe_shared(target.clone()).ok()?;
    if *method == Method::Connect || path.as_str().as_bytes() != target.as_ref() {
        return None;
    }
    let uri = Uri::builder()
        .scheme(Scheme::try_from(scheme.as_str()).ok()?)
        .authority(Authority::try_from(authority).ok()?)
        .path_and_query(path)
        .build()
        .ok()?;
    let mut request = Request::new(());
    *request.method_mut() = http::Method::from_bytes(method.as_str().as_bytes()).ok()?;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    let fields = request.headers_mut();
    for (name, value) in headers.iter() {
        if !OF_HTTP1.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            fields.append(name, HeaderValue::from_bytes(value).ok()?);
        }
    }
    if headers.has_token("te", "trailers") {
        fields.insert(http::header::TE, HeaderValue::from_static("trailers"));
    }
    fields.remove(http::header::CONTENT_LENGTH);
    if let BodyLength::Length(bytes) = body {
        fields.insert(http::header::CONTENT_LENGTH, bytes.into());
    }
    Some(request)
}

/// Converts the head of an interim (1xx) response. Refuses 101, which HTTP/2 does not have (RFC
/// 9113 §8.6).
pub(crate) fn interim(
    response: &Response<()>,
    limits: &Limits,
) -> Result<ResponseHead, DecodeError> {
    match head(response.status(), response.headers(), limits)? {
        head if head.status == 101 => Err(DecodeError::UnexpectedSwitch),
        head => Ok(head),
    }
}

/// Converts the final head of a response to `method`, and determines the framing of its body.
/// `ended` means that no body follows. Refuses every response that the HTTP/1.1 decoder would
/// refuse.
pub(crate) fn response<B>(
    method: &Method,
    response: &Response<B>,
    ended: bool,
    limits: &Limits,
) -> Result<(ResponseHead, BodyLength), DecodeError> {
    let mut head = head(response.status(), response.headers(), limits)?;
    let length = match framing::response(method, &mut head)?.0 {
        BodyLength::UntilClose | BodyLength::Chunked if ended => BodyLength::Length(0),
        BodyLength::UntilClose => BodyLength::Chunked,
        length => length,
    };
    Ok((head, length))
}

/// Converts the trailers of a response. Drops fields that trailers must not contain.
pub(crate) fn trailers(fields: &HeaderMap, limits: &Limits) -> Result<Headers, DecodeError> {
    let mut trailers = headers(fields, limits)?;
    if trailers.wire_length() > limits.trailers {
        return Err(DecodeError::TrailersTooLarge);
    }
    drop_forbidden_trailers(&mut trailers);
    Ok(trailers)
}

/// Converts the trailers of a request for the HTTP/2 library. Drops fields that the library cannot
/// represent.
pub(crate) fn request_trailers(trailers: &Headers) -> HeaderMap {
    let parsed = trailers.iter().filter_map(|(name, value)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
    });
    let mut fields = HeaderMap::new();
    for (name, value) in parsed.filter(|(name, _)| !OF_HTTP1.contains(&name.as_str())) {
        fields.append(name, value);
    }
    fields
}

fn head(
    status: http::StatusCode,
    fields: &HeaderMap,
    limits: &Limits,
) -> Result<ResponseHead, DecodeError> {
    let status = Some(status.as_u16()).filter(|status| (100..600).contains(status));
    let status = status.ok_or(DecodeError::InvalidStatusLine)?;
    let headers = headers(fields, limits)?;
    if headers.wire_length() > limits.head {
        return Err(DecodeError::HeadTooLarge);
    }
    let reason = Bytes::from_static(reason_phrase(status).as_bytes());
    Ok(ResponseHead { version: Version::Http2, status, reason, headers })
}

fn headers(fields: &HeaderMap, limits: &Limits) -> Result<Headers, DecodeError> {
    if fields.len() > limits.headers {
        return Err(DecodeError::TooManyHeaders);
    }
    let mut headers = Headers::new();
    for (name, value) in fields {
        let added = headers.try_append(name.as_str(), value.as_bytes());
        added.map_err(|_| DecodeError::InvalidHeaderValue)?;
    }
    Ok(headers)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
