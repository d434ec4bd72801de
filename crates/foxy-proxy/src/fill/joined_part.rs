//! A part of a response, joined with the parts that are stored.

use crate::cache::stored::{CacheKey, Stored, StoredBody};
use crate::core::fields::View;
use bytes::BytesMut;
use foxy_http::ResponseHead;
use foxy_rules::partial::are_of_one;
use foxy_rules::{Part, Policy};

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

pub(crate) fn joined(
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
