//! An answer that passes through to one client and is kept for later ones: to a POST whose answer is what a GET would
//! give (RFC 9110 §9.3.3). Nobody else reads it while it comes.

use crate::cache::Epoch;
use crate::fields::View;
use crate::fill::placed;
use crate::keeper::{Keeper, Kept};
use crate::stored::{CacheKey, Stored, VaryList, strip};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{RequestHead, ResponseHead};
use foxy_rules::storable::Exchange;
use foxy_rules::{Storability, StoredTimes, storability};
use std::rc::Rc;
use std::sync::Arc;

/// An answer that is being kept.
pub(crate) struct Aside {
    base: CacheKey,
    key: CacheKey,
    list: Option<(VaryList, bool)>,
    head: ResponseHead,
    times: StoredTimes,
    epoch: Epoch,
    keeper: Option<Keeper>,
    /// Bytes of the body that have not come, where its length is known.
    missing: Option<u64>,
}

impl Aside {
    /// Begins to keep an answer of that length, if it may be. `times` are those of the request and of the answer's head, which is without
    /// hop-by-hop fields already. What the request made invalid must be so before.
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        base: &CacheKey,
        request: &RequestHead,
        (head, length): (&ResponseHead, Option<u64>),
        times: (WallTime, WallTime),
    ) -> Option<Self> {
        let verdict = storability(Exchange {
            method: request.method.as_str(),
            target: &base.text,
            request: &View(&request.headers),
            status: head.status,
            response: &View(&head.headers),
            received: times.1,
            role: worker.settings().mode.role(),
        });
        if verdict != Storability::Store {
            return None;
        }
        let initial = StoredTimes::new(&View(&head.headers), times.0, times.1);
        let mut head = head.clone();
        strip(&mut head.headers);
        let cache = &worker.shared.cache;
        let (key, list) = placed(cache, base, None, &head, &request.headers);
        let keeper = Some(Keeper::new(worker, base, &key));
        let (base, epoch) = (base.clone(), cache.epoch(base));
        Some(Self { base, key, list, head, times: initial, epoch, keeper, missing: length })
    }

    /// Takes more of the body, before the client has it: when the client has all, so has the cache.
    pub(crate) async fn take(&mut self, worker: &Worker, data: &Bytes) {
        let Some(keeper) = &mut self.keeper else { return };
        if keeper.take(data) == Kept::No {
            self.keeper = None;
            return;
        }
        self.missing = self.missing.map(|missing| missing.saturating_sub(data.len() as u64));
        if self.missing == Some(0) {
            self.complete(worker).await;
        }
    }

    /// The body has come whole.
    pub(crate) async fn complete(&mut self, worker: &Worker) {
        let Some(keeper) = self.keeper.take() else { return };
        let Some((body, length)) = keeper.complete().await else { return };
        let (role, head) = (worker.settings().mode.role(), self.head.clone());
        let stored = Arc::new(Stored::new(self.key.text.clone(), head, role, self.times, length, body));
        let list = self.list.as_ref().map(|(list, new)| (list, *new));
        worker.shared.cache.add(&self.base, &self.key, &stored, list, self.epoch, &worker.counters);
    }
}
