//! Requests for a range of an object that is known, if at all, by aligned slices: answered from
//! those that are stored, and from the origin slice by slice where they are not. What the client
//! gets is of one representation, or is cut.

use crate::answer::{self, After, Cut, Rest, Told};
use crate::cache_status::{CacheStatus, HitSource};
use crate::cached::{Got, Wanted};
use crate::exchange::{Next, decide};
use crate::fields::View;
use crate::memory::Cached;
use crate::not_kept::NotKept;
use crate::reason::ForwardReason;
use crate::sender::Sender;
use crate::settle::settle;
use crate::slice_flight::{Ask, Sliced, fetch};
use crate::slice_send::{Start, send};
use crate::stale::Miss;
use crate::storage::{PART, part_key};
use crate::stored::{CacheKey, Stored, StoredBody};
use crate::watch::Watch;
use crate::worker::Worker;
use foxy_base::clock;
use foxy_rules::slice::{slice_of, strong_validator};
use foxy_rules::{
    Permit, RangeAnswer, RangeSpec, RequestControl, Span, UpstreamRange, requested_range,
};
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::timeout;

/// For how many seconds an object is not asked for by slices once its answer could not be kept so.
const NOT_AGAIN: u64 = 300;

/// Answers a request for one range. `None` when slices are no way to do it; nothing was sent then.
pub(crate) async fn answer(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    control: &RequestControl,
    (miss, range, known): (&Miss, &UpstreamRange, Option<(Arc<Stored>, HitSource)>),
) -> Result<Option<Got>, Cut> {
    let UpstreamRange::One(spec) = range else { return Ok(None) };
    if !may_be_sliced(worker, wanted, control) {
        return Ok(None);
    }
    let next = |(set, source): (Arc<Stored>, HitSource)| {
        let next = decide(control, &set, clock::steady());
        (set, next, source)
    };
    let (asked, set, reason) = match known.filter(|(set, _)| set.is_of_slices()).map(next) {
        Some((set, Next::Serve { ttl, permit }, source))
            if permit != Some(Permit::WhileRevalidate) =>
        {
            let start = Start::Stored(source, ttl, permit);
            return ranged_answer(worker, sender, wanted, miss, set, start).await;
        }
        Some((set, Next::Serve { .. } | Next::Revalidate(_), _)) => {
            let Some(span) = asked_of(wanted, &set) else { return Ok(None) };
            (span, Some(set), ForwardReason::Stale)
        }
        Some((_, Next::GatewayTimeout | Next::Fetch(_), _)) | None => match *spec {
            RangeSpec::Span(span) => (span, None, miss.reason),
            RangeSpec::Suffix(_) => return Ok(None),
        },
    };
    let asked = slice_of(asked.first, PART as u64);
    let ask = Ask {
        asked,
        set: set.as_ref(),
        validate: set.is_some(),
        alone: false,
        list: miss.list_in_force(),
    };
    match fetch(worker, wanted, &miss.watch, ask).await {
        Sliced::Slice(fetched) => {
            let set = Arc::clone(&fetched.set);
            ranged_answer(worker, sender, wanted, miss, set, Start::Fetched(fetched, reason)).await
        }
        Sliced::Confirmed(set) => {
            let now = clock::steady();
            let ttl = i64::try_from(set.lifetime).unwrap_or(i64::MAX)
                - i64::try_from(set.times.age(now)).unwrap_or(i64::MAX);
            let start = Start::Stored(HitSource::Revalidated(reason), ttl, None);
            ranged_answer(worker, sender, wanted, miss, set, start).await
        }
        Sliced::Other(reader, outcome, collapsed) => {
            settle(worker, sender, wanted, miss, &reader, outcome, collapsed).await
        }
        Sliced::Not => Ok(None),
    }
}

/// Answers with the range that is asked of a set; `None` where that is none, or would take slices
/// that cannot be had.
async fn ranged_answer(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    miss: &Miss,
    set: Arc<Stored>,
    start: Start,
) -> Result<Option<Got>, Cut> {
    match requested_range(&View(&wanted.head.headers), &View(&set.head.headers), set.length) {
        RangeAnswer::Part(span) => {
            if let Start::Fetched(fetched, _) = &start
                && !fetched.lasting
                && span.last > fetched.asked.last
            {
                return Ok(None);
            }
            send(worker, sender, wanted, miss, (set, start), Some(span)).await
        }
        RangeAnswer::Unsatisfiable => {
            let outcome = CacheStatus::Local { detail: "range-not-satisfiable" };
            let (after, told) =
                answer::unsatisfiable(sender, wanted.asked, set.length, outcome).await?;
            Ok(Some(Got::Answered(after, told)))
        }
        RangeAnswer::Whole | RangeAnswer::Several(_) => Ok(None),
    }
}

/// Answers a request for the whole from slices of which memory knows, and fetches the others.
pub(crate) async fn complete(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    control: &RequestControl,
    miss: &Miss,
) -> Result<Option<Got>, Cut> {
    let cache = &worker.shared.cache;
    let Some(Cached::Response(set)) = cache.held(&wanted.key.part()) else { return Ok(None) };
    if !set.is_of_slices()
        || set.length > cache.object_limit
        || !may_be_sliced(worker, wanted, control)
    {
        return Ok(None);
    }
    let Next::Serve { ttl, permit: None } = decide(control, &set, clock::steady()) else {
        return Ok(None);
    };
    let start = Start::Stored(HitSource::Memory, ttl, None);
    let got = send(worker, sender, wanted, miss, (Arc::clone(&set), start), None).await?;
    if got.is_some() {
        name_anew(worker, &wanted.key, &wanted.key, &set, &miss.watch);
    }
    Ok(got)
}

/// Keeps what is known of an object by slices as its whole, when each of them is stored or was
/// handed to the store; or the other way round. The fill that its parts are named by stays the
/// same.
fn name_anew(
    worker: &Worker,
    base: &CacheKey,
    key: &CacheKey,
    known: &Stored,
    watch: &Watch,
) -> Arc<Stored> {
    let named = Arc::new(Stored { key: key.text.clone(), ..Stored::clone(known) });
    let watch = watch.clone().begun(known.begun);
    worker.shared.cache.add(base, key, &named, None, watch.found(), &worker.counters);
    named
}

/// What is left of a whole that has lost a part: slices, so that only those that are missing are
/// fetched. `None` where they could not be told from another representation's, where the origin
/// does not say that it gives ranges, and where nothing was sent yet and the last part is gone too:
/// parts go in the order in which they came.
pub(crate) async fn left_of(
    worker: &Worker,
    base: &CacheKey,
    stored: &Stored,
    watch: &Watch,
    is_begun: bool,
) -> Option<Arc<Stored>> {
    let storage = worker.shared.cache.storage()?;
    let view = View(&stored.head.headers);
    let StoredBody::Parts { fill } = stored.body else { return None };
    let gives_ranges =
        stored.head.headers.get("accept-ranges").is_some_and(|unit| unit == b"bytes");
    if stored.key != base.text || !gives_ranges || strong_validator(&view).is_none() {
        return None;
    }
    if !is_begun {
        let last = part_key(stored.object(), fill, stored.length.saturating_sub(1) / PART as u64);
        timeout(storage.patience(), storage.part(last)).await.ok()??;
    }
    Some(name_anew(worker, base, &base.part(), stored, watch))
}

/// Sends the rest of a whole of which that set is left, and fetches what is missing of it.
pub(crate) async fn rest(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    watch: Watch,
    set: Arc<Stored>,
    rest: Rest,
) -> Result<(After, Told), Cut> {
    let is_to_the_end = rest.end == set.length;
    let miss = Miss { reason: ForwardReason::Partial, list: None, stale: None, watch };
    let whole = Arc::clone(&set);
    let got = send(worker, sender, wanted, &miss, (set, Start::Begun(rest)), None).await?;
    if is_to_the_end {
        name_anew(worker, &wanted.key, &wanted.key, &whole, &miss.watch);
    }
    match got {
        Some(Got::Answered(after, told)) => Ok((after, told)),
        Some(Got::Forward(..)) | None => Err(Cut::Source),
    }
}

/// Whether slices of what is wanted could be kept, as far as can be said before an origin is asked.
fn may_be_sliced(worker: &Worker, wanted: &Wanted<'_>, control: &RequestControl) -> bool {
    let (cache, headers) = (&worker.shared.cache, &wanted.head.headers);
    let refused = worker.shared.refusals.last(&wanted.key).filter(|refused| {
        let lasting = matches!(refused.why, NotKept::Rule(_) | NotKept::NoSlices);
        let lately = clock::steady().seconds() < refused.at.seconds() + NOT_AGAIN;
        lasting && lately && matches!(refused.status, 200 | 206)
    });
    cache.storage().is_some()
        && cache.object_limit >= PART as u64
        && !control.no_store
        && !headers.contains("if-none-match")
        && !headers.contains("if-modified-since")
        && refused.is_none()
}

/// The one range that is asked of an object.
fn asked_of(wanted: &Wanted<'_>, set: &Stored) -> Option<Span> {
    match requested_range(&View(&wanted.head.headers), &View(&set.head.headers), set.length) {
        RangeAnswer::Part(span) => Some(span),
        RangeAnswer::Whole | RangeAnswer::Several(_) | RangeAnswer::Unsatisfiable => None,
    }
}
