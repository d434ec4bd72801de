//! Asks the rules whether an answer may be stored, as the operator has this cache decide. What is
//! done about it is the caller's.

use crate::cache::stored::CacheKey;
use crate::core::fields::View;
use crate::worker::Worker;
use foxy_base::WallTime;
use foxy_http::Headers;
use foxy_rules::storable::Exchange;
use foxy_rules::{NotStoredReason, Storability, storability};

/// Why an answer to a request for that URL may not be stored, if it may not. The request is its
/// method and fields, the answer its status and fields; a part is asked about with the status of
/// its whole.
pub(crate) fn why_not_storable(
    worker: &Worker,
    base: &CacheKey,
    (method, request): (&str, &Headers),
    (status, response): (u16, &Headers),
    received: WallTime,
) -> Option<NotStoredReason> {
    let exchange = Exchange {
        method,
        target: &base.text,
        request: &View(request),
        status,
        response: &View(response),
        received,
        policy: worker.settings().policy(),
    };
    match storability(exchange) {
        Storability::Store => None,
        Storability::DoNotStore(reason) => Some(reason),
    }
}
