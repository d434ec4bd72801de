//! What a cache may answer. GET and HEAD: memory first, then the store, then a flight to the
//! origin.

pub(crate) mod answer_from_flight;
pub(crate) mod by_slices;
pub(crate) mod follow;
pub(crate) mod forward;
pub(crate) mod result;
pub(crate) mod serve_stored;

use crate::answer::parts;
use crate::answer::transaction::Transaction;
use crate::cache::epoch::Epoch;
use crate::cache::stored::{CacheKey, Stored, VaryList};
use crate::cache::watch::Watch;
use crate::cache::{Found, InMemory};
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::fill;
use crate::fill::outgoing;
use crate::fill::request::FillRequest;
use crate::fill::stale::{Miss, Stale};
use crate::flight::flights::Boarding;
use crate::flight::{Flight, FlightEvent, Piece, Reader};
use crate::lookup::answer_from_flight::answer_from_flight;
use crate::lookup::follow::{Followed, follow};
use crate::lookup::result::LookupResult;
use crate::lookup::serve_stored::serve_stored;
use crate::request::exchange::{Next, can_be_validated, decide, decide_without};
use crate::request::reason::ErrorReason;
use crate::request::sent::Aborted;
use crate::request::wanted::Wanted;
use foxy_base::clock;
use foxy_rules::{Permit, RequestControl, UpstreamRange, Vary};
use std::rc::Rc;
use std::sync::Arc;

/// Answers one request.
pub(crate) async fn answer(transaction: &mut Transaction<'_, '_>) -> Result<LookupResult, Aborted> {
    loop {
        if let Some(got) = attempt(transaction).await? {
            return Ok(got);
        }
        transaction.look_again();
    }
}

/// Answers a request from what there is in its epoch; `None` when it waited for what was stale when
/// it came.
async fn attempt(transaction: &mut Transaction<'_, '_>) -> Result<Option<LookupResult>, Aborted> {
    let Transaction { worker, wanted, epoch, .. } = *transaction;
    let cache = &worker.shared.cache;
    let (found, source, watch) = match cache.in_memory(&wanted.key, &wanted.head.headers) {
        InMemory::Found(found) => (found, HitSource::Memory, None),
        InMemory::Ask(key, list) => {
            let (headers, watch) = (&wanted.head.headers, cache.watch_since(&wanted.key, epoch));
            let found =
                cache.in_store((&wanted.key, &watch), key, list, headers, &worker.counters).await;
            (found, HitSource::Disk, Some(watch))
        }
    };
    let watched = || watch.clone().unwrap_or_else(|| cache.watch_since(&wanted.key, epoch));
    let (now, unsure) = (clock::steady(), matches!(found, Found::Unknown));
    let (next, list, stored) = match found {
        Found::Response(stored, key) => {
            (decide(&transaction.control, &stored, now), None, Some((stored, key)))
        }
        Found::Varies(list) => (decide_without(&transaction.control, true), Some(list), None),
        Found::Nothing | Found::Unknown => {
            (decide_without(&transaction.control, false), None, None)
        }
    };
    let reason = match next {
        Next::Serve { ttl, permit } => {
            let Some((stored, key)) = stored else { return Err(Aborted::Source) };
            if permit == Some(Permit::WhileRevalidate) {
                refresh(transaction, &stored, key, watched());
            }
            if let Some((after, sent)) =
                serve_stored(transaction, (stored, epoch), (source, ttl, permit), now).await?
            {
                return Ok(Some(LookupResult::Answered(after, sent)));
            }
            if transaction.control.only_if_cached {
                return only_if_cached(transaction).await.map(Some);
            }
            let miss = Miss { reason: ForwardReason::UriMiss, list, stale: None, watch: watched() };
            return fetch(transaction, miss).await;
        }
        Next::GatewayTimeout => {
            return only_if_cached(transaction).await.map(Some);
        }
        Next::Revalidate(reason) | Next::Fetch(reason) => reason,
    };
    let list =
        list.or_else(|| stored.as_ref().and_then(|(stored, key)| list_of(wanted, stored, key)));
    let validate = matches!(next, Next::Revalidate(_));
    let waiting = &worker.shared.waiting;
    let stale = stored.map(|(stored, key)| Stale::hold(waiting, stored, key, validate));
    let watch = watched().renewing(stale.is_some() || unsure || wants_anew(&transaction.control));
    fetch(transaction, Miss { reason, list, stale, watch }).await
}

/// The list a stored variant was found by.
fn list_of(wanted: &Wanted<'_>, stored: &Stored, key: &CacheKey) -> Option<VaryList> {
    wanted.key.list_of(key, Vary::of(&View(&stored.head.headers)).ok()?)
}

/// Validates a stored response that is served stale meanwhile (RFC 5861 §3), unless its URL is
/// being fetched already.
fn refresh(transaction: &Transaction<'_, '_>, stored: &Arc<Stored>, key: CacheKey, watch: Watch) {
    let Transaction { worker, wanted, .. } = *transaction;
    let watch = watch.renewing(true);
    let boarding = worker.shared.board((&wanted.key, None), watch.epoch, |_| true, || None);
    let Boarding::Leads(flight, reader) = boarding else { return };
    worker.counters.add(Counter::BackgroundRefreshes, 1);
    let list = list_of(wanted, stored, &key);
    let stale =
        Stale::hold(&worker.shared.waiting, Arc::clone(stored), key, can_be_validated(stored));
    start(
        transaction,
        &Miss { reason: ForwardReason::Stale, list, stale: Some(stale), watch },
        flight,
    );
    tokio::task::spawn_local(async move { while let Piece::Data(_) = reader.next().await {} });
}

async fn only_if_cached(transaction: &mut Transaction<'_, '_>) -> Result<LookupResult, Aborted> {
    let (after, sent) = transaction.error(ErrorReason::OnlyIfCached).await?;
    Ok(LookupResult::Answered(after, sent))
}

/// Gets it from the origin, alone or with others who want the same. `None` when what others had
/// asked for before this request came was stale on arrival.
async fn fetch(
    transaction: &mut Transaction<'_, '_>,
    miss: Miss,
) -> Result<Option<LookupResult>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let head_only = wanted.options.head_only;
    let range = outgoing::asked_range(&wanted.head.headers);
    let range = range.filter(|range| *range != UpstreamRange::Whole);
    if head_only || (range.is_some() && !miss.validates()) {
        if let Some(range) = range.filter(|_| !head_only) {
            let mut known = worker.shared.cache.part(&wanted.key, &worker.counters).await;
            if let Some((after, sent)) = parts::answer(transaction, &mut known).await? {
                return Ok(Some(LookupResult::Answered(after, sent)));
            }
            if let Some(got) = by_slices::answer(transaction, (&miss, &range, known)).await? {
                return Ok(Some(got));
            }
        }
        let reason = miss.reason;
        let described = miss.described(&wanted.key).filter(|_| head_only);
        return Ok(Some(LookupResult::Forward(reason, described)));
    }
    if miss.stale.is_none()
        && let Some(got) = by_slices::complete(transaction, &miss).await?
    {
        return Ok(Some(got));
    }
    let mut left = None;
    let (mut got, leads) = loop {
        match board(transaction, &miss, left.as_ref()) {
            Boarding::Leads(flight, reader) => {
                break (lead(transaction, &miss, (flight, reader)).await?, true);
            }
            Boarding::Follows(reader) => {
                worker.counters.add(Counter::Collapsed, 1);
                let late = reader.is_late();
                let got = match follow(transaction, &miss, &reader).await? {
                    Followed::Answered(got) => Some(got),
                    Followed::Not => None,
                    Followed::Stale => return Ok(None),
                };
                // Those whose flight lost its beginning share another one.
                if got.is_some() || left.is_some() || !late || reader.is_late() {
                    break (got, false);
                }
                left = Some(reader);
            }
            Boarding::Landed(stored) => {
                worker.counters.add(Counter::Collapsed, 1);
                break (landed(transaction, (stored, miss.watch.looked())).await?, false);
            }
        }
    };
    if got.is_none() && !leads {
        got =
            lead(transaction, &miss, worker.shared.flights.alone(miss.watch.again().epoch)).await?;
    }
    if got.is_none() {
        let miss = Miss { stale: None, ..miss };
        got =
            lead(transaction, &miss, worker.shared.flights.alone(miss.watch.again().epoch)).await?;
    }
    got.map(Some).ok_or(Aborted::Source)
}

/// Joins a flight other than the one that was `left`, or begins one.
fn board(transaction: &Transaction<'_, '_>, miss: &Miss, left: Option<&Reader>) -> Boarding {
    let Transaction { worker, wanted, .. } = *transaction;
    let (cache, headers) = (&worker.shared.cache, &wanted.head.headers);
    let epoch = miss.watch.again().epoch;
    if wants_anew(&transaction.control) {
        let (flight, reader) = worker.shared.flights.lead(wanted.key.hash, epoch);
        return Boarding::Leads(flight, reader);
    }
    let landed = || match cache.in_memory(&wanted.key, headers) {
        InMemory::Found(Found::Response(stored, _)) if miss.stale.is_none() => Some(stored),
        _ => None,
    };
    let fits = |flight: &Flight| {
        flight.may_answer(&transaction.control, clock::steady())
            && !left.is_some_and(|reader| reader.is_of(flight))
    };
    let variant = |list: &VaryList| wanted.key.variant(list, &list.vary.key(&View(headers))).hash;
    let variant = miss.list_in_force().map(variant);
    worker.shared.board((&wanted.key, variant), epoch, fits, landed)
}

/// Whether nothing that is stored or being fetched already would do.
fn wants_anew(control: &RequestControl) -> bool {
    control.no_cache || control.max_age == Some(0)
}

/// Answers from what was stored after this request had looked; `None` if it may not answer.
async fn landed(
    transaction: &mut Transaction<'_, '_>,
    (stored, epoch): (Arc<Stored>, Epoch),
) -> Result<Option<LookupResult>, Aborted> {
    let now = clock::steady();
    let Next::Serve { ttl, permit: None } = decide(&transaction.control, &stored, now) else {
        return Ok(None);
    };
    let how = (HitSource::Memory, ttl, None);
    let answered = serve_stored(transaction, (stored, epoch), how, now).await?;
    Ok(answered.map(|(after, sent)| LookupResult::Answered(after, sent)))
}

/// Starts a fill and reads its flight. The fill goes on if this client leaves and others read, or
/// little is missing.
async fn lead(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    (flight, reader): (Arc<Flight>, Reader),
) -> Result<Option<LookupResult>, Aborted> {
    start(transaction, miss, flight);
    loop {
        match reader.event(true).await {
            FlightEvent::Interim(head) => {
                forward::interim(transaction.sender, transaction.wanted.options, head).await?
            }
            FlightEvent::Outcome(outcome) => {
                return answer_from_flight(transaction, miss, &reader, outcome, false).await;
            }
        }
    }
}

/// Starts a fill.
fn start(transaction: &Transaction<'_, '_>, miss: &Miss, flight: Arc<Flight>) {
    let Transaction { worker, wanted, .. } = *transaction;
    worker.counters.add(Counter::Forwarded, 1);
    let validated = miss.stale.as_ref().filter(|stale| stale.validate).map(|stale| &*stale.stored);
    let outgoing = outgoing::for_cache(worker, wanted.head, wanted.origin.clone(), validated);
    let exchange = worker.upstream.exchange(outgoing).asked_by(wanted.client);
    let request = FillRequest {
        request: wanted.head.clone(),
        origin: wanted.origin.clone(),
        base: wanted.key.clone(),
        list: miss.list_in_force().cloned(),
        stale: miss.stale.clone(),
        watch: miss.watch.of_flight(flight.epoch),
        ranged: false,
    };
    tokio::task::spawn_local(fill::run(Rc::clone(worker), flight, request, exchange));
}
