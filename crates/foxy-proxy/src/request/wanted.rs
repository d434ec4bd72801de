//! The object that a client wants.

use crate::cache::stored::CacheKey;
use crate::core::client_block::ClientBlock;
use crate::request::answer_options::AnswerOptions;
use crate::upstream::Origin;
use foxy_http::RequestHead;

/// A GET or HEAD that the cache is asked about.
pub(crate) struct Wanted<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) origin: Origin,
    pub(crate) key: CacheKey,
    pub(crate) options: AnswerOptions,
    /// Who asks.
    pub(crate) client: ClientBlock,
}
