//! Tests the contract with every replacement policy. Also tests that the policy chooses the evicted
//! records.

use crate::place::{Kind, Place};
use crate::store::Store;
use crate::{fill, small};
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, SchemeName, SchemeSettings};
use foxy_store::Answer;

/// The storage schemes that use a replacement policy.
const SCHEMES: [SchemeName; 2] = [SchemeName::StreamPacketizer, SchemeName::Ufs];

/// Runs a test on the memory device. With this low watermark, the store evicts little at a time. So
/// the policy W-TinyLFU compares every new record with an old record.
fn with(policy: PolicyName, scheme: SchemeName, test: impl FnOnce(&mut Store)) {
    let place = Place::new(Kind::Memory);
    let settings = SchemeSettings { policy, low_watermark: 95, ..small() };
    let mut store = Store::open(&place, scheme, settings).expect("memory is always there");
    test(&mut store);
    store.finish();
}

#[test]
fn under_every_policy_three_wraps_are_exact_and_no_record_is_lost_by_reopening() {
    for (row, scheme) in POLICIES.iter().flat_map(|row| SCHEMES.map(|scheme| (row, scheme))) {
        with(row.name, scheme, |store| {
            let keys = fill(store, 3 * store.settings.store.size, 17);
            assert!(store.observer.statistics.evicted.get() > 0, "{scheme} {}", row.text);
            let held = |store: &mut Store| keys.iter().filter(|&&key| store.has(key)).count();
            let before = held(store);
            assert!(before > 10, "{scheme} {}: {before}", row.text);
            store.reopen();
            assert_eq!(held(store), before, "{scheme} {}", row.text);
            fill(store, store.settings.store.size, 18);
        });
    }
}

/// Returns whether a record that was used ten times at the start is still stored at the end. In
/// between, records that are used once fill the store twice.
fn popular_survives(policy: PolicyName, scheme: SchemeName) -> bool {
    let mut survives = false;
    with(policy, scheme, |store| {
        assert_eq!(store.put(0, 1, 3000), Answer::Stored);
        assert!((0..10).all(|_| store.has(0)));
        for key in 1..1200 {
            assert_eq!(store.put(key, 1, 3000), Answer::Stored);
        }
        survives = store.has(0);
    });
    survives
}

#[test]
fn the_policy_decides_who_goes() {
    for scheme in SCHEMES {
        assert!(!popular_survives(PolicyName::Lru, scheme), "{scheme}");
        assert!(!popular_survives(PolicyName::Fifo, scheme), "{scheme}");
        for policy in
            [PolicyName::Gdsf, PolicyName::Lfuda, PolicyName::S3Fifo, PolicyName::WTinyLfu]
        {
            assert!(popular_survives(policy, scheme), "{policy} in {scheme}");
        }
    }
}
