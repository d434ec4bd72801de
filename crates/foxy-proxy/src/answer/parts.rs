//! Stored parts of responses that were never fetched whole: one contiguous part a URL, served to
//! requests for ranges within it, and joined with others of the same strong entity tag (RFC 9111
//! §3.4) until it is the whole.

use crate::answer;
use crate::answer::transaction::Transaction;
use crate::cache::stored::Stored;
use crate::core::fields::View;
use crate::core::hit_source::HitSource;
use crate::request::cache_status::CacheStatus;
use crate::request::exchange::{Next, decide};
use crate::request::sent::{Aborted, After, Sent, Short};
use foxy_base::clock;
use foxy_rules::{Part, Permit, RangeAnswer, requested_range};
use std::sync::Arc;

/// Answers a request for a range from the `known` part. `None` when that does not hold the range,
/// or may not answer; when it was taken, it is gone.
pub(crate) async fn answer(
    transaction: &mut Transaction<'_, '_>,
    known: &mut Option<(Arc<Stored>, HitSource)>,
) -> Result<Option<(After, Sent)>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let Some((stored, source)) = &*known else { return Ok(None) };
    let headers = &wanted.head.headers;
    if headers.contains("if-none-match") || headers.contains("if-modified-since") {
        return Ok(None);
    }
    let (source, now) = (*source, clock::steady());
    let view = View(&stored.head.headers);
    let (ttl, permit) = match decide(&transaction.control, stored, now) {
        Next::Serve { permit: Some(Permit::WhileRevalidate), .. } => return Ok(None),
        Next::Serve { ttl, permit } => (ttl, permit),
        Next::GatewayTimeout | Next::Revalidate(_) | Next::Fetch(_) => return Ok(None),
    };
    let Some(part) = Part::of(&view) else { return Ok(None) };
    let span = match requested_range(&View(headers), &view, part.complete) {
        RangeAnswer::Part(span) if part.holds(span.first, span.last) => span,
        _ => return Ok(None),
    };
    let Some((stored, _)) = known.take() else { return Ok(None) };
    worker.counters.add(source.counter(), 1);
    let how = (stored.times.age(now), CacheStatus::Hit { source, ttl, permit });
    match answer::stored(worker, transaction.sender, wanted.options, stored, Some(span), how).await
    {
        Ok(answered) => Ok(Some(answered)),
        Err(Short::Aborted(aborted)) => Err(aborted),
        Err(short) => {
            worker.shared.cache.forget(&wanted.key.part());
            if matches!(short, Short::Gone) { Ok(None) } else { Err(Aborted::Source) }
        }
    }
}
