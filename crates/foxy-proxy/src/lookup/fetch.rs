//! Answers requests that the cache alone cannot answer. Fetches the response from the origin, and
//! shares the fetch (the *flight*) with other requests for the same response.

use crate::answer::transaction::Transaction;
use crate::cache::{Epoch, Found, InMemory, Stored, VaryList};
use crate::core::{Counter, ForwardReason, HitSource, View};
use crate::fill::stale::{Miss, PendingUpdate};
use crate::fill::{outgoing, refresh, start};
use crate::flight::{Boarding, Flight, FlightEvent, Reader};
use crate::lookup::answer_from_flight::{Followed, answer_from_flight, follow, is_personal};
use crate::lookup::serve_stored::{make_up, serve_or_make_up};
use crate::lookup::{Lookup, ask_cold, ask_node, by_slices, forward};
use crate::request::exchange::{FleetRole, Next, decide};
use crate::request::{Aborted, Answered, ErrorReason, Hit};
use foxy_base::clock;
use foxy_rules::UpstreamRange;
use std::sync::Arc;

/// The result of answering a request from the cache or from a fetch.
pub(crate) enum Fetched {
    Answered(Answered),
    /// The request is a HEAD or a range that the cache cannot answer. The caller must forward it
    /// unchanged. The answer to a HEAD may then update a stored response.
    Forward(ForwardReason, Option<PendingUpdate>),
}

/// Answers a request from the cache, or fetches the response.
pub(crate) async fn answer_or_fetch(
    transaction: &mut Transaction<'_, '_>,
) -> Result<Fetched, Aborted> {
    loop {
        let mut miss = None;
        let looked = super::answer(transaction).await?;
        if matches!(transaction.wanted.role, FleetRole::MayAsk(_) | FleetRole::Asked(_))
            && let Some(answered) = Box::pin(ask_node::answer(transaction, &looked)).await?
        {
            return Ok(Fetched::Answered(answered));
        }
        let looked = ask_cold::answer(transaction, looked).await?;
        let answered = match looked {
            Lookup::Answered(answered) => Some(answered),
            Lookup::Lost(lost) => Box::pin(make_up(transaction, lost)).await?,
            Lookup::Refresh { stored, key, hit } => {
                let Transaction { worker, wanted, looked, .. } = *transaction;
                refresh(worker, wanted, &stored, key, transaction.watch());
                let now = clock::steady();
                Box::pin(serve_or_make_up(transaction, stored, looked, hit, now)).await?
            }
            Lookup::Refused => None,
            Lookup::Miss { found, reason, validate } => {
                let watch = transaction.watch().renewing(transaction.wants_anew());
                let (waiting, key) = (&transaction.worker.shared.waiting, &transaction.wanted.key);
                miss = Some(Miss::new(waiting, key, found, reason, validate, watch));
                None
            }
        };
        if let Some(answered) = answered {
            return Ok(Fetched::Answered(answered));
        }
        if miss.is_none() && transaction.control.only_if_cached {
            if let Some(answered) = Box::pin(by_slices::from_store(transaction)).await? {
                return Ok(Fetched::Answered(answered));
            }
            return Box::pin(not_stored(transaction)).await.map(Fetched::Answered);
        }
        let miss = miss.unwrap_or_else(|| Miss::of_lost_body(transaction.watch()));
        if let Some(fetched) = Box::pin(fetch(transaction, miss)).await? {
            return Ok(fetched);
        }
        transaction.look_again();
    }
}

/// Tells a client, or another node that asks only for a stored response, that this node has none.
async fn not_stored(transaction: &mut Transaction<'_, '_>) -> Result<Answered, Aborted> {
    match transaction.wanted.role {
        // No client receives this answer, so it is no error of this node.
        FleetRole::AskedForStored => transaction.no_stored_response().await,
        _ => transaction.error(ErrorReason::OnlyIfCached).await,
    }
}

/// Fetches the response from the origin, alone or together with other requests. Returns `None` if
/// this request joined a fetch that began before the request arrived, and the response was stale on
/// arrival. The caller must then look in the cache again.
async fn fetch(
    transaction: &mut Transaction<'_, '_>,
    miss: Miss,
) -> Result<Option<Fetched>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let head_only = wanted.options.head_only;
    let range = outgoing::asked_range(&wanted.head.headers);
    let range = range.filter(|range| *range != UpstreamRange::Whole);
    if head_only || (range.is_some() && !miss.validates()) {
        if let Some(range) = range.filter(|_| !head_only)
            && let Some(answered) = Box::pin(by_slices::answer(transaction, &miss, &range)).await?
        {
            return Ok(Some(Fetched::Answered(answered)));
        }
        let reason = miss.reason;
        let update = miss.pending_update(&wanted.key).filter(|_| head_only);
        return Ok(Some(Fetched::Forward(reason, update)));
    }
    if miss.stale.is_none()
        && let Some(answered) = by_slices::complete(transaction, &miss).await?
    {
        return Ok(Some(Fetched::Answered(answered)));
    }
    let answered = match answer_while_servers_rest(transaction, &miss).await? {
        None => fetch_for_one(transaction, &miss).await?,
        answered => answered,
    };
    if let Some(answered) = answered {
        return Ok(Some(Fetched::Answered(answered)));
    }
    let mut left = None;
    let (mut got, leads) = loop {
        match board(transaction, &miss, left.as_ref()) {
            Boarding::Leads(flight, reader) => {
                break (lead(transaction, &miss, flight, reader).await?, true);
            }
            Boarding::Follows(reader) => {
                worker.counters.add(Counter::Collapsed, 1);
                let late = reader.is_late();
                let got = match Box::pin(follow(transaction, &miss, &reader)).await? {
                    Followed::Answered(answered) => Some(answered),
                    Followed::Unusable => None,
                    Followed::Stale => return Ok(None),
                };
                // A client that joins a shared fetch late needs the beginning of the body from
                // memory or from the store. If neither has the beginning, all such clients share a
                // new fetch.
                if got.is_some() || left.is_some() || !late || reader.is_late() {
                    break (got, false);
                }
                left = Some(reader);
            }
            Boarding::Landed(stored) => {
                worker.counters.add(Counter::Collapsed, 1);
                let looked = miss.watch.looked();
                break (Box::pin(landed(transaction, stored, looked)).await?, false);
            }
        }
    };
    if got.is_none() && !leads {
        got = Box::pin(lead_alone(transaction, &miss)).await?;
    }
    if got.is_none() {
        let miss = Miss { stale: None, ..miss };
        got = Box::pin(lead_alone(transaction, &miss)).await?;
    }
    got.map(|answered| Some(Fetched::Answered(answered))).ok_or(Aborted::Source)
}

/// Answers with the stale response if it may replace an error (stale-if-error), and if all servers
/// of the origin rest (receive no requests after failures).
async fn answer_while_servers_rest(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
) -> Result<Option<Answered>, Aborted> {
    const ERROR: Option<u16> = Some(503);
    let Transaction { wanted, .. } = *transaction;
    let member = wanted.origin.member.as_ref();
    let rests = || member.is_some_and(|member| member.group.all_rest(clock::monotonic()));
    let Some(stale) = miss.stale.as_ref().filter(|_| rests()) else { return Ok(None) };
    let now = clock::steady();
    let Some(hit) = stale.hit_after(ERROR, &wanted.head.headers, now) else { return Ok(None) };
    let hit = Hit { source: HitSource::Memory, ..hit };
    let (stored, looked) = (Arc::clone(&stale.stored), miss.watch.looked());
    Box::pin(serve_or_make_up(transaction, stored, looked, hit, now)).await
}

/// Fetches for this request alone, if the last response of the URL could answer only its own
/// request. Otherwise returns `None`.
async fn fetch_for_one(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let has_authorization = wanted.head.headers.contains("authorization");
    let refusals = &worker.shared.refusals;
    let is_for_one = miss.stale.is_none()
        && refusals.expect_for_one(&wanted.key, has_authorization, clock::steady());
    if is_for_one { Box::pin(lead_alone(transaction, miss)).await } else { Ok(None) }
}

/// Joins a flight (shared fetch) that may answer the request. Does not join the flight that the
/// reader `left` has just left. If no flight fits, returns a response that was stored meanwhile, or
/// starts a flight.
fn board(transaction: &Transaction<'_, '_>, miss: &Miss, left: Option<&Reader>) -> Boarding {
    let Transaction { worker, wanted, .. } = *transaction;
    let (cache, headers) = (&worker.shared.cache, &wanted.head.headers);
    let epoch = miss.watch.again().epoch;
    if transaction.wants_anew() {
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
    worker.shared.board(&wanted.key, variant, epoch, fits, landed)
}

/// Answers with a response that another request stored after the look-up of this request. Returns
/// `None` if this request may not use the response.
async fn landed(
    transaction: &mut Transaction<'_, '_>,
    stored: Arc<Stored>,
    looked: Epoch,
) -> Result<Option<Answered>, Aborted> {
    let now = clock::steady();
    let Next::Serve { ttl, permit: None } = decide(&transaction.control, &stored, now) else {
        return Ok(None);
    };
    let hit = Hit { source: HitSource::Memory, ttl, permit: None };
    serve_or_make_up(transaction, stored, looked, hit, now).await
}

/// Starts a fetch and reads its flight. If this client disconnects, the fetch continues while other
/// requests read the flight, or if few bytes are missing.
async fn lead(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    flight: Arc<Flight>,
    reader: Reader,
) -> Result<Option<Answered>, Aborted> {
    if is_personal(transaction.wanted) {
        flight.set_personal();
    }
    start(transaction.worker, transaction.wanted, miss, flight);
    loop {
        match reader.event(true).await {
            FlightEvent::Interim(head) => {
                let options = transaction.wanted.options;
                Box::pin(forward::interim(transaction.sender, options, head)).await?
            }
            FlightEvent::Outcome(outcome) => {
                return answer_from_flight(transaction, miss, &reader, outcome, false).await;
            }
        }
    }
}

/// Starts a flight that no other request can join, and reads it.
async fn lead_alone(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
) -> Result<Option<Answered>, Aborted> {
    let epoch = miss.watch.again().epoch;
    let (flight, reader) = transaction.worker.shared.flights.alone(epoch);
    lead(transaction, miss, flight, reader).await
}
