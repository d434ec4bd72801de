//! The entry of a finished request in the access log.

use crate::core::metrics::request_metrics::RequestOutcome;
use crate::core::metrics::trace_context::{TRACEPARENT, Traceparent};
use crate::request::cache_status::CacheStatus;
use crate::upstream::{NodeSource, OriginTimes};
use foxy_base::{Instant, WallTime};
use foxy_http::Headers;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// A finished request, with the values that an access log can contain.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// Time when the answer ended.
    pub end: WallTime,
    /// Time when the request began.
    pub started: Instant,
    /// Time from the first byte of the request to the end of the answer.
    pub elapsed: Duration,
    /// The client's address.
    pub client: SocketAddr,
    /// How the cache handled the request: hit, forwarded, or answered by the proxy itself.
    pub outcome: CacheStatus,
    /// The outcome under which metrics count the request.
    pub request_outcome: RequestOutcome,
    /// The reason why the answer is incomplete, if it is.
    pub cut: Option<CutReason>,
    /// The status that was sent, or 0 if the client received no status.
    pub status: u16,
    /// Number of bytes sent to the client, including the head.
    pub bytes: u64,
    /// Number of body bytes sent to the client.
    pub body_bytes: u64,
    /// The method, as far as the proxy could read it. In a refused request, the method may contain
    /// any bytes.
    pub method: &'a [u8],
    /// Scheme and host of a request to a reverse proxy. The request's URL does not contain them.
    pub site: Option<(&'a str, &'a [u8])>,
    /// The URL, or the authority of a CONNECT, as far as the proxy could read it.
    pub url: &'a [u8],
    /// The HTTP version of the request.
    pub version: &'a str,
    /// Host and port of the parent proxy or node of the fleet that answered. `None` if neither was
    /// used.
    pub parent: Option<&'a str>,
    /// The place where the node of the fleet found the response, if a node answered.
    pub node: Option<NodeSource>,
    /// Name of the user who sent the request, if valid credentials prove it.
    pub user: Option<&'a str>,
    /// The name of the operator's origin that answered, and host and port of the server that
    /// answered.
    pub server: Option<(&'a str, &'a str)>,
    /// Names of the operator's rules that applied to the request, separated by commas.
    pub rules: Option<&'a str>,
    /// The response's Content-Type.
    pub content_type: Option<&'a [u8]>,
    /// The request's Referer.
    pub referer: Option<&'a [u8]>,
    /// The request's User-Agent.
    pub user_agent: Option<&'a [u8]>,
    /// The header fields of the request, if the proxy could read them.
    pub fields: Option<&'a Headers>,
    /// The id of the request.
    pub id: &'a str,
    /// The times of the fetch from the origin.
    pub origin: Option<OriginTimes>,
}

/// The facts from which an [`AccessSink`] chooses the requests that it records.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How the cache handled the request.
    pub status: CacheStatus,
    /// The outcome under which metrics count the request.
    pub outcome: RequestOutcome,
    /// The reason why the answer is incomplete, if it is.
    pub cut: Option<CutReason>,
    /// Time from the first byte of the request to the end of the answer.
    pub elapsed: Duration,
    /// Time when the answer ended.
    pub now: Instant,
}

impl<'a> AccessRecord<'a> {
    /// Returns the requested host, with its port if the client sent a port.
    pub fn authority(&self) -> &'a [u8] {
        authority(self.site, self.url)
    }

    /// Returns the trace (W3C Trace Context) to which the request belongs, if the client named a
    /// trace.
    pub fn traceparent(&self) -> Option<Traceparent> {
        Traceparent::of(self.fields?.get(TRACEPARENT)?)
    }
}

/// Returns the requested host, with its port if the client sent a port. `site` is the site of a
/// request to a reverse proxy.
pub(crate) fn authority<'a>(site: Option<(&str, &'a [u8])>, url: &'a [u8]) -> &'a [u8] {
    site.map_or(&url[host_in(url)], |(_, host)| host)
}

/// Returns the byte range of the host and port in a URL or authority. A user and password before
/// the host are left out.
fn host_in(url: &[u8]) -> Range<usize> {
    let start = url.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let user = rest[..end].iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    start + user..start + end
}

/// Returns a URL or authority with `***` in place of a user and password.
pub fn without_credentials(url: &[u8]) -> Cow<'_, [u8]> {
    let host = host_in(url).start;
    let scheme = url[..host].windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    if host == scheme {
        return Cow::Borrowed(url);
    }
    Cow::Owned([&url[..scheme], b"***@", &url[host..]].concat())
}

/// The reason why an answer is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The client disconnected, or stopped reading the answer.
    ClientLeft,
    /// The origin did not send its complete response.
    BrokeOff,
    /// The proxy stopped before the answer was complete.
    Stopped,
}

impl CutReason {
    /// Returns the reason as one word for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientLeft => "client-left",
            Self::BrokeOff => "broke-off",
            Self::Stopped => "stopped",
        }
    }
}

/// The media type of a response, without parameters, limited to 79 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType {
    bytes: [u8; Self::LONGEST],
    length: u8,
}

impl Default for MediaType {
    fn default() -> Self {
        Self { bytes: [0; Self::LONGEST], length: 0 }
    }
}

impl MediaType {
    const LONGEST: usize = 79;

    /// Extracts the media type from a `Content-Type` value.
    pub fn of(content_type: Option<&[u8]>) -> Self {
        let value = content_type.unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b';' | b' ' | b'\t');
        let end = value.iter().position(ends).unwrap_or(value.len()).min(Self::LONGEST);
        let mut media_type = Self { length: end as u8, ..Self::default() };
        media_type.bytes[..end].copy_from_slice(&value[..end]);
        media_type
    }

    /// Returns the media type as the origin sent it. Returns `None` if it is empty.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.length)).filter(|bytes| !bytes.is_empty())
    }
}

/// Receives access records on the thread of a worker. The methods must not block.
pub trait AccessSink: Send + Sync {
    /// Receives the record of a finished request.
    fn record(&self, record: &AccessRecord<'_>);

    /// Returns true if the sink needs a record of this request. If so, [`Self::record`] follows on
    /// the same thread.
    fn wants(&self, _finished: &Finished) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_a_url_are_hidden() {
        for (url, shown, host) in [
            ("http://u:p@a.test:81/x@y?z@", "http://***@a.test:81/x@y?z@", "a.test:81"),
            ("u:p@q@a.test:443", "***@a.test:443", "a.test:443"),
            ("http://a.test/x@y", "http://a.test/x@y", "a.test"),
            ("/x@y", "/x@y", ""),
            ("http://u@", "http://***@", ""),
        ] {
            let seen = without_credentials(url.as_bytes());
            assert_eq!(String::from_utf8_lossy(&seen), shown);
            assert_eq!(&url[host_in(url.as_bytes())], host);
        }
    }

    #[test]
    fn a_media_type_is_what_stands_before_its_parameters() {
        let check = |value: &[u8], expected: Option<&[u8]>| {
            assert_eq!(MediaType::of(Some(value)).as_bytes(), expected, "{value:?}");
        };
        check(b"text/html; charset=utf-8", Some(b"text/html"));
        check(b"image/png", Some(b"image/png"));
        check(b"", None);
        check(&[b'x'; 100], Some(&[b'x'; 79]));
        assert_eq!(MediaType::of(None).as_bytes(), None);
    }
}
