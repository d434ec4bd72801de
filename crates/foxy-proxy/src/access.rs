//! What is known of a request when it has ended; whoever keeps a log takes it from here.

use crate::cache_status::CacheStatus;
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
    /// The status sent; 0 when the client left before.
    pub status: u16,
    /// Bytes sent, head included.
    pub bytes: u64,
    /// Bytes of body sent.
    pub body_bytes: u64,
    /// The method; empty when the request could not be read.
    pub method: &'a str,
    /// The URL, or the authority of a CONNECT.
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

/// Takes records. Called on a worker's thread: it must not wait.
pub trait AccessSink: Send + Sync {
    /// Takes one.
    fn record(&self, record: &AccessRecord<'_>);
}
