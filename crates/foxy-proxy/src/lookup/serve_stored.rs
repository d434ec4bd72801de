//! A stored response that may answer: as a 304, a range, or all of it, even when the store has lost
//! a part of it.

use crate::answer;
use crate::answer::multipart;
use crate::answer::resume;
use crate::cache::epoch::Epoch;
use crate::cache::stored::{CacheKey, Stored, StoredBody};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::request::cache_status::CacheStatus;
use crate::request::cache_status::How;
use crate::request::sent::{Aborted, After, Sent, Short};
use crate::request::wanted::Wanted;
use crate::worker::Worker;
use foxy_base::{WallTime, clock};
use foxy_rules::{Conditional, RangeAnswer, evaluate, requested_range};
use std::rc::Rc;
use std::sync::Arc;

/// Serves a stored response, looked for in `epoch`. `None` when its body turned out to be gone
/// before anything was sent: then it is a miss. When it turns out later, the rest comes from the
/// origin. What is left of it is left as slices.
pub(crate) async fn serve_stored(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    (stored, epoch): (Arc<Stored>, Epoch),
    (source, ttl, permit): How,
    now: WallTime,
) -> Result<Option<(After, Sent)>, Aborted> {
    worker.counters.add(source.counter(), 1);
    let outcome = CacheStatus::Hit { source, ttl, permit };
    let age = stored.times.age(now);
    let (request, head) = (View(&wanted.head.headers), View(&stored.head.headers));
    let received = match wanted.head.headers.contains("if-modified-since") {
        true => clock::civil(stored.times.received),
        false => stored.times.received,
    };
    if evaluate(&request, stored.head.status, &head, received) == Conditional::NotModified {
        return answer::not_modified(sender, wanted.options, &stored.head.headers, age, outcome)
            .await
            .map(Some);
    }
    let range = match stored.head.status {
        200 if !wanted.options.head_only => requested_range(&request, &head, stored.length),
        _ => RangeAnswer::Whole,
    };
    let how = (age, outcome);
    // While the body is sent, nothing here may hold it.
    let (sent_head, sent_key, length) =
        (Arc::clone(&stored.head), stored.key.clone(), stored.length);
    // What the store has lost of it may have to be written under another key.
    let in_parts = matches!(stored.body, StoredBody::Parts { .. })
        .then(|| (Arc::clone(&stored), worker.shared.cache.watch_since(&wanted.key, epoch)));
    let sent = match range {
        RangeAnswer::Unsatisfiable => {
            return answer::unsatisfiable(sender, wanted.options, stored.length, outcome)
                .await
                .map(Some);
        }
        RangeAnswer::Whole => {
            answer::stored(worker, sender, wanted.options, stored, None, how).await
        }
        RangeAnswer::Part(span) => {
            answer::stored(worker, sender, wanted.options, stored, Some(span), how).await
        }
        RangeAnswer::Several(spans) => {
            multipart::stored(worker, sender, wanted.options, stored, &spans, how).await
        }
    };
    let short = match sent {
        Ok(answered) => return Ok(Some(answered)),
        Err(Short::Aborted(aborted)) => return Err(aborted),
        Err(short) => short,
    };
    let is_begun = matches!(short, Short::Rest(_));
    let left = match in_parts {
        Some((stored, watch)) => {
            worker.shared.cache.forget(&CacheKey::new(sent_key));
            let left =
                crate::slices::rest::left_of(worker, &wanted.key, &stored, &watch, is_begun).await;
            left.map(|set| (set, watch))
        }
        // What took its place meanwhile stays.
        None => None,
    };
    match (short, left) {
        (Short::Rest(rest), Some((set, watch))) => {
            worker.counters.add(Counter::Resumed, 1);
            Box::pin(crate::slices::rest::rest(worker, sender, wanted, watch, set, rest))
                .await
                .map(Some)
        }
        (Short::Rest(rest), None) => {
            resume::rest(worker, sender, wanted, (&sent_head, length), rest).await.map(Some)
        }
        (Short::Gone | Short::Aborted(_), _) => Ok(None),
    }
}
