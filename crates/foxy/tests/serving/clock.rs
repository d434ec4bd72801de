//! Tests that stored responses do not become younger if the system's clock is set back while foxy
//! is stopped.

use crate::support::{Foxy, Origin};
use std::path::Path;

const KEPT: &str = "foxy.clock";
const DAY: u64 = 86_400_000;

/// Reads the clock file in the store's folder: the saved times of the steady clock and the wall
/// clock, and whether foxy had stopped normally.
fn kept(folder: &Path) -> (u64, u64, String) {
    let text = std::fs::read_to_string(folder.join(KEPT)).expect("it is kept");
    let words: Vec<&str> = text.split_whitespace().collect();
    let time = |at: usize| words[at].parse().expect("milliseconds");
    (time(1), time(2), words[3].to_owned())
}

/// Stores a page, stops foxy, and adds `by` milliseconds to the saved times. The next start then
/// sees a clock that was set back.
fn stored_with_a_clock_ahead(folder: &Path, origin: &Origin, by: u64) {
    let foxy = Foxy::start(folder, &[]);
    assert!(foxy.get(&origin.url("page")).cache_status().contains("stored"));
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let (steady, civil, end) = kept(folder);
    assert_eq!(end, "stopped");
    let ahead = format!("foxy-clock-1 {} {} stopped\n", steady + by, civil + by);
    std::fs::write(folder.join(KEPT), ahead).expect("written");
}

#[test]
fn records_are_revalidated_when_the_clock_went_back_while_foxy_was_stopped() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    stored_with_a_clock_ahead(folder.path(), &origin, DAY);
    let foxy = Foxy::start(folder.path(), &[]);
    assert!(foxy.welcome.contains("earlier time than when foxy last ran"), "{}", foxy.welcome);
    let answer = foxy.get(&origin.url("page"));
    assert!(answer.cache_status().contains("fwd=stale"), "{answer:?}");
    assert_eq!(origin.asked(), 2);
    // foxy has fetched the page again. It is fresh now, also after another start.
    assert!(foxy.get(&origin.url("page")).cache_status().contains("; hit"));
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let foxy = Foxy::start(folder.path(), &[]);
    assert!(foxy.get(&origin.url("page")).cache_status().contains("; hit"));
    assert_eq!(origin.asked(), 2);
}

#[test]
fn a_crash_costs_a_minute_of_freshness_and_what_is_stored_stays() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    stored_with_a_clock_ahead(folder.path(), &origin, 0);
    Foxy::start(folder.path(), &[]).kill();
    assert_eq!(kept(folder.path()).2, "running");
    let foxy = Foxy::start(folder.path(), &[]);
    let answer = foxy.get(&origin.url("page"));
    assert!(answer.cache_status().contains("; hit"), "{answer:?}");
    let age: u64 = answer.fields["age"].parse().expect("seconds");
    assert!((60..600).contains(&age), "{answer:?}");
}
