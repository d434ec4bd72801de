//! Sends the requests of a trace through the caches of a fleet.
//!
//! Each part of a run reads the whole trace, and knows the owner of each key. A part counts a
//! request if the key's home is one of its nodes. Three rules keep the parts independent:
//!
//! - Copies of a hot response take no space, live for a fixed time, and end if the key moves.
//! - A key's new owner asks the former owner only for its first request of the key, which it cannot
//!   have stored. So the part of the former owner can count the hit.
//! - With two tiers, each part simulates the first tier of all nodes.

use super::membership::Membership;
use super::node_cache::NodeCache;
use super::plan::{FleetPlan, Placement};
use super::tally::FleetTally;
use foxy_base::random::split_mix;
use foxy_base::{Instant, KeyRates};
use foxy_schemes::PolicySettings;
use foxy_workload::{Get, Trace};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of requests between two progress updates.
const STEP: usize = 1 << 14;

/// A copy of a hot response at a node.
#[derive(Clone, Copy)]
struct HotCopy {
    owner: u32,
    ends: Instant,
}

/// A request, and the nodes that take part in it.
#[derive(Clone, Copy)]
struct Hop {
    get: Get,
    now: Instant,
    /// The node that the client asks.
    entry: u32,
    /// The node that stores the response.
    home: u32,
}

struct SimulatedFleet<'a> {
    plan: &'a FleetPlan,
    membership: Membership<'a>,
    stores: Vec<Option<NodeCache>>,
    tiers: Vec<Option<NodeCache>>,
    rates: HashMap<u32, KeyRates>,
    copies: HashMap<(u32, u32), HotCopy>,
    /// URL and owner of each key that its owner was asked for.
    known: HashSet<(u32, u32)>,
    tally: FleetTally,
}

/// Simulates a fleet, or the part `plan.share` of it. `done` increases by 1 for each request.
pub fn run(plan: &FleetPlan, trace: &Trace, done: &AtomicU64) -> FleetTally {
    let last = trace.gets.len().saturating_sub(1);
    let end = trace.gets.last().map_or(Instant::ZERO, |get| plan.time(last, get));
    let membership = Membership::new(plan, trace, end);
    let none = || std::iter::repeat_with(|| None).take(membership.len()).collect();
    let mut fleet = SimulatedFleet {
        plan,
        stores: none(),
        tiers: none(),
        membership,
        rates: HashMap::new(),
        copies: HashMap::new(),
        known: HashSet::new(),
        tally: FleetTally::new(plan.nodes),
    };
    for (chunk, gets) in trace.gets.chunks(STEP).enumerate() {
        for (place, get) in gets.iter().enumerate() {
            fleet.request(chunk * STEP + place, *get);
        }
        done.fetch_add(gets.len() as u64, Relaxed);
    }
    fleet.ended()
}

impl SimulatedFleet<'_> {
    fn request(&mut self, index: usize, get: Get) {
        let now = self.plan.time(index, &get);
        for gone in self.membership.advance(now) {
            self.stores[gone as usize] = None;
            self.tiers[gone as usize] = None;
        }
        let mut chance = if self.plan.is_by_client { u64::from(get.client) } else { index as u64 };
        chance = split_mix(&mut chance) ^ self.plan.seed;
        let seat = split_mix(&mut chance) % u64::from(self.plan.entries);
        let entry = self.membership.reached(seat as u32).expect("clients reach a node");
        let home = match self.plan.placement {
            Placement::Replicate => Some(entry),
            Placement::Owner | Placement::TwoTiers => self.membership.owner(get.url),
        };
        self.answer(Hop { get, now, entry, home: home.unwrap_or(entry) });
    }

    fn answer(&mut self, hop: Hop) {
        let Hop { get, now, entry, home } = hop;
        let is_own = entry == home;
        let is_counted = self.is_counted(home);
        let in_front = !is_own
            && match self.plan.placement {
                Placement::TwoTiers => self.in_tier(entry, get),
                Placement::Owner => self.has_copy(hop),
                Placement::Replicate => false,
            };
        let window = self.window(now);
        if !in_front && self.plan.has_changes() && self.plan.placement != Placement::Replicate {
            self.ask_former(hop, window);
        }
        if !is_counted {
            return;
        }
        let may_copy = self.plan.placement == Placement::Owner && !in_front && !is_own;
        let in_store = !in_front && self.store(home).get(get.url, get.size);
        if may_copy && self.is_hot(hop) {
            let ends = now + self.plan.copy_life;
            self.copies.insert((entry, get.url), HotCopy { owner: home, ends });
            self.tally.copies += 1;
        }
        self.count(hop, in_front, in_store, window);
    }

    fn count(&mut self, hop: Hop, in_front: bool, in_store: bool, window: Option<usize>) {
        let Hop { get: Get { size, .. }, entry, home, .. } = hop;
        let [entry_seat, home_seat] = [entry, home].map(|node| self.membership.seat(node));
        let tally = &mut self.tally;
        let is_own = entry == home;
        tally.clients.add(size);
        tally.load[entry_seat as usize] += 1;
        if in_front || (is_own && in_store) {
            tally.at_node.add(size);
        }
        if !in_front && !is_own {
            tally.load[home_seat as usize] += 1;
            tally.asked.add(size);
            if in_store {
                tally.at_owner.add(size);
            }
        }
        if !in_front && !in_store {
            tally.missed.add(size);
        }
        if let Some(window) = window {
            tally.in_window(window, in_front || in_store);
        }
    }

    /// Asks the former owner, if this is the first request that the owner gets for the key.
    fn ask_former(&mut self, Hop { get, now, home, .. }: Hop, window: Option<usize>) {
        if !self.known.insert((get.url, home)) {
            return;
        }
        let Some(former) = self.membership.former_owner(get.url, home, now) else { return };
        if !self.is_counted(former) {
            return;
        }
        self.tally.former_asked += 1;
        self.tally.load[self.membership.seat(former) as usize] += 1;
        if self.store(former).touch(get.url) {
            self.tally.former_hit(get.size, window);
        }
    }

    fn has_copy(&self, Hop { get, now, entry, home }: Hop) -> bool {
        let copy = self.copies.get(&(entry, get.url));
        copy.is_some_and(|copy| copy.owner == home && now < copy.ends)
    }

    /// Counts a request of another node, and returns whether the owner's key is hot.
    fn is_hot(&mut self, Hop { get, now, home, .. }: Hop) -> bool {
        let rates = self.rates.entry(home).or_default();
        rates.note(&get.url.to_le_bytes(), now) >= self.plan.hot_rate
    }

    fn in_tier(&mut self, node: u32, get: Get) -> bool {
        let (plan, tier) = (self.plan, &mut self.tiers[node as usize]);
        tier.get_or_insert_with(|| cache(plan, plan.tier)).get(get.url, get.size)
    }

    fn store(&mut self, node: u32) -> &mut NodeCache {
        let (plan, store) = (self.plan, &mut self.stores[node as usize]);
        store.get_or_insert_with(|| cache(plan, plan.capacity))
    }

    fn is_counted(&self, node: u32) -> bool {
        self.plan.share.has(self.membership.seat(node))
    }

    fn window(&self, now: Instant) -> Option<usize> {
        let length = self.plan.window?;
        usize::try_from(now.since(Instant::ZERO).as_nanos() / length.as_nanos().max(1)).ok()
    }

    fn ended(mut self) -> FleetTally {
        for (number, store) in (0..).zip(&self.stores) {
            let seat = self.membership.seat(number) as usize;
            let is_counted = self.plan.share.has(self.membership.seat(number));
            self.tally.stored[seat] +=
                store.as_ref().filter(|_| is_counted).map_or(0, NodeCache::used);
        }
        self.tally
    }
}

fn cache(plan: &FleetPlan, capacity: u64) -> NodeCache {
    let settings = PolicySettings { capacity, object_limit: plan.object_limit };
    NodeCache::new(plan.policy.make(&settings), capacity)
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
