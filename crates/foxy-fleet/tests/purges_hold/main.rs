//! Simulates fleets with seeded faults. After a purge is acknowledged, no member may serve a purged
//! response. Members with deliberate faults, *mutants*, show that the checker finds faults.

mod engine;
mod member;
mod world;

use foxy_base::Instant;
use foxy_fleet::purges::engine::{Appended, LogView};
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::lease::LeaseTerms;
use foxy_fleet::purges::node::Node;
use std::time::Duration;
use world::World;

/// The deliberate fault of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// No fault.
    None,
    /// Keeps its responses as they are after entries were lost.
    TrustsBrokenChains,
    /// Saves its place in the log before it has applied the entries.
    SavesBeforeItApplies,
}

/// The clocks deviate by 5 % from real time, so that the deviation matters in many runs.
const DRIFT_PPM: u64 = 50_000;
const TERMS: LeaseTerms = LeaseTerms { length: Duration::from_secs(2), drift_ppm: DRIFT_PPM };

/// Returns the seeds: `FOXY_FLEET_SEED` names one seed, `FOXY_FLEET_SEEDS` the number of seeds.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let read = |name: &str| std::env::var_os(name)?.to_str()?.parse().ok();
    match read("FOXY_FLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..read("FOXY_FLEET_SEEDS").unwrap_or(usual),
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
