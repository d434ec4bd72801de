//! What the paper's Table 2 says must hold on the model at any scale: the order of the techniques, and the ceiling.

use foxy_lab::figures::trial::Trial;
use foxy_lab::figures::{Extent, Lab};

#[test]
fn each_technique_is_faster_than_the_one_before_and_none_beats_the_disk() {
    let lab = Lab::new(Extent { scale: 0.02, seeds: vec![1], threads: 2 }, &|_, _| {});
    let schemes = ["ufs", "buddy", "stream", "packetizer", "lazy-reads", "lazy-reads-loc"];
    let trials = schemes.map(|scheme| Trial::of(scheme, 1));
    let results = lab.results(&trials, false);
    let rates: Vec<f64> = results.iter().map(|result| result.gets_per_second()).collect();
    assert!(rates.is_sorted(), "{schemes:?}: {rates:?}");
    assert!(rates.iter().all(|&rate| rate < 695.0), "the disk's ceiling: {rates:?}");
    for (scheme, result) in schemes.iter().zip(&results) {
        let outcome = &result.outcome;
        assert_eq!((outcome.lost, outcome.refused), (0, 0), "{scheme}");
    }
    let rewrites: Vec<u64> = results.iter().map(|result| result.disk.read_modify_writes).collect();
    assert!(rewrites[2] > 5 * rewrites[3], "the small-write problem (R24): {rewrites:?}");
}

#[test]
fn a_trial_gives_the_same_again() {
    let run = || {
        let lab = Lab::new(Extent { scale: 0.02, seeds: vec![7], threads: 1 }, &|_, _| {});
        lab.results(&[Trial::of("packetizer", 7)], false)[0].outcome.clone()
    };
    let (first, second) = (run(), run());
    assert_eq!((first.took, first.latencies), (second.took, second.latencies));
}
