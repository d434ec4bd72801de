//! A *tee* stores an answer while the answer passes to one client. Meanwhile no other request reads
//! the answer. The cache stores the answer to a POST in this way, if a GET would receive the same
//! answer (RFC 9110 §9.3.3). It also stores partial responses (RFC 9111 §3.3). A *watch* is a note
//! that a look-up or fetch of a URL is in progress. While it exists, the cache records all writes
//! to the URL.

use crate::cache::{CacheKey, PART, Placement, Stored, StoredBody, Watch, strip};
use crate::core::View;
use crate::fill::body_writer::{BodyWriter, Kept};
use crate::fill::request::{OriginHead, placed, why_not_storable};
use crate::flight::Needed;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_http::{Method, RequestHead, ResponseHead};
use foxy_rules::partial::are_of_one;
use foxy_rules::{Part, Policy, StoredTimes};
use std::rc::Rc;
use std::sync::Arc;

/// An answer that is being stored while one client receives it.
pub(crate) struct Tee {
    base: CacheKey,
    placement: Placement,
    head: ResponseHead,
    times: StoredTimes,
    watch: Watch,
    writer: Option<BodyWriter>,
    missing: Option<u64>,
    kind: TeeKind,
    /// True if only memory stores the answer.
    is_copy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TeeKind {
    Whole,
    Part,
}

impl Tee {
    /// Starts to store an answer, if it may be stored. The head must be without hop-by-hop fields.
    /// If the URL is invalidated after `watch` began, the answer is not stored. A partial response
    /// is stored only if the whole response could be stored and has no Vary field. The partial
    /// response must also have its announced length and fit in one record.
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        base: &CacheKey,
        request: &RequestHead,
        origin: &OriginHead,
        watch: Watch,
    ) -> Option<Self> {
        let OriginHead { head, length, times } = origin;
        let fields = View(&head.headers);
        let kind = if head.status == 206 { TeeKind::Part } else { TeeKind::Whole };
        if kind == TeeKind::Part {
            let part = Part::of(&fields)?;
            let small = part.length() <= PART as u64;
            if !small || *length != Some(part.length()) || head.headers.contains("vary") {
                return None;
            }
        }
        let asked = (request.method.as_str(), &request.headers);
        let status = if kind == TeeKind::Part { 200 } else { head.status };
        let whole = ResponseHead { status, ..head.clone() };
        if why_not_storable(worker, base, asked, &whole, *length, times.civil).is_some() {
            return None;
        }
        let times = times.stored(&fields);
        let mut head = head.clone();
        strip(&mut head.headers);
        let cache = &worker.shared.cache;
        let placement = match kind {
            TeeKind::Whole => placed(cache, base, None, &head, &request.headers),
            TeeKind::Part => base.part().into(),
        };
        let writer = Some(BodyWriter::new(worker, base, &placement.key, *length));
        let (base, missing) = (base.clone(), *length);
        let is_copy = false;
        Some(Self { base, placement, head, times, watch, writer, missing, kind, is_copy })
    }

    /// Starts to store a copy of the owner's answer in memory, if the answer may be stored. The
    /// copy inherits the answer's age, so the copy is never fresher than the owner's response.
    pub(crate) fn copy(
        worker: &Rc<Worker>,
        base: &CacheKey,
        request: &RequestHead,
        origin: &OriginHead,
        watch: Watch,
    ) -> Option<Self> {
        let limit = worker.shared.cache.memory_object_limit.min(PART as u64);
        let is_small = origin.length.is_some_and(|length| length <= limit);
        let is_whole = request.method == Method::Get && origin.head.status == 200;
        let tee = (is_small && is_whole).then(|| Self::begin(worker, base, request, origin, watch));
        tee.flatten().map(|tee| Self { is_copy: true, ..tee })
    }

    /// Adds the next bytes of the body. The caller must call this function before it sends these
    /// bytes to the client. So the cache has the whole body before the client has it.
    pub(crate) async fn take(&mut self, worker: &Worker, data: &Bytes) {
        let Some(writer) = &mut self.writer else { return };
        if writer.take(data, Needed::Later).await != Kept::Yes {
            self.writer = None;
            return;
        }
        self.missing = self.missing.map(|missing| missing.saturating_sub(data.len() as u64));
        if self.missing == Some(0) {
            self.complete(worker).await;
        }
    }

    /// Stores the answer in the cache. The caller must call this method when the body is complete.
    pub(crate) async fn complete(&mut self, worker: &Worker) {
        let Some(writer) = self.writer.take() else { return };
        let Some((body, length)) = writer.complete(Needed::Later).await else { return };
        let text = self.placement.key.text.clone();
        let policy = worker.policy(&text, &self.head, Some(length));
        let mut stored = Stored::new(text, &self.head, policy, self.times, length, body);
        let cache = &worker.shared.cache;
        let mut placement = self.placement.clone();
        if self.kind == TeeKind::Part
            && let Some(before) = cache.part(&self.base, &worker.counters).await
        {
            let before = &before.stored;
            let same = are_of_one(&View(&before.head.headers), &View(&stored.head.headers));
            if before.is_of_slices() && same {
                // The stored slices (aligned MiB) of the object already contain more bytes than
                // this partial response.
                return;
            }
            if let Some((key, both)) = joined(&self.base, &stored, before, policy, PART as u64) {
                (placement, stored) = (key.into(), both);
            }
        }
        let source = self.watch.fetched();
        if self.is_copy {
            return cache.add_copy(
                &self.base,
                &placement,
                &Arc::new(stored),
                source,
                &worker.counters,
            );
        }
        cache.add(&self.base, &placement, &Arc::new(stored), source, &worker.counters);
    }
}

/// Joins a new partial response with the stored partial response. Returns the result and its key.
/// The result may be the whole response. It has the header fields of the new response. Joins only
/// bodies in memory, and only up to `limit` bytes.
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
