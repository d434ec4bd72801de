//! Tests that the simulation shows the main results of Table 2 in the WebCoSM paper (paper 001 in
//! docs/figures.md). The order of the techniques must be as in the paper, and no technique may be
//! faster than the disk.

use foxy_lab::simulation::figures::trial::Trial;
use foxy_lab::simulation::figures::{Extent, Lab, find};

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
fn a_trial_is_reproducible() {
    let run = || {
        let lab = Lab::new(Extent { scale: 0.02, seeds: vec![7], threads: 1 }, &|_, _| {});
        lab.results(&[Trial::of("packetizer", 7)], false)[0].outcome.clone()
    };
    let (first, second) = (run(), run());
    assert_eq!((first.took, first.latencies), (second.took, second.latencies));
}

#[test]
fn each_recovery_method_finds_the_records_it_promises() {
    let lab = Lab::new(Extent { scale: 0.02, seeds: vec![1], threads: 2 }, &|_, _| {});
    let figure = find("001-recovery").expect("there is one").make(&lab);
    let found = |way: &str| {
        ["a clean stop", "a crash"].map(|end| {
            let name = format!("{way}: found again after {end}");
            let row = figure.rows.iter().find(|row| row.row == name).expect("a row for each");
            row.ours.expect("a share")
        })
    };
    for way in ["stream-packetizer", "ufs"] {
        let [clean, crash] = found(way);
        assert!(clean == 100.0 && crash > 95.0, "{way}: {clean} %, {crash} %");
    }
    for way in ["packetizer", "ufs without ledger"] {
        assert_eq!(found(way), [100.0, 0.0], "{way}");
    }
}
