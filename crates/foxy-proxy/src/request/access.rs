//! What is known of a request when it has ended; whoever keeps a log takes it from here.

use crate::request::cache_status::CacheStatus;
use foxy_base::WallTime;
use std::net::SocketAddr;
use std::time::Duration;

/// One finished request.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord<'a> {
    /// When it ended.
    pub end: WallTime,
    /// From its first byte to the end of the answer.
    pub elapsed: Duration,
    /// Who asked.
    pub client: SocketAddr,
    /// What was done with it.
    pub outcome: CacheStatus,
    /// Why its answer did not reach its end, if it did not.
    pub cut: Option<CutReason>,
    /// The status sent; 0 when none was.
    pub status: u16,
    /// Bytes sent, head included.
    pub bytes: u64,
    /// Bytes of body sent.
    pub body_bytes: u64,
    /// The method, as far as it was read. A request that is refused may have any bytes there.
    pub method: &'a [u8],
    /// The scheme and the host of a request to a reverse proxy, whose URL has neither.
    pub site: Option<(&'a str, &'a [u8])>,
    /// The URL, or the authority of a CONNECT, as far as it was read.
    pub url: &'a [u8],
    /// The request's version.
    pub version: &'a str,
    /// The response's Content-Type.
    pub content_type: Option<&'a [u8]>,
    /// The request's Referer.
    pub referer: Option<&'a [u8]>,
    /// The request's User-Agent.
    pub user_agent: Option<&'a [u8]>,
}

impl<'a> AccessRecord<'a> {
    /// The host that was asked for, and its port where that is given.
    pub fn authority(&self) -> &'a [u8] {
        if let Some((_, host)) = self.site {
            return host;
        }
        let start = self.url.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
        let rest = &self.url[start..];
        let end =
            rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        &rest[..end]
    }
}

/// Why an answer did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The client left, or took nothing for too long.
    ClientLeft,
    /// The body did not come whole.
    BrokeOff,
    /// The proxy stopped.
    Stopped,
}

impl CutReason {
    /// The reason as one word, for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientLeft => "client-left",
            Self::BrokeOff => "broke-off",
            Self::Stopped => "stopped",
        }
    }
}

/// The media type of a response, without its parameters; a very long one is cut.
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

    /// Takes it from a `Content-Type`; none from none.
    pub fn of(content_type: Option<&[u8]>) -> Self {
        let value = content_type.unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b';' | b' ' | b'\t');
        let end = value.iter().position(ends).unwrap_or(value.len()).min(Self::LONGEST);
        let mut media_type = Self { length: end as u8, ..Self::default() };
        media_type.bytes[..end].copy_from_slice(&value[..end]);
        media_type
    }

    /// As it was sent; `None` when there was none.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..usize::from(self.length)).filter(|bytes| !bytes.is_empty())
    }
}

/// Takes records. Called on a worker's thread: it must not wait.
pub trait AccessSink: Send + Sync {
    /// Takes one.
    fn record(&self, record: &AccessRecord<'_>);

    /// Whether it takes a record of a request with that outcome.
    fn wants(&self, _outcome: CacheStatus) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
