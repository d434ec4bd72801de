//! An answer that passes through to one client and is kept for later ones: to a POST whose answer
//! is what a GET would give (RFC 9110 §9.3.3), and a part of what a GET would give (RFC 9111 §3.3).
//! Nobody else reads it while it comes.

use crate::cache::storage::PART;
use crate::cache::stored::{CacheKey, Stored, VaryList, strip};
use crate::cache::watch::Watch;
use crate::core::fields::View;
use crate::fill::body_writer::{BodyWriter, Kept};
use crate::fill::joined_part::with_stored;
use crate::fill::request::placed;
use crate::fill::storability::why_not_storable;
use crate::fill::times::Times;
use crate::flight::keeping::Needed;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{RequestHead, ResponseHead};
use foxy_rules::partial::are_of_one;
use foxy_rules::{Part, StoredTimes};
use std::rc::Rc;
use std::sync::Arc;

/// An answer that is being kept.
pub(crate) struct Tee {
    base: CacheKey,
    key: CacheKey,
    list: Option<(VaryList, bool)>,
    head: ResponseHead,
    times: StoredTimes,
    watch: Watch,
    writer: Option<BodyWriter>,
    /// Bytes of the body that have not come, where its length is known.
    missing: Option<u64>,
    /// Whether it is the whole of a response or a part.
    kind: TeeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TeeKind {
    Whole,
    Part,
}

impl Tee {
    /// Begins to keep an answer of that length, if it may be. `times` are those of the request and
    /// of the answer's head, which is without hop-by-hop fields already. If the URL was invalidated
    /// since the `watch` began, it is not kept. A part is stored as its whole would be, if its
    /// length is the one it says and no request field chose it; larger ones than a record, of which
    /// few are asked for twice, are not.
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        base: &CacheKey,
        request: &RequestHead,
        (head, length): (&ResponseHead, Option<u64>),
        times: Times,
        watch: Watch,
    ) -> Option<Self> {
        let fields = View(&head.headers);
        let kind = if head.status == 206 { TeeKind::Part } else { TeeKind::Whole };
        if kind == TeeKind::Part {
            let part = Part::of(&fields)?;
            let small = part.length() <= PART as u64;
            if !small || length != Some(part.length()) || head.headers.contains("vary") {
                return None;
            }
        }
        let asked = (request.method.as_str(), &request.headers);
        let status = if kind == TeeKind::Part { 200 } else { head.status };
        if why_not_storable(worker, base, asked, (status, &head.headers), times.civil).is_some() {
            return None;
        }
        let times = times.stored(&fields);
        let mut head = head.clone();
        strip(&mut head.headers);
        let cache = &worker.shared.cache;
        let (key, list) = match kind {
            TeeKind::Whole => placed(cache, base, None, &head, &request.headers),
            TeeKind::Part => (base.part(), None),
        };
        let writer = Some(BodyWriter::new(worker, base, &key, length));
        Some(Self {
            base: base.clone(),
            key,
            list,
            head,
            times,
            watch,
            writer,
            missing: length,
            kind,
        })
    }

    /// Takes more of the body, before the client has it: when the client has all, so has the cache.
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

    /// The body has come whole.
    pub(crate) async fn complete(&mut self, worker: &Worker) {
        let Some(writer) = self.writer.take() else { return };
        let Some((body, length)) = writer.complete(Needed::Later).await else { return };
        let policy = worker.settings().policy();
        let stored =
            Stored::new(self.key.text.clone(), &self.head, policy, self.times, length, body);
        let cache = &worker.shared.cache;
        let (key, stored) = match self.kind {
            TeeKind::Whole => (self.key.clone(), stored),
            TeeKind::Part => {
                let before = cache.part(&self.base, &worker.counters).await;
                let before = before.as_ref().map(|(stored, _)| &**stored);
                let same = |before: &&Stored| {
                    are_of_one(&View(&before.head.headers), &View(&stored.head.headers))
                };
                if before.is_some_and(|before| before.is_of_slices() && same(&before)) {
                    // More is known of the object than this.
                    return;
                }
                with_stored(&self.base, stored, before, policy, PART as u64)
            }
        };
        let list = self.list.as_ref().map(|(list, new)| (list, *new));
        cache.add(
            &self.base,
            &key,
            &Arc::new(stored),
            list,
            self.watch.fetched(),
            &worker.counters,
        );
    }
}
