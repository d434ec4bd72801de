//! Tests when a lease has ended, for its holder and for other members. Also tests when all members
//! have applied an entry of the purge log.

use super::*;
use std::slice;

const TERMS: LeaseTerms = LeaseTerms::usual();
const HASH: u128 = 77;
const PLACE: Place = Place { incarnation: 5, chain: 6, position: 7 };

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn process(member: &str, run: u64) -> Process {
    Process { member: member.into(), run }
}

fn record(member: &str, run: u64, counter: u64, position: u64) -> MemberRecord {
    MemberRecord {
        process: process(member, run),
        counter,
        attests: Some(PLACE.incarnation),
        vouches: true,
        chain: PLACE.chain,
        position,
        hash: HASH,
        wants_lease: true,
    }
}

/// Returns the leases as member `a` sees them, in a fleet of `a`, `b` and `c`. The engine's server
/// was first seen at time 0.
fn leases() -> Leases {
    let members = ["a", "b", "c"].map(Into::into);
    Leases::new(TERMS, process("a", 1), Witnesses::new("a", &members, &[]))
}

fn agrees(record: &MemberRecord) -> bool {
    record.hash == HASH
}

#[test]
fn a_record_is_read_back_from_its_text() {
    for wants_lease in [true, false] {
        for attests in [None, Some(3)] {
            let vouches = wants_lease;
            let record = MemberRecord { attests, vouches, wants_lease, ..record("a", 1, 2, 3) };
            let text = record.text();
            assert_eq!(MemberRecord::parse(process("a", 1), &text), Some(record));
            assert_eq!(MemberRecord::parse(process("a", 1), &format!("{text} more")), None);
        }
    }
}

#[test]
fn a_lease_ends_first_for_its_holder_even_with_the_largest_drift() {
    let drift = TERMS.drift_ppm as f64 / 1e6;
    let holder = TERMS.for_holder().as_secs_f64() / (1.0 - drift);
    let other = TERMS.length.as_secs_f64() / (1.0 + drift);
    assert!(
        holder <= other,
        "slow clock of the holder: {holder}, fast clock of the other: {other}"
    );
    assert!(TERMS.for_holder() > TERMS.length * 95 / 100, "most of the lease is usable");
}

#[test]
fn an_entry_is_acknowledged_when_all_have_applied_it_or_lost_their_leases() {
    let reached = |records: &[MemberRecord], read| {
        let mut leases = leases();
        leases.observe(records, at(100));
        leases.have_all_reached(PLACE, agrees, at(read))
    };
    let (b, c) = (record("b", 1, 1, 7), record("c", 1, 1, 8));
    assert!(reached(&[b.clone(), c.clone()], 200));
    assert!(!reached(&[b.clone(), record("c", 1, 1, 6)], 2099), "c has a lease");
    assert!(reached(&[b.clone(), record("c", 1, 1, 6)], 2100), "the lease of c has ended");
    assert!(!reached(slice::from_ref(&b), 1999), "c may have a lease whose record the engine lost");
    assert!(reached(slice::from_ref(&b), 2000));
    let other = MemberRecord { hash: HASH + 1, ..c.clone() };
    assert!(!reached(&[b.clone(), other], 200), "c has applied another entry in this place");
    let elsewhere = MemberRecord { chain: 9, ..c.clone() };
    assert!(!reached(&[b.clone(), elsewhere], 200), "c follows another chain");
    let before = MemberRecord { attests: Some(4), ..c.clone() };
    assert!(!reached(&[b.clone(), before], 200), "c has not compared this engine's log");
    let leaving = MemberRecord { wants_lease: false, ..record("c", 1, 1, 6) };
    assert!(reached(&[b.clone(), leaving], 200));
    let unlisted = record("d", 1, 1, 6);
    assert!(!reached(&[b.clone(), c.clone(), unlisted], 200), "an unlisted process has a lease");
    let second = record("b", 2, 1, 6);
    assert!(!reached(&[b, second, c], 200), "a second process of b has a lease");
}

#[test]
fn each_renewal_extends_a_lease_and_the_same_record_does_not() {
    let mut leases = leases();
    leases.observe(&[record("b", 1, 1, 6), record("c", 1, 1, 7)], at(100));
    leases.observe(&[record("b", 1, 1, 6), record("c", 1, 1, 7)], at(1500));
    assert!(leases.have_all_reached(PLACE, agrees, at(2100)));
    leases.observe(&[record("b", 1, 2, 6), record("c", 1, 1, 7)], at(2200));
    assert!(!leases.have_all_reached(PLACE, agrees, at(4199)));
    leases.restart(at(4200));
    assert!(
        !leases.have_all_reached(PLACE, agrees, at(6199)),
        "the engine may have lost a renewal"
    );
    assert!(leases.have_all_reached(PLACE, agrees, at(6200)));
}

#[test]
fn proof_needs_a_record_of_every_listed_member() {
    let proved = |records: &[MemberRecord], read| {
        let mut leases = leases();
        leases.observe(records, at(100));
        leases.do_all_attest(PLACE.incarnation, at(read))
    };
    let (b, c) = (record("b", 1, 1, 1), record("c", 1, 1, 1));
    assert!(proved(&[b.clone(), c.clone()], 200));
    assert!(!proved(slice::from_ref(&b), 9000), "c may know a lost entry");
    let blank = MemberRecord { vouches: false, ..c.clone() };
    assert!(!proved(&[b.clone(), blank], 200), "c has no memory");
    let old = MemberRecord { attests: Some(4), ..record("c", 2, 1, 1) };
    assert!(!proved(&[b.clone(), c.clone(), old.clone()], 200), "another process of c");
    assert!(proved(&[b, c, old], 2100), "that process has ended");
}

#[test]
fn a_dead_process_is_forgotten_when_its_member_is_back() {
    let mut leases = leases();
    leases.observe(&[record("b", 1, 1, 1), record("c", 1, 1, 1)], at(100));
    leases.observe(&[record("b", 1, 1, 1), record("b", 2, 1, 1), record("c", 1, 1, 1)], at(7000));
    assert_eq!(leases.useless(at(7999)), []);
    assert_eq!(leases.useless(at(8100)), [process("b", 1)], "c has no other process");
}

#[test]
fn a_former_member_counts_until_its_lease_has_ended() {
    let mut leases = leases();
    let (b, c) = (record("b", 1, 1, 7), record("c", 1, 1, 7));
    leases.observe(&[b.clone(), c.clone()], at(100));
    leases.set_members(&["a", "b"].map(Into::into));
    leases.restart(at(5000));
    leases.observe(&[MemberRecord { counter: 2, ..b.clone() }], at(5001));
    let has_c = |leases: &Leases| leases.witnesses().all().any(|name| name == hash("c"));
    assert!(!leases.do_all_attest(PLACE.incarnation + 1, at(5100)), "c may know a lost entry");
    leases.release(at(6999));
    assert!(has_c(&leases), "c may have a lease whose record the engine lost");
    leases.observe(&[MemberRecord { counter: 2, ..c.clone() }], at(7000));
    leases.release(at(8999));
    assert!(has_c(&leases), "c has a lease");
    leases.release(at(9000));
    assert!(!has_c(&leases));
    leases.observe(&[MemberRecord { counter: 2, ..c.clone() }], at(9100));
    assert!(!has_c(&leases), "an old record is no sign of life");
    assert_eq!(leases.useless(at(15_001)), [process("c", 1)]);
    leases.observe(&[MemberRecord { counter: 3, ..c }], at(15_002));
    assert!(has_c(&leases), "c is back");
}
