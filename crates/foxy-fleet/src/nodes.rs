//! Implements the trait [`Fleet`] for the proxy. It knows the state of each node, and chooses the
//! node to ask for a key.

use crate::joining::{JoinTerms, Joining};
use crate::member::{Member, MemberId, Members};
use crate::node_table::{ListedNode, NodeTable};
use crate::times::RecentTimes;
use foxy_base::{Instant, KeyRates};
use foxy_proxy::core::live::Live;
use foxy_proxy::upstream::fleet::{ChosenNode, Fleet, FleetNode, Standing, Told};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// A node counts as busy only if it answers more than this number of requests from other nodes at
/// the same time.
const NEVER_BUSY: u32 = 64;

/// A node counts as lost after this number of consecutive pings without an answer. A single missing
/// answer may only mean that the node's machine is busy.
const MISSED_PINGS: u32 = 3;

/// A node counts as lost after this number of consecutive requests without an answer in time, even
/// if it answers pings. A single missing answer may only mean that a disk is busy.
const MISSED_REQUESTS: u32 = 3;

/// A node that answered no requests is asked again after it has answered this number of pings. The
/// next request without an answer in time makes the node lost again.
const RESTING_PINGS: u32 = 10;

/// Shortest time to wait for the owner of a key before this node asks a second node. Pauses by the
/// operating system's scheduler are usually shorter.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// Longest time to wait for the owner of a key. It also applies while too few answers of the owner
/// were measured.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// The state of a fleet, as one node sees it.
#[derive(Debug)]
pub struct Nodes {
    table: Live<NodeTable>,
    joining: Mutex<Joining>,
    /// Whether, since the last [`Self::tick`], this node reached another node after it had reached
    /// none.
    returns: AtomicBool,
    /// Whether this node now asks the former owners of its keys for responses.
    asks_former: AtomicBool,
    rates: KeyRates,
    /// Number of requests from other nodes that this node is answering.
    load: AtomicU32,
    hot_rate: u32,
    /// Hash of those settings of this node that must be equal on all nodes. 0 if the hash is
    /// unknown.
    settings: AtomicU64,
}

/// The state of a node, as the node's own answers report it.
#[derive(Debug, Default)]
pub struct NodeState {
    is_lost: AtomicBool,
    /// Number of pings without an answer since the node's last answer.
    missed_pings: AtomicU32,
    /// Number of requests without an answer in time since the node's last answer to a request.
    missed_requests: AtomicU32,
    /// Number of pings that the node must still answer before it is asked again.
    resting_pings: AtomicU32,
    load: AtomicU32,
    /// The fraction of its keys, in thousandths, that the node does not take while it joins or
    /// leaves.
    missing_part: AtomicU32,
    is_leaving: AtomicBool,
    times: RecentTimes,
    /// Hash of those settings of the node that must be equal on all nodes. 0 if the hash is
    /// unknown.
    settings: AtomicU64,
    /// Whether [`Nodes::new_differences`] has already reported that the node's settings differ.
    is_reported: AtomicBool,
}

/// The state of a node, as foxy shows it to the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// Name, address and weight of the node.
    pub member: Member,
    /// True if the node is this node itself.
    pub is_own: bool,
    /// True if the node accepts no connections, or answers no pings or requests.
    pub is_lost: bool,
    /// True if the node's settings differ from this node's settings, although they must be equal.
    pub differs: bool,
    /// The fraction of its keys that the node takes, and whether the node leaves.
    pub standing: Standing,
    /// Fraction of all keys that the node owns now, from 0 to 1.
    pub share: f64,
    /// Number of requests from other nodes that the node is answering.
    pub load: u32,
    /// Time that 99 % of the node's recent answers did not exceed. Answers that waited for the
    /// origin do not count.
    pub p99: Option<Duration>,
}

impl Nodes {
    /// Creates the state of a fleet. If a key has at least `hot_rate` requests per second, all
    /// nodes keep copies of its responses.
    pub fn new(members: Members, hot_rate: u32) -> Self {
        Self {
            table: Live::from(NodeTable::new(members)),
            joining: Mutex::default(),
            returns: AtomicBool::new(false),
            asks_former: AtomicBool::new(false),
            rates: KeyRates::default(),
            load: AtomicU32::new(0),
            hot_rate,
            settings: AtomicU64::new(0),
        }
    }

    fn joining(&self) -> MutexGuard<'_, Joining> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to join the fleet. This node takes no keys until [`Self::tick`] is called with
    /// `is_ready`.
    pub fn join(&self, terms: JoinTerms, now: Instant) {
        self.joining().begin(terms);
        self.update(now);
    }

    /// Begins to leave the fleet, so that this node takes no more keys. If `is_leaving` is false,
    /// ends the leaving.
    pub fn leave(&self, is_leaving: bool, now: Instant) {
        self.joining().leave(is_leaving);
        self.update(now);
    }

    /// Takes more keys if this node is joining and the next step is due. The caller must call this
    /// function at least every few seconds. `is_ready` is true if this node can serve stored
    /// responses without validation.
    pub fn tick(&self, is_ready: bool, now: Instant) {
        if is_ready {
            self.joining().ready(now);
        }
        if self.returns.swap(false, Ordering::Relaxed) {
            self.joining().returns(now);
        }
        self.update(now);
    }

    fn update(&self, now: Instant) {
        let joining = self.joining();
        let (standing, asks) = (joining.standing(now), joining.asks_former_owners(now));
        drop(joining);
        self.asks_former.store(asks, Ordering::Relaxed);
        let table = self.table.get();
        table.all().filter(|seat| seat.is_own).for_each(|seat| seat.state.set_standing(standing));
    }

    /// Replaces the list of members. Requests in progress keep their nodes. A node that stays a
    /// member keeps its state.
    pub fn set_members(&self, members: Members) {
        let table = self.table.get_whole().followed_by(members);
        self.table.replace(table);
    }

    /// Computes the hash of the settings that must be equal on all nodes. The hash also covers the
    /// names and weights of the members.
    pub fn set_settings(&self, settings: &str) {
        let word = |member: &Member| format!("{} {}\n", member.id, member.weight);
        let table = self.table.get();
        let mut members: Vec<_> = table.members().all().iter().map(word).collect();
        members.sort();
        let hash = xxh3_64((members.concat() + settings).as_bytes());
        self.settings.store(hash.max(1), Ordering::Relaxed);
    }

    /// Returns the nodes whose settings have begun to differ from this node's settings since the
    /// last call.
    pub fn new_differences(&self) -> Vec<MemberId> {
        let is_new = |state: &NodeState| {
            let differs = self.differs(state);
            let was_reported = state.is_reported.swap(differs, Ordering::Relaxed);
            differs && !was_reported
        };
        let table = self.table.get();
        let new = table.all().filter(|seat| is_new(seat.state));
        new.map(|seat| seat.member.id.clone()).collect()
    }

    fn differs(&self, state: &NodeState) -> bool {
        let (own, other) = (&self.settings, &state.settings);
        let [own, other] = [own, other].map(|hash| hash.load(Ordering::Relaxed));
        own != 0 && other != 0 && own != other
    }

    /// Returns the state of each node for the operator.
    pub fn status(&self) -> Vec<NodeStatus> {
        let table = self.table.get();
        let works = |seat: &ListedNode<'_>| !seat.state.is_lost();
        let has_parts = table.all().any(|seat| works(&seat) && seat.state.standing().part > 0);
        let part = |seat: &ListedNode<'_>| {
            if has_parts { seat.state.standing().part } else { Standing::WHOLE.part }
        };
        let weight = |seat: &ListedNode<'_>| {
            if works(seat) { f64::from(seat.member.weight * part(seat)) } else { 0.0 }
        };
        let total: f64 = table.all().map(|seat| weight(&seat)).sum();
        let status = |seat: ListedNode<'_>| {
            let ListedNode { member, state, is_own, .. } = seat;
            NodeStatus {
                member: member.clone(),
                is_own,
                is_lost: !works(&seat),
                differs: self.differs(state),
                standing: state.standing(),
                share: weight(&seat) / total.max(1.0),
                load: if is_own { self.load() } else { state.load.load(Ordering::Relaxed) },
                p99: state.times.p99(),
            }
        };
        table.all().map(status).collect()
    }

    /// Returns whether this node answers too many requests from other nodes: more than
    /// [`NEVER_BUSY`], and more than 1.25 times the mean of the nodes that are not lost.
    fn is_busy(&self, load: u32) -> bool {
        let table = self.table.get();
        let others = table.all().filter(|seat| !seat.is_own && !seat.state.is_lost());
        is_busy(load, others.map(|seat| seat.state.load.load(Ordering::Relaxed)))
    }

    fn state(&self, number: usize) -> Option<Arc<NodeState>> {
        self.table.get().state(number).cloned()
    }
}

impl NodeState {
    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Notes an answer to a ping. Returns true if the node must answer more pings before another
    /// node asks it again.
    fn rests(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let left = self.resting_pings.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.is_ok_and(|left| left > 1)
    }

    /// Returns the fraction of its keys that the node takes, and whether the node leaves.
    pub fn standing(&self) -> Standing {
        let missing = self.missing_part.load(Ordering::Relaxed);
        let part = Standing::WHOLE.part.saturating_sub(missing);
        Standing { part, is_leaving: self.is_leaving.load(Ordering::Relaxed) }
    }

    fn set_standing(&self, Standing { part, is_leaving }: Standing) {
        let missing = Standing::WHOLE.part.saturating_sub(part);
        self.missing_part.store(missing, Ordering::Relaxed);
        self.is_leaving.store(is_leaving, Ordering::Relaxed);
    }
}

fn is_busy(own: u32, others: impl Iterator<Item = u32>) -> bool {
    let (sum, count) = others
        .fold((u64::from(own), 1_u64), |(sum, count), load| (sum + u64::from(load), count + 1));
    own > NEVER_BUSY && count > 1 && u64::from(own) * count * 4 > sum * 5
}

impl Fleet for Nodes {
    fn own(&self) -> Arc<FleetNode> {
        Arc::clone(self.table.get().own())
    }

    fn others(&self) -> Vec<Arc<FleetNode>> {
        let table = self.table.get();
        table.all().filter(|seat| !seat.is_own).map(|seat| Arc::clone(seat.node)).collect()
    }

    fn node(&self, number: usize) -> Option<Arc<FleetNode>> {
        self.table.get().node(number).cloned()
    }

    fn is_member(&self, number: usize) -> bool {
        self.table.get().is_member(number)
    }

    fn order(&self, key: &[u8]) -> [Option<Arc<FleetNode>>; 2] {
        let table = self.table.get();
        let best = table.best_two(key, |seat| !seat.state.is_lost());
        best.map(|seat| seat.map(|seat| Arc::clone(seat.node)))
    }

    fn choose(&self, key: &[u8], tried: &[usize]) -> Option<ChosenNode> {
        let table = self.table.get();
        let counts =
            |seat: &ListedNode<'_>| !seat.state.is_lost() && !tried.contains(&seat.node.number);
        let [best, _] = table.best_two(key, counts);
        let ListedNode { node, state, .. } = best.filter(|seat| !seat.is_own)?;
        let patience = state.times.p99().map_or(MOST_PATIENCE, |p99| 2 * p99);
        let patience = patience.clamp(LEAST_PATIENCE, MOST_PATIENCE);
        Some(ChosenNode { node: Arc::clone(node), patience })
    }

    fn former_owner(&self, key: &[u8]) -> Option<Arc<FleetNode>> {
        let table = self.table.get();
        let counts = |seat: &ListedNode<'_>| !seat.state.is_lost();
        table.best_two(key, counts)[0].filter(|owner| owner.is_own)?;
        let [first, second] = table.best_two_by_weight(key, counts);
        let former = match first.filter(|first| !first.is_own) {
            // This node owns the key only because the node `first` joins or leaves.
            Some(first) => first,
            None => second.filter(|_| self.asks_former.load(Ordering::Relaxed))?,
        };
        Some(Arc::clone(former.node))
    }

    fn standing(&self) -> Standing {
        let table = self.table.get();
        let own = table.all().find(|seat| seat.is_own);
        own.map_or(Standing::WHOLE, |seat| seat.state.standing())
    }

    fn is_lost(&self, number: usize) -> bool {
        self.state(number).is_none_or(|state| state.is_lost())
    }

    fn answered(&self, number: usize, took: Option<Duration>, told: Told) {
        let Some(state) = self.state(number) else { return };
        state.load.store(told.load, Ordering::Relaxed);
        state.missed_requests.store(0, Ordering::Relaxed);
        if let Some(took) = took {
            state.times.add(took);
        }
    }

    fn hears(&self, number: usize) {
        if let Some(state) = self.state(number) {
            state.missed_pings.store(0, Ordering::Relaxed);
        }
    }

    fn pinged(&self, number: usize, told: Told) {
        let Some(state) = self.state(number) else { return };
        state.load.store(told.load, Ordering::Relaxed);
        state.settings.store(told.settings.unwrap_or(0), Ordering::Relaxed);
        state.set_standing(told.standing);
        state.missed_pings.store(0, Ordering::Relaxed);
        if state.is_lost() && !state.rests() {
            let table = self.table.get();
            let were_all_lost =
                table.all().filter(|seat| !seat.is_own).all(|seat| seat.state.is_lost());
            self.returns.fetch_or(were_all_lost, Ordering::Relaxed);
            state.is_lost.store(false, Ordering::Relaxed);
        }
    }

    fn misses_ping(&self, number: usize) -> bool {
        let Some(state) = self.state(number) else { return false };
        let missed = state.missed_pings.fetch_add(1, Ordering::Relaxed) + 1;
        missed >= MISSED_PINGS && self.fails(number)
    }

    fn fails(&self, number: usize) -> bool {
        self.state(number).is_some_and(|state| !state.is_lost.swap(true, Ordering::Relaxed))
    }

    fn works(&self, number: usize) {
        if let Some(state) = self.state(number) {
            state.missed_requests.store(0, Ordering::Relaxed);
        }
    }

    fn misses_request(&self, number: usize) -> bool {
        let Some(state) = self.state(number) else { return false };
        let missed = state.missed_requests.fetch_add(1, Ordering::Relaxed) + 1;
        if missed < MISSED_REQUESTS {
            return false;
        }
        state.resting_pings.store(RESTING_PINGS, Ordering::Relaxed);
        self.fails(number)
    }

    fn begin(&self, key: &[u8], now: Instant) -> Told {
        let load = self.load.fetch_add(1, Ordering::Relaxed) + 1;
        let rate = self.rates.note(key, now);
        Told { load, rate, is_busy: self.is_busy(load), ..Told::default() }
    }

    fn end(&self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }

    fn load(&self) -> u32 {
        self.load.load(Ordering::Relaxed)
    }

    fn settings_hash(&self) -> Option<u64> {
        Some(self.settings.load(Ordering::Relaxed)).filter(|hash| *hash != 0)
    }

    fn hot_rate(&self) -> u32 {
        self.hot_rate
    }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
