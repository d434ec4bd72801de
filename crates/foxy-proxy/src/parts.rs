//! Stored parts of responses that were never fetched whole: one contiguous part a URL, served to
//! requests for ranges within it, and joined with others of the same strong entity tag (RFC 9111
//! §3.4) until it is the whole.

use crate::answer::{self, After, Cut, Short, Told};
use crate::cache_status::{CacheStatus, HitSource};
use crate::cached::Wanted;
use crate::exchange::{Next, decide};
use crate::fields::View;
use crate::hit::counter;
use crate::sender::Sender;
use crate::stored::{CacheKey, Stored, StoredBody};
use crate::worker::Worker;
use bytes::BytesMut;
use foxy_base::clock;
use foxy_http::ResponseHead;
use foxy_rules::partial::are_of_one;
use foxy_rules::{Part, Permit, Policy, RangeAnswer, RequestControl, requested_range};
use std::sync::Arc;

/// Answers a request for a range from the `known` part. `None` when that does not hold the range,
/// or may not answer; when it was taken, it is gone.
pub(crate) async fn answer(
    worker: &Worker,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    control: &RequestControl,
    known: &mut Option<(Arc<Stored>, HitSource)>,
) -> Result<Option<(After, Told)>, Cut> {
    let Some((stored, source)) = &*known else { return Ok(None) };
    let headers = &wanted.head.headers;
    if headers.contains("if-none-match") || headers.contains("if-modified-since") {
        return Ok(None);
    }
    let (source, now) = (*source, clock::steady());
    let view = View(&stored.head.headers);
    let (ttl, permit) = match decide(control, stored, now) {
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
    worker.counters.add(counter(source), 1);
    let how = (stored.times.age(now), CacheStatus::Hit { source, ttl, permit });
    match answer::stored(worker, sender, wanted.asked, stored, Some(span), how).await {
        Ok(answered) => Ok(Some(answered)),
        Err(Short::Cut(cut)) => Err(cut),
        Err(short) => {
            worker.shared.cache.forget(&wanted.key.part());
            if matches!(short, Short::Gone) { Ok(None) } else { Err(Cut::Source) }
        }
    }
}

/// What to keep, now that a part has come: it alone, or with what is stored already, which may make
/// it the whole. Its header fields are those of the new part. Only bodies held in memory are
/// joined, up to `limit` bytes.
pub(crate) fn with_stored(
    base: &CacheKey,
    new: Stored,
    stored: Option<&Stored>,
    policy: Policy,
    limit: u64,
) -> (CacheKey, Stored) {
    match stored.and_then(|old| joined(base, &new, old, policy, limit)) {
        Some(kept) => kept,
        None => (base.part(), new),
    }
}

fn joined(
    base: &CacheKey,
    new: &Stored,
    old: &Stored,
    policy: Policy,
    limit: u64,
) -> Option<(CacheKey, Stored)> {
    let (view, older) = (View(&new.head.headers), View(&old.head.headers));
    let (part, other) = (Part::of(&view)?, Part::of(&older)?);
    let both =
        part.joined(other).filter(|both| both.length() <= limit && are_of_one(&view, &older))?;
    let (StoredBody::Whole(body), StoredBody::Whole(older)) = (&new.body, &old.body) else {
        return None;
    };
    let mut bytes = BytesMut::zeroed(usize::try_from(both.length()).ok()?);
    for (part, body) in [(other, older), (part, body)] {
        let at = usize::try_from(part.first - both.first).ok()?;
        bytes.get_mut(at..at + body.len())?.copy_from_slice(body);
    }
    let mut head = ResponseHead { headers: new.head.headers.clone(), ..ResponseHead::new(200) };
    head.headers.remove("content-range");
    let key = if both.is_whole() {
        base.clone()
    } else {
        head = ResponseHead { headers: head.headers, ..ResponseHead::new(206) };
        let value = format!("bytes {}-{}/{}", both.first, both.last, both.complete);
        head.headers.append("Content-Range", value);
        base.part()
    };
    let body = StoredBody::Whole(bytes.freeze());
    let stored = Stored::new(key.text.clone(), &head, policy, new.times, both.length(), body);
    Some((key, stored))
}
