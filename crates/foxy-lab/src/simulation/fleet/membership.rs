//! The nodes of a simulated fleet over time, and the owners of keys. A *seat* is a place in the
//! fleet. If a node is replaced, the new node has the same seat, another name and an empty cache.

use super::plan::{FleetPlan, Outage};
use foxy_base::{Instant, Random, Rendezvous};
use foxy_workload::Trace;
use std::time::Duration;

/// Thousandths of its keys that a node takes when it has joined.
const WHOLE: u32 = 1000;
/// Number of steps in which a joining node takes its keys, as in the proxy.
const STEPS: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    /// Takes this many thousandths of its keys.
    Takes(u32),
    /// Begins to join: clients reach the node.
    Joins,
    /// Takes no keys, and answers only requests for stored responses.
    Drains,
    /// Answers nothing more.
    Ends,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at: Instant,
    node: u32,
    kind: ChangeKind,
}

/// A node that is or was a member.
#[derive(Clone, Copy, Debug)]
struct Node {
    seat: u32,
    /// When the node joined. `None` for the first nodes.
    joined: Option<Instant>,
    /// Thousandths of its keys that the node takes.
    part: u32,
    is_draining: bool,
    has_left: bool,
}

pub struct Membership<'a> {
    plan: &'a FleetPlan,
    trace: &'a Trace,
    rendezvous: Rendezvous,
    nodes: Vec<Node>,
    /// The node at each seat that clients reach.
    seats: Vec<Option<u32>>,
    changes: Vec<Change>,
    done: usize,
    /// The nodes of all changes so far that may have moved keys.
    moved: Vec<u32>,
    /// The owner of each URL, and the length of `moved` when it was computed.
    owners: Vec<Option<(u32, u32)>>,
}

impl<'a> Membership<'a> {
    /// Prepares the fleet of a plan. It changes until `end`.
    pub fn new(plan: &'a FleetPlan, trace: &'a Trace, end: Instant) -> Self {
        let founder =
            |seat| Node { seat, joined: None, part: WHOLE, is_draining: false, has_left: false };
        let mut nodes: Vec<Node> = (0..plan.nodes).map(founder).collect();
        let mut changes = replacements(plan, &mut nodes, end);
        changes.extend(plan.outages.iter().flat_map(|outage| lost(plan, outage)));
        changes.sort_by_key(|change| change.at);
        let names: Vec<String> = (0..nodes.len()).map(|number| format!("n{number}")).collect();
        let rendezvous = Rendezvous::new(names.iter().map(|name| (name.as_str(), 1)));
        for node in &mut nodes[plan.nodes as usize..] {
            node.part = 0;
        }
        let seats = (0..plan.nodes).map(Some).collect();
        let owners = vec![None; trace.urls()];
        let moved = Vec::new();
        Self { plan, trace, rendezvous, nodes, seats, changes, done: 0, moved, owners }
    }

    /// Returns the number of all nodes, also of future nodes.
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn seat(&self, node: u32) -> u32 {
        self.nodes[node as usize].seat
    }

    /// Applies all changes until `now`. Returns the nodes whose caches are gone.
    pub fn advance(&mut self, now: Instant) -> Vec<u32> {
        let mut gone = Vec::new();
        while let Some(&change) = self.changes.get(self.done).filter(|change| change.at <= now) {
            self.done += 1;
            self.apply(change, &mut gone);
        }
        gone
    }

    fn apply(&mut self, Change { at, node: number, kind }: Change, gone: &mut Vec<u32>) {
        let node = &mut self.nodes[number as usize];
        let seat = node.seat as usize;
        match kind {
            ChangeKind::Takes(part) if !node.has_left => {
                node.part = part;
                self.moved.push(number);
            }
            ChangeKind::Takes(_) => {}
            ChangeKind::Joins => {
                (node.joined, node.has_left) = (Some(at), false);
                self.seats[seat] = Some(number);
            }
            ChangeKind::Drains | ChangeKind::Ends => {
                if kind == ChangeKind::Ends && node.is_draining {
                    gone.push(number);
                }
                node.is_draining = kind == ChangeKind::Drains;
                (node.part, node.has_left) = (0, true);
                self.moved.push(number);
                self.seats[seat] = self.seats[seat].filter(|there| *there != number);
            }
        }
    }

    /// Returns the node that a client reaches if it asks a seat: the node of this seat, or of the
    /// next seat with a node.
    pub fn reached(&self, seat: u32) -> Option<u32> {
        let seats = &self.seats[..self.plan.entries as usize];
        let (before, from) = seats.split_at(seat as usize);
        from.iter().chain(before).find_map(|node| *node)
    }

    /// Returns the owner of a URL.
    pub fn owner(&mut self, url: u32) -> Option<u32> {
        let now = u32::try_from(self.moved.len()).expect("few changes");
        let found = match self.owners[url as usize] {
            Some((owner, seen)) if seen == now => return Some(owner),
            Some((owner, seen)) => self.owner_after(url, owner, seen as usize),
            None => None,
        };
        let found = found.or_else(|| {
            let all = self.nodes.iter().enumerate().map(|(number, node)| (number, node.part));
            self.best(url, all)[0]
        })?;
        self.owners[url as usize] = Some((found, now));
        Some(found)
    }

    /// Returns the owner after the changes that follow the first `seen` changes. Returns `None` if
    /// all nodes may be better than the former owner.
    fn owner_after(&self, url: u32, owner: u32, seen: usize) -> Option<u32> {
        let moved = &self.moved[seen..];
        let part = |node: u32| (node as usize, self.nodes[node as usize].part);
        if moved.contains(&owner) && part(owner).1 < WHOLE {
            return None;
        }
        self.best(url, std::iter::once(&owner).chain(moved).map(|node| part(*node)))[0]
    }

    /// Returns the node that may have stored the response of a URL before `owner` became its
    /// owner, as the proxy does.
    pub fn former_owner(&self, url: u32, owner: u32, now: Instant) -> Option<u32> {
        let counts = |node: &Node| u32::from(node.part > 0 || node.is_draining);
        let numbered = || self.nodes.iter().enumerate();
        let is_partial = |node: &Node| node.is_draining || (1..WHOLE).contains(&node.part);
        let partial =
            numbered().filter(|(number, node)| *number == owner as usize || is_partial(node));
        let first = self.best(url, partial.map(|(number, node)| (number, counts(node))))[0]?;
        if first != owner {
            return Some(first);
        }
        let joined = self.nodes[owner as usize].joined?;
        if now.since(joined) >= self.plan.former_owner {
            return None;
        }
        let all = numbered().map(|(number, node)| (number, counts(node)));
        self.best(url, all).into_iter().flatten().find(|node| *node != owner)
    }

    fn best(&self, url: u32, of: impl Iterator<Item = (usize, u32)>) -> [Option<u32>; 2] {
        let best = self.rendezvous.best_two_of(self.trace.url_text(url).as_bytes(), of);
        best.map(|node| node.map(|node| u32::try_from(node).expect("few nodes")))
    }
}

/// Replaces random nodes until `end`. Adds the new nodes to `nodes`.
fn replacements(plan: &FleetPlan, nodes: &mut Vec<Node>, end: Instant) -> Vec<Change> {
    let mut random = Random::new(plan.seed ^ 0x00c4_0243);
    let rate = plan.churn / 3600.0 * f64::from(plan.nodes);
    let (mut changes, mut at) = (Vec::new(), Instant::ZERO);
    let mut seats: Vec<u32> = (0..plan.nodes).collect();
    if rate <= 0.0 {
        return changes;
    }
    loop {
        at = at + Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
        if at > end {
            return changes;
        }
        let seat = random.below(plan.nodes.into()) as u32;
        if plan.outages.iter().any(|outage| outage.seat == seat) {
            continue;
        }
        let new = u32::try_from(nodes.len()).expect("few nodes");
        let old = std::mem::replace(&mut seats[seat as usize], new);
        nodes.push(Node { seat, ..nodes[seat as usize] });
        let ended = at + plan.former_owner;
        changes.push(Change { at, node: old, kind: ChangeKind::Drains });
        changes.push(Change { at: ended, node: old, kind: ChangeKind::Ends });
        changes.extend(joined(plan, new, at));
    }
}

fn lost(plan: &FleetPlan, outage: &Outage) -> Vec<Change> {
    let [from, to] = [outage.from, outage.to].map(|time| Instant::ZERO + time);
    let ends = Change { at: from, node: outage.seat, kind: ChangeKind::Ends };
    std::iter::once(ends).chain(joined(plan, outage.seat, to)).collect()
}

/// Returns the changes by which a node joins in steps.
fn joined(plan: &FleetPlan, node: u32, at: Instant) -> Vec<Change> {
    let first = if plan.ramp.is_zero() { STEPS } else { 1 };
    let step = |step: u32| Change {
        at: at + plan.ramp * (step - first) / STEPS,
        node,
        kind: ChangeKind::Takes(WHOLE * step / STEPS),
    };
    let joins = Change { at, node, kind: ChangeKind::Joins };
    std::iter::once(joins).chain((first..=STEPS).map(step)).collect()
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
