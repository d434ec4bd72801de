//! Header fields: the library's as foxy reads them, and foxy's as the library sends them.

use foxy_http::Headers;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The library's fields as names and values.
pub(crate) fn fields(map: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    map.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// Our fields as the library's, without those that HTTP/2 does not have (RFC 9113 §8.2.2).
pub(crate) fn fields_of(headers: &Headers) -> HeaderMap {
    const OF_A_CONNECTION: [&str; 6] =
        ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];
    let mut map = HeaderMap::with_capacity(headers.len() + 3);
    for (name, value) in headers.iter() {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        else {
            continue;
        };
        if !OF_A_CONNECTION.contains(&name.as_str()) {
            map.append(name, value);
        }
    }
    map
}
