//! Implements [`Fleet`] for the proxy: the state of each node, and the node to ask for a key.

use crate::member::{Member, Members};
use crate::rates::KeyRates;
use crate::rendezvous::Rendezvous;
use crate::times::RecentTimes;
use foxy_base::Instant;
use foxy_proxy::upstream::fleet::{ChosenNode, Fleet, FleetNode, Told};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// A node is never busy if it answers at most this number of requests of other nodes at a time.
const NEVER_BUSY: u32 = 64;

/// A node is lost after this number of unanswered pings in a row. One unanswered ping may only mean
/// that the node's machine is busy.
const MISSED_PINGS: u32 = 3;

/// Shortest time to wait for the owner before this node asks a second node. Pauses of the operating
/// system's scheduler are usually shorter.
const LEAST_PATIENCE: Duration = Duration::from_millis(20);

/// The state of a fleet, as one node sees it.
#[derive(Debug)]
pub struct Nodes {
    members: Members,
    nodes: Vec<FleetNode>,
    rendezvous: Rendezvous,
    states: Vec<NodeState>,
    rates: KeyRates,
    /// Number of requests of other nodes in progress.
    load: AtomicU32,
    hot_rate: u32,
    /// Hash of this node's settings that must be equal on all nodes. 0 if unknown.
    settings: AtomicU64,
}

#[derive(Debug, Default)]
struct NodeState {
    is_lost: AtomicBool,
    /// Number of pings without an answer, since the last answer.
    missed_pings: AtomicU32,
    load: AtomicU32,
    times: RecentTimes,
    /// Hash of the node's settings that must be equal on all nodes. 0 if unknown.
    settings: AtomicU64,
    /// Whether [`Nodes::new_differences`] has returned the node for its settings.
    is_reported: AtomicBool,
}

/// The state of a node, for the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// Name, address and weight of the node.
    pub member: Member,
    /// True for this node itself.
    pub is_own: bool,
    /// True if the node accepts no connections or answers no pings.
    pub is_lost: bool,
    /// True if settings that must be equal on all nodes differ from this node's settings.
    pub differs: bool,
    /// Share of the keys that the node owns now, from 0 to 1.
    pub share: f64,
    /// Number of requests of other nodes in progress at the node.
    pub load: u32,
    /// 99 % of the node's recent answers took at most this time. Answers that waited for the origin
    /// do not count.
    pub p99: Option<Duration>,
}

impl Nodes {
    /// Creates the fleet. All nodes keep copies of responses whose keys have at least `hot_rate`
    /// requests per second.
    pub fn new(members: Members, hot_rate: u32) -> Self {
        let node = |member: &Member| FleetNode {
            name: member.id.as_str().into(),
            host: member.host.clone(),
            port: member.port,
        };
        let all = members.all();
        Self {
            nodes: all.iter().map(node).collect(),
            rendezvous: Rendezvous::new(all),
            states: all.iter().map(|_| NodeState::default()).collect(),
            rates: KeyRates::default(),
            load: AtomicU32::new(0),
            hot_rate,
            settings: AtomicU64::new(0),
            members,
        }
    }

    /// Sets the settings that must be equal on all nodes. Names and weights of the members always
    /// belong to them.
    pub fn set_settings(&self, settings: &str) {
        let word = |member: &Member| format!("{} {}\n", member.id, member.weight);
        let mut members: Vec<_> = self.members.all().iter().map(word).collect();
        members.sort();
        let hash = xxh3_64((members.concat() + settings).as_bytes());
        self.settings.store(hash.max(1), Ordering::Relaxed);
    }

    /// Returns the nodes whose settings began to differ since the last call.
    pub fn new_differences(&self) -> Vec<&Member> {
        let all = self.members.all().iter().enumerate();
        let is_new = |number: usize| {
            let differs = self.differs(number);
            let was_reported = self.states[number].is_reported.swap(differs, Ordering::Relaxed);
            differs && !was_reported
        };
        all.filter(|(number, _)| is_new(*number)).map(|(_, member)| member).collect()
    }

    fn differs(&self, number: usize) -> bool {
        let (own, other) = (&self.settings, &self.states[number].settings);
        let [own, other] = [own, other].map(|hash| hash.load(Ordering::Relaxed));
        own != 0 && other != 0 && own != other
    }

    /// Returns the members.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns the state of each node.
    pub fn status(&self) -> Vec<NodeStatus> {
        let numbered = || self.members.all().iter().enumerate();
        let works = |number: usize| !self.is_lost(number);
        let weights = numbered().filter(|(number, _)| works(*number));
        let total: u32 = weights.map(|(_, member)| member.weight).sum();
        let status = |(number, member): (usize, &Member)| {
            let is_own = number == self.own();
            let state = &self.states[number];
            let share = f64::from(member.weight) / f64::from(total.max(1));
            NodeStatus {
                member: member.clone(),
                is_own,
                is_lost: !works(number),
                differs: self.differs(number),
                share: if works(number) { share } else { 0.0 },
                load: if is_own { self.load() } else { state.load.load(Ordering::Relaxed) },
                p99: state.times.p99(),
            }
        };
        numbered().map(status).collect()
    }

    /// Returns true if this node has too many requests in progress: more than [`NEVER_BUSY`], and
    /// more than 1.25 times the mean of the nodes that are not lost.
    fn is_busy(&self, load: u32) -> bool {
        let others = (0..self.states.len()).filter(|number| *number != self.own());
        let others = others.filter(|number| !self.is_lost(*number));
        let loads = others.map(|number| self.states[number].load.load(Ordering::Relaxed));
        is_busy(load, loads)
    }
}

fn is_busy(own: u32, others: impl Iterator<Item = u32>) -> bool {
    let (sum, count) = others
        .fold((u64::from(own), 1_u64), |(sum, count), load| (sum + u64::from(load), count + 1));
    own > NEVER_BUSY && count > 1 && u64::from(own) * count * 4 > sum * 5
}

impl Fleet for Nodes {
    fn nodes(&self) -> &[FleetNode] {
        &self.nodes
    }

    fn own(&self) -> usize {
        self.members.own_position()
    }

    fn order(&self, key: &[u8]) -> [Option<usize>; 2] {
        self.rendezvous.best_two(key, |number| !self.is_lost(number))
    }

    fn choose(&self, key: &[u8], tried: &[usize]) -> Option<ChosenNode> {
        let counts = |number: usize| !self.is_lost(number) && !tried.contains(&number);
        let [best, _] = self.rendezvous.best_two(key, counts);
        let number = best.filter(|number| *number != self.own())?;
        let p99 = self.states[number].times.p99();
        Some(ChosenNode { number, patience: p99.map(|p99| (2 * p99).max(LEAST_PATIENCE)) })
    }

    fn is_lost(&self, number: usize) -> bool {
        self.states[number].is_lost.load(Ordering::Relaxed)
    }

    fn answered(&self, number: usize, took: Option<Duration>, told: Told) {
        let state = &self.states[number];
        state.load.store(told.load, Ordering::Relaxed);
        if let Some(took) = took {
            state.times.add(took);
        }
    }

    fn hears(&self, number: usize) {
        self.states[number].missed_pings.store(0, Ordering::Relaxed);
    }

    fn pinged(&self, number: usize, told: Told) {
        let state = &self.states[number];
        state.load.store(told.load, Ordering::Relaxed);
        state.settings.store(told.settings.unwrap_or(0), Ordering::Relaxed);
        state.missed_pings.store(0, Ordering::Relaxed);
        state.is_lost.store(false, Ordering::Relaxed);
    }

    fn misses_ping(&self, number: usize) -> bool {
        let missed = self.states[number].missed_pings.fetch_add(1, Ordering::Relaxed) + 1;
        missed >= MISSED_PINGS && self.fails(number)
    }

    fn fails(&self, number: usize) -> bool {
        !self.states[number].is_lost.swap(true, Ordering::Relaxed)
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
mod tests {
    use super::*;

    fn nodes(own: &str) -> Nodes {
        let member = |name: &str| format!("{name} https://{name}.test:1").parse().expect("a node");
        let all = ["a", "b", "c"].map(member).to_vec();
        let own = own.parse().expect("a name");
        Nodes::new(Members::new(all, &own).expect("a fleet"), 32)
    }

    /// Returns a key whose order begins with these nodes.
    fn key(nodes: &Nodes, owner: usize, second: usize) -> Vec<u8> {
        let keys = (0..).map(|number: u32| number.to_be_bytes().to_vec());
        let is_wanted = |key: &Vec<u8>| nodes.order(key) == [Some(owner), Some(second)];
        let mut found = keys.filter(is_wanted);
        found.next().expect("a key")
    }

    fn chosen(nodes: &Nodes, key: &[u8], tried: &[usize]) -> Option<usize> {
        nodes.choose(key, tried).map(|chosen| chosen.number)
    }

    #[test]
    fn a_node_asks_the_owner_then_the_second_and_never_itself() {
        let nodes = nodes("a");
        let key_of_b = key(&nodes, 1, 2);
        assert_eq!(chosen(&nodes, &key_of_b, &[]), Some(1));
        assert_eq!(chosen(&nodes, &key_of_b, &[1]), Some(2));
        assert_eq!(chosen(&nodes, &key_of_b, &[1, 2]), None);
        let own_second = key(&nodes, 1, 0);
        assert_eq!(chosen(&nodes, &own_second, &[1]), None, "this node is the second");
        assert_eq!(chosen(&nodes, &key(&nodes, 0, 1), &[]), None, "this node is the owner");
    }

    #[test]
    fn a_lost_node_is_not_asked_until_it_answers_a_ping() {
        let nodes = nodes("a");
        let key = key(&nodes, 1, 2);
        assert!(nodes.fails(1) && !nodes.fails(1));
        assert_eq!(chosen(&nodes, &key, &[]), Some(2));
        let shares: Vec<_> = nodes.status().iter().map(|node| node.share).collect();
        assert_eq!(shares, [0.5, 0.0, 0.5]);
        nodes.pinged(1, Told::default());
        assert_eq!(chosen(&nodes, &key, &[]), Some(1));
        let missed: Vec<_> = (0..4).map(|_| nodes.misses_ping(1)).collect();
        assert_eq!((missed, nodes.is_lost(1)), (vec![false, false, true, false], true));
    }

    #[test]
    fn a_node_that_sends_a_body_is_not_lost_although_it_misses_pings() {
        let nodes = nodes("a");
        for _ in 0..10 {
            assert!(!nodes.misses_ping(1) && !nodes.misses_ping(1));
            nodes.hears(1);
        }
        let missed: Vec<_> = (0..3).map(|_| nodes.misses_ping(1)).collect();
        assert_eq!((missed, nodes.is_lost(1)), (vec![false, false, true], true));
    }

    #[test]
    fn a_node_with_other_settings_is_shown_and_reported_once() {
        let [a, b] = ["a", "b"].map(nodes);
        let tell = |text: &str| {
            b.set_settings(text);
            a.pinged(1, Told { settings: b.settings_hash(), ..Told::default() });
            let reported: Vec<_> = a.new_differences().iter().map(|it| it.id.as_str()).collect();
            (a.status()[1].differs, reported)
        };
        assert_eq!(tell("rule 2"), (false, vec![]), "unknown");
        a.set_settings("rule 1");
        assert_eq!(tell("rule 2"), (true, vec!["b"]));
        assert_eq!(tell("rule 3"), (true, vec![]));
        assert_eq!(tell("rule 1"), (false, vec![]));
        assert_eq!(tell("rule 2"), (true, vec!["b"]));
        a.pinged(1, Told::default());
        assert!(!a.status()[1].differs, "an older foxy tells no hash");
    }

    #[test]
    fn patience_is_twice_the_p99_but_at_least_the_lower_limit() {
        let nodes = nodes("a");
        let key = key(&nodes, 1, 2);
        let patience = || nodes.choose(&key, &[]).expect("another node").patience;
        assert_eq!(patience(), None);
        let answer = |took| nodes.answered(1, Some(Duration::from_millis(took)), Told::default());
        (0..1000).for_each(|_| answer(1));
        assert_eq!(patience(), Some(LEAST_PATIENCE));
        (0..1000).for_each(|_| answer(40));
        assert_eq!(patience(), Some(Duration::from_millis(80)));
    }

    #[test]
    fn a_node_with_more_than_five_quarters_of_the_mean_load_is_busy() {
        for (own, others, expected) in [
            (NEVER_BUSY, &[0, 0][..], false),
            (100, &[80, 60], false),
            (101, &[80, 60], true),
            (1000, &[], false),
            (1000, &[1000], false),
        ] {
            assert_eq!(is_busy(own, others.iter().copied()), expected, "{own} {others:?}");
        }
        let nodes = nodes("a");
        let begun = (0..=NEVER_BUSY).map(|_| nodes.begin(b"key", Instant::ZERO)).last();
        let load = NEVER_BUSY + 1;
        assert_eq!(begun, Some(Told { load, rate: load, is_busy: true, ..Told::default() }));
        nodes.end();
        assert_eq!(nodes.load(), NEVER_BUSY);
    }
}
