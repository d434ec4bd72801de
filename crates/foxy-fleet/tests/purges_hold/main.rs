//! Simulates fleets with seeded faults. After a purge is acknowledged, no member may serve a purged
//! response. Members with deliberate faults, *mutants*, show that the checker finds faults.

mod engine;
mod member;
mod world;

use foxy_base::{Instant, WallTime};
use foxy_fleet::purges::engine::{Append, Appended, LogView};
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::lease::{LeaseTerms, MemberRecord};
use foxy_fleet::purges::node::Node;
use foxy_fleet::purges::session::Ticket;
use foxy_proxy::cache::purge::{NotPurged, Order, Scope, Strength};
use std::time::Duration;
use world::World;

/// The deliberate fault of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// No fault.
    None,
    /// Continues a list of purges always with the same numbers if it forgets its place.
    JumpsAlike,
    /// Keeps its responses as they are after entries were lost.
    TrustsBrokenChains,
    /// Uses a place in the log that belongs to another member or to a newer list of purges.
    TrustsAnyPlace,
    /// Saves its place in the log before it has applied the entries.
    SavesBeforeItApplies,
}

/// The clocks deviate by 5 % from real time, so that the deviation matters in many runs.
const DRIFT_PPM: u64 = 50_000;
const TERMS: LeaseTerms = LeaseTerms { length: Duration::from_secs(2), drift_ppm: DRIFT_PPM };

/// Returns the seeds: `FOXY_FLEET_SEED` names one seed, `FOXY_FLEET_SEEDS` the number of seeds.
fn seeds(usual: u64) -> Vec<u64> {
    let read = |name: &str| std::env::var_os(name)?.to_str()?.parse().ok();
    match read("FOXY_FLEET_SEED") {
        Some(seed) => vec![seed],
        None => (0..read("FOXY_FLEET_SEEDS").unwrap_or(usual)).collect(),
    }
}

/// Returns true if the checker finds a stale answer with any of 2,000 seeds.
fn is_noticed(terms: LeaseTerms, mutant: Mutant) -> bool {
    (0..2000).any(|seed| World::new(seed, terms, DRIFT_PPM, mutant).run().is_err())
}

#[test]
fn no_answer_is_stale_after_an_acknowledgement() {
    let (mut hits, mut acks, mut late) = (0, 0, 0);
    for seed in seeds(20) {
        let mut world = World::new(seed, TERMS, DRIFT_PPM, Mutant::None);
        if let Err(script) = world.run() {
            panic!("{script}\nseed {seed}; repeat with FOXY_FLEET_SEED={seed}");
        }
        assert_eq!(world.without_lease(), Vec::<&str>::new(), "seed {seed}: after the faults");
        hits += world.hits;
        acks += world.acks;
        late += world.late_acks;
    }
    assert!(hits > 1000 && acks > 100 && late < acks / 10, "{hits} hits, {acks} acks, {late} late");
}

#[test]
fn a_lease_without_the_bound_of_drift_is_noticed() {
    let unbounded = LeaseTerms { drift_ppm: 0, ..TERMS };
    assert!(is_noticed(unbounded, Mutant::None));
}

#[test]
fn a_member_that_trusts_a_broken_chain_is_noticed() {
    assert!(is_noticed(TERMS, Mutant::TrustsBrokenChains));
}

#[test]
fn a_member_that_saves_before_it_applies_is_noticed() {
    assert!(is_noticed(TERMS, Mutant::SavesBeforeItApplies));
}

#[test]
fn a_member_that_trusts_a_foreign_place_is_noticed() {
    assert!(is_noticed(TERMS, Mutant::TrustsAnyPlace));
}

#[test]
fn a_member_that_gives_the_numbers_of_lost_purges_again_is_noticed() {
    assert!(is_noticed(TERMS, Mutant::JumpsAlike));
}

/// Returns what a member at the position `after` reads.
fn view(log: &[&Append], after: u64, records: &[MemberRecord; 2]) -> LogView {
    let last = log.last().expect("an entry");
    let entries = log.iter().filter(|entry| entry.position > after);
    LogView {
        first: log[0].position,
        tail: last.position,
        count: log.len() as u64,
        last: Some(last.bytes.clone()),
        entries: entries.map(|entry| (entry.position, entry.bytes.clone())).collect(),
        records: records.to_vec(),
    }
}

/// Two members that have read the beginning of the log.
struct Pair {
    one: Node,
    other: Node,
    begin: Append,
    /// Their first records, which do not tell their place.
    records: [MemberRecord; 2],
}

impl Pair {
    fn new() -> Self {
        let names = ["a".into(), "b".into()];
        let [mut one, mut other] = ["a", "b"].map(|name| {
            let me = Process { member: name.into(), run: 1 };
            let mut node = Node::new(me, &names, TERMS, None, 1);
            node.connected(1, Instant::ZERO);
            node
        });
        let records = [&mut one, &mut other].map(|node| node.record(Instant::ZERO).expect("new"));
        one.exchanged(&LogView::default(), Instant::ZERO);
        let begin = append(&mut one);
        for _ in 0..2 {
            exchange(&mut one, &[&begin], &records, Instant::ZERO);
            exchange(&mut other, &[&begin], &records, Instant::ZERO);
        }
        Self { one, other, begin, records }
    }
}

fn append(node: &mut Node) -> Append {
    let append = node.next_append().expect("an entry");
    node.appended(&append, Appended::Done, Instant::ZERO);
    append
}

fn exchange(
    node: &mut Node,
    log: &[&Append],
    records: &[MemberRecord; 2],
    now: Instant,
) -> Vec<(Ticket, Result<u64, NotPurged>)> {
    node.record(now);
    node.exchanged(&view(log, node.position(), records), now);
    node.applied(true, now);
    node.settle()
}

const ORDER: Order = Order { scope: Scope::Tag(4), strength: Strength::Hard, at: WallTime(0) };

#[test]
fn a_purge_is_not_acknowledged_by_a_member_that_read_another_entry_in_its_place() {
    let Pair { mut one, mut other, begin, mut records } = Pair::new();
    one.purge(1, vec![ORDER]).expect("connected");
    let lost = append(&mut one);
    assert!(exchange(&mut one, &[&begin, &lost], &records, Instant::ZERO).is_empty());
    // The engine loses the entry, and the other member appends and reads its own in this place.
    other.purge(1, vec![ORDER]).expect("connected");
    let instead = append(&mut other);
    exchange(&mut other, &[&begin, &instead], &records, Instant::ZERO);
    records[1] = other.record(Instant::ZERO).expect("another place");
    assert_eq!((records[1].attests, records[1].position), (Some(1), lost.position));
    let answers = exchange(&mut one, &[&begin, &instead], &records, Instant::ZERO);
    assert!(answers.is_empty(), "the other member has not applied this purge: {answers:?}");
}

#[test]
fn a_member_that_writes_its_record_but_gets_no_answer_delays_a_purge_by_one_lease() {
    let Pair { mut one, begin, mut records, .. } = Pair::new();
    one.purge(1, vec![ORDER]).expect("connected");
    let entry = append(&mut one);
    let mut answers_at = |millis: u64, records: &[MemberRecord; 2]| {
        let now = Instant::ZERO + Duration::from_millis(millis);
        exchange(&mut one, &[&begin, &entry], records, now)
    };
    assert_eq!(answers_at(1, &records), []);
    records[1].counter += 1;
    assert_eq!(answers_at(400, &records), []);
    assert_eq!(answers_at(1999, &records), []);
    assert_eq!(
        answers_at(2000, &records),
        [(1, Ok(2))],
        "no lease is left that began before the entry"
    );
}

#[test]
fn a_member_begins_one_chain_and_then_reads_the_log() {
    let me = Process { member: "a".into(), run: 1 };
    let mut node = Node::new(me, &["a".into()], TERMS, None, 1);
    node.connected(1, Instant::ZERO);
    node.record(Instant::ZERO);
    node.exchanged(&LogView::default(), Instant::ZERO);
    let begin = node.next_append().expect("the log is empty");
    node.appended(&begin, Appended::Done, Instant::ZERO);
    assert_eq!(node.next_append(), None, "before the member has read its entry");
}
