//! Passes a sample of the finished requests, chosen by cache key, to a receiver. The `foxy` program
//! estimates from it how many hits caches of other sizes would have.

use crate::request::cache_status::CacheStatus;
use foxy_store::Key;

/// A finished request whose cache key is in the sample.
#[derive(Clone, Copy, Debug)]
pub struct SampledAnswer<'a> {
    /// The hash of the cache key of the URL.
    pub key: Key,
    /// The requested host, with its port if the client sent a port.
    pub host: &'a [u8],
    /// Whether the method is GET.
    pub is_get: bool,
    /// How the cache handled the request.
    pub outcome: CacheStatus,
    /// The status that was sent.
    pub status: u16,
    /// Number of bytes of the head that was sent.
    pub head_bytes: u64,
    /// Number of body bytes that were sent.
    pub body_bytes: u64,
}

/// Receives the sample on the thread of a worker. The methods must not block.
pub trait AnswerSample: Send + Sync {
    /// Returns whether the sample contains this key. The answer had `body_bytes` bytes of body.
    fn takes(&self, key: Key, body_bytes: u64) -> bool;

    /// Receives an answer of the sample.
    fn add(&self, answer: &SampledAnswer<'_>);
}
