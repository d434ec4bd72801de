//! Asks the owner of the cache key for a response, if another node of the fleet owns the key. The
//! owner fetches and stores the response. Each key has an order of nodes: its owner, the second
//! node, and so on. If the owner is slow or fails, this node asks the second node. If neither gives
//! an answer, the caller fetches the response itself.

use crate::answer::stream::{self, Source, Streamed, StreamedHead};
use crate::answer::transaction::Transaction;
use crate::cache::{Found, Stored};
use crate::core::{Counter, ForwardReason};
use crate::fill::outgoing;
use crate::fill::request::{OriginHead, Times, known_length};
use crate::fill::stale::hit_after;
use crate::fill::supersede::forget_replaced_by_node;
use crate::fill::tee::Tee;
use crate::lookup::Lookup;
use crate::lookup::serve_stored::serve_or_make_up;
use crate::request::exchange::FleetRole;
use crate::request::{Aborted, Answered, CacheStatus, forwarding_fields};
use crate::upstream::fleet::owners_state::OwnersState;
use crate::upstream::fleet::signs::HeardSigns;
use crate::upstream::fleet::{ChosenNode, ErrorCause, FIELD, SECOND, STORED, Told};
use crate::upstream::{FleetLink, HeadEvent, RequestBody, Scheme, UpstreamError, UpstreamExchange};
use foxy_base::{WallTime, clock};
use foxy_http::{BodyLength, ResponseHead, strip_hop_by_hop};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Largest number of nodes that one request asks: the owner of the key and the second node.
const MAX_ASKED: usize = 2;

/// Interval of the checks whether a node that has not answered yet has become unreachable.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Status with which a node tells that it has no stored response (RFC 9111 §5.2.1.7).
const NOT_STORED: u16 = 504;

/// A node that was asked, and that has not answered yet.
struct AskedNode {
    number: usize,
    asked: Instant,
    /// Time of the request on the steady clock.
    requested: WallTime,
    /// Time when the caller also asks another node. `None` if it no longer does so.
    patience_ends: Option<Instant>,
    /// True if the node may answer only with a stored response. Such a request (a *hedge*) goes to
    /// a second node while the first node is slow.
    is_hedge: bool,
    /// The interim responses with which the node tells that it waits for the origin.
    signs: HeardSigns,
    exchange: Box<UpstreamExchange>,
}

/// The head of a node's answer, and the exchange that delivers the body.
struct NodeAnswer {
    exchange: Box<UpstreamExchange>,
    head: ResponseHead,
    length: BodyLength,
    told: Told,
    times: Times,
    /// True if the second node for the key answered, not the key's owner.
    is_second: bool,
}

/// Answers with the response of another node, if the look-up in this node's cache found no usable
/// response. Returns `None` if this node must fetch the response itself. If the client is itself a
/// node of the fleet, only tells the client that this node waits for the origin.
pub(crate) async fn answer(
    transaction: &mut Transaction<'_, '_>,
    looked: &Lookup,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let (reason, is_miss) = match looked {
        Lookup::Miss { reason, .. } => (*reason, true),
        Lookup::Refresh { .. } => (ForwardReason::Stale, false),
        Lookup::Refused => (ForwardReason::UriMiss, false),
        Lookup::Answered(_) | Lookup::Lost(_) => return Ok(None),
    };
    let scheme = match wanted.role {
        FleetRole::MayAsk(scheme) => scheme,
        FleetRole::Asked(_) if is_miss => {
            transaction.sender.waits_for_origin().await?;
            return Ok(None);
        }
        FleetRole::Asked(_)
        | FleetRole::AskedForStored
        | FleetRole::Alone(_)
        | FleetRole::NoFleet => return Ok(None),
    };
    let Some(link) = &worker.settings().upstream.fleet else { return Ok(None) };
    let mut asking = Asking { transaction, link, scheme, tried: Vec::new(), open: Vec::new() };
    let answer = asking.first().await;
    let has_tried = !asking.tried.is_empty();
    match answer {
        Some(answer) => {
            let has_failed = answer.told.error.is_some();
            match looked {
                Lookup::Miss { found: Found::Response(stored, _), .. } if has_failed => {
                    if let Some(answered) = stand_in(transaction, stored).await? {
                        return Ok(Some(answered));
                    }
                }
                Lookup::Miss { found: Found::Response(stored, key), .. } => {
                    let (base, watch) = (&wanted.key, transaction.watch());
                    let status = answer.head.status;
                    forget_replaced_by_node(worker, (base, key), stored, &watch, status).await;
                }
                // The client gets the stale response, as the caching rules permit.
                Lookup::Refresh { .. } if has_failed => return Ok(None),
                _ => {}
            }
            send(transaction, answer, reason).await.map(Some)
        }
        None => {
            worker.counters.add(Counter::FleetFallbacks, has_tried.into());
            Ok(None)
        }
    }
}

/// Answers with this node's stale response instead of the origin's failure, which another node has
/// reported, if the caching rules permit it.
async fn stand_in(
    transaction: &mut Transaction<'_, '_>,
    stored: &Arc<Stored>,
) -> Result<Option<Answered>, Aborted> {
    let now = clock::steady();
    let hit = hit_after(stored, None, &transaction.wanted.head.headers, now);
    let Some(hit) = hit else { return Ok(None) };
    let looked = transaction.looked;
    Box::pin(serve_or_make_up(transaction, Arc::clone(stored), looked, hit, now)).await
}

/// One request's attempts to get an answer from another node.
struct Asking<'a, 'b, 'client> {
    transaction: &'a Transaction<'b, 'client>,
    link: &'a FleetLink,
    scheme: Scheme,
    /// The nodes that this request has asked to fetch or answer. Requests for a stored response
    /// alone (hedges) are not included.
    tried: Vec<usize>,
    /// The nodes that have not answered yet, at most [`MAX_ASKED`].
    open: Vec<AskedNode>,
}

impl Asking<'_, '_, '_> {
    /// Returns the first useful answer of a node. Returns `None` if no node gives a useful answer.
    async fn first(&mut self) -> Option<NodeAnswer> {
        loop {
            if self.open.is_empty() && !self.ask_another() {
                return None;
            }
            let patience_ends = self.open[0].patience_ends.filter(|_| self.open.len() == 1);
            if self.open.iter().all(|asked| asked.is_hedge) && self.ask_another() {
                continue;
            }
            tokio::select! {
                biased;
                (at, event) = first_event(&mut self.open) => {
                    if let Ok(HeadEvent::Interim(head)) = event {
                        let asked = &mut self.open[at];
                        self.link.fleet.works(asked.number);
                        asked.signs.hear(&head.headers, Instant::now());
                        asked.patience_ends = None;
                        continue;
                    }
                    let asked = self.open.swap_remove(at);
                    if let Some(answer) = self.judged(asked, event) {
                        return Some(answer);
                    }
                }
                () = until(patience_ends) => {
                    self.open[0].patience_ends = None;
                    self.hedge();
                }
                () = sleep(CHECK_INTERVAL) => self.give_up_silent(),
            }
        }
    }

    /// Stops waiting for nodes that are lost, or that were silent for too long.
    fn give_up_silent(&mut self) {
        let (link, counters) = (self.link, &self.transaction.worker.counters);
        self.open.retain(|asked| {
            let is_silent = asked.signs.is_silent(Instant::now());
            if is_silent && asked.exchange.is_sent() {
                link.misses_request(counters, asked.number);
            }
            !is_silent && !link.fleet.is_lost(asked.number)
        });
    }

    /// Asks the next node for the key: the owner first, then the second node. Returns false if no
    /// node is left.
    fn ask_another(&mut self) -> bool {
        let Some(chosen) = self.next_node() else { return false };
        let mark = (!self.tried.is_empty()).then_some(SECOND);
        self.tried.push(chosen.node.number);
        self.ask(chosen, mark);
        true
    }

    /// Asks the next node for the key, but only for a stored response. Meanwhile the first node may
    /// still answer.
    fn hedge(&mut self) {
        if let Some(chosen) = self.next_node() {
            self.transaction.worker.counters.add(Counter::FleetHedges, 1);
            self.ask(chosen, Some(STORED));
        }
    }

    fn next_node(&self) -> Option<ChosenNode> {
        let key = &self.transaction.wanted.key.text;
        let chosen = || self.link.fleet.choose(key, &self.tried);
        (self.tried.len() < MAX_ASKED).then(chosen).flatten()
    }

    fn ask(&mut self, ChosenNode { node, patience }: ChosenNode, mark: Option<&str>) {
        let Transaction { worker, wanted, .. } = *self.transaction;
        let body = RequestBody::none();
        let mut request = outgoing::forwarded(worker, wanted.head, wanted.origin.clone(), body);
        request.headers.retain(|name, _| !forwarding_fields::is_named(name));
        if let Some(mark) = mark {
            request.headers.append(FIELD, mark);
        }
        let exchange = worker.upstream.exchange(request).asked_by(wanted.client);
        let asked = Instant::now();
        self.open.push(AskedNode {
            number: node.number,
            asked,
            requested: clock::steady(),
            patience_ends: Some(asked + patience),
            is_hedge: mark == Some(STORED),
            signs: HeardSigns::since(asked),
            exchange: Box::new(exchange.sent_to_node(&node, self.scheme)),
        });
        worker.counters.add(Counter::FleetRequests, 1);
    }

    /// Returns the answer of a node if the client may receive it. Also tells the fleet's state that
    /// the node has answered or failed.
    fn judged(
        &self,
        asked: AskedNode,
        event: Result<HeadEvent, UpstreamError>,
    ) -> Option<NodeAnswer> {
        let counters = &self.transaction.worker.counters;
        let (mut head, length) = match event {
            Ok(HeadEvent::Final(head, length)) => (head, length),
            Ok(HeadEvent::Continue | HeadEvent::Interim(_)) => return None,
            Err(error) => {
                match error {
                    UpstreamError::Connect(_) | UpstreamError::NoResponse => {
                        self.link.fails(counters, asked.number);
                    }
                    UpstreamError::HeadTimeout if !asked.signs.is_waiting() => {
                        self.link.misses_request(counters, asked.number);
                    }
                    _ => {}
                }
                return None;
            }
        };
        let told = Told::read(&head.headers)?;
        head.headers.remove(FIELD);
        let took = (!asked.signs.is_waiting()).then(|| asked.asked.elapsed());
        self.link.fleet.answered(asked.number, took, told);
        if told.is_busy {
            counters.add(Counter::FleetBusy, 1);
            return None;
        }
        if asked.is_hedge && head.status == NOT_STORED {
            return None;
        }
        let is_second = self.tried.first() != Some(&asked.number);
        let (exchange, times) = (asked.exchange, Times::until_now(asked.requested));
        let answer = NodeAnswer { exchange, head, length, told, times, is_second };
        (told.error != Some(ErrorCause::Node)).then_some(answer)
    }
}

/// Waits for the first event of any exchange. Returns the position of its node in `open`.
async fn first_event(open: &mut [AskedNode]) -> (usize, Result<HeadEvent, UpstreamError>) {
    match open {
        [one] => (0, one.exchange.head().await),
        [one, two] => tokio::select! {
            event = one.exchange.head() => (0, event),
            event = two.exchange.head() => (1, event),
        },
        _ => pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// Sends the answer of a node to the client. Keeps a copy in memory if the key is hot (requested
/// often).
async fn send(
    transaction: &mut Transaction<'_, '_>,
    answer: NodeAnswer,
    reason: ForwardReason,
) -> Result<Answered, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let NodeAnswer { mut exchange, mut head, length, told, times, is_second } = answer;
    let state = OwnersState::of(&head);
    let is_hit = state != OwnersState::Fetched;
    worker.counters.add(Counter::FleetHits, is_hit.into());
    let responder = exchange.responder();
    let responder = if is_hit { responder.found_in_cache() } else { responder };
    transaction.sender.answered_by(responder);
    strip_hop_by_hop(&mut head.headers);
    worker.add_via(head.version, &mut head.headers);
    if !wanted.options.head_only && head.status != 304 {
        head.headers.remove("content-length");
    }
    let hot_rate = worker.settings().upstream.fleet.as_ref().map(|link| link.fleet.hot_rate());
    let is_hot = hot_rate.is_some_and(|rate| told.rate >= rate)
        && state != OwnersState::Stale
        && told.error.is_none();
    let origin = OriginHead { head, length: known_length(length), times };
    let watch = is_hot.then(|| transaction.watch());
    let may_copy = |_: &_| worker.shared.purges.book.followed().may_copy(told.applied);
    let copy = |watch| Tee::copy(worker, &wanted.key, wanted.head, &origin, watch);
    let mut tee = watch.filter(may_copy).and_then(copy);
    worker.counters.add(Counter::FleetCopies, tee.is_some().into());
    let outcome = CacheStatus::Forwarded {
        reason,
        status: Some(origin.head.status),
        stored: tee.is_some(),
        collapsed: false,
        detail: Some(if is_second { "second" } else { "owner" }),
    };
    let (head, length) = (&origin.head, origin.length);
    let streamed = StreamedHead { head, wire: None, length, age: None, outcome };
    let begun = streamed.begin(worker, transaction.sender, wanted.options);
    let source = Source::Exchange(&mut exchange, tee.as_mut());
    match stream::carry(worker, transaction.sender, wanted.options, begun, source).await? {
        Streamed::Whole(answered) => Ok(answered),
        Streamed::LeftBehind(_) => Err(Aborted::Source),
    }
}
