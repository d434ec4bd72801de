//! Tests the programs `foxy leap --check` and `foxy leap --passthrough`: what they start, print and
//! record. Ignores the measured values, because they need a quiet machine.

use crate::support::commands::{foxy, measure, records};
use foxy_testkit::client::exchange;
use foxy_testkit::http::read_head;
use foxy_testkit::origin::listen_in_order;
use foxy_testkit::ports::free_ports;
use std::io::Write;
use std::net::{Shutdown, TcpStream};

/// Runs `foxy leap` with these arguments. Returns its output, and a function that finds the value
/// of a measure by subject and name.
fn leap(arguments: &[&str]) -> (String, impl Fn(&str, &str) -> Option<f64> + use<>) {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("json");
    let more = ["--json", json.to_str().expect("UTF-8")];
    let (code, out, err) = foxy(&[&["leap"], arguments, &more].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let records = records(&json);
    let value = move |subject: &str, name: &str| measure(&records, subject, name);
    (out, value)
}

#[test]
fn overhead_is_measured_by_leap_within_leap() {
    let (out, value) = leap(&["--check", "overhead", "--requests", "60", "--rate", "60"]);
    assert!(value("leap", "added_median_ms").is_some(), "{out}");
    assert!(out.contains("LEAP adds ") && out.contains("inner LEAP, median"), "{out}");
}

#[test]
fn fairness_compares_four_proxies_with_a_noise_floor_and_counts_false_alarms() {
    let (out, value) =
        leap(&["--check", "fairness", "--requests", "30", "--rate", "30", "--repeats", "2"]);
    for name in [
        "identical_proxies_max_difference_ms",
        "noise_floor_ms",
        "false_alarm_share",
        "false_alarm_share_of_means",
    ] {
        assert!(value("leap", name).is_some(), "{name}: {out}");
    }
    assert!(out.contains("of 12 pairs as different"), "{out}");
}

#[test]
fn replay_compares_hits_with_their_misses_in_each_case() {
    let (out, value) = leap(&["--check", "replay", "--requests", "2"]);
    for subject in
        ["collector", "no condition, content, one packet, at once", "condition, 304, 100 kB, later"]
    {
        assert!(value(subject, "hit_minus_miss_median_ms").is_some(), "{subject}: {out}");
        assert!(value(subject, "hit_minus_miss_p90_ms").is_some(), "{subject}: {out}");
    }
    assert!(value("origin", "origin_twice_p90_ms").is_some(), "{out}");
    assert!(out.contains("not run: no condition, old, confirmed"), "{out}");
}

/// Starts a proxy that stores nothing. After each request it sends another request to its parent
/// proxy, as if it prefetched.
fn prefetching(parent: u16) -> String {
    let address = listen_in_order(move |mut client| {
        let text = read_head(&mut client).expect("a request");
        let host = text.split('/').nth(2).expect("a host");
        let more = format!(
            "GET http://{host}/o/123456789/100/1 HTTP/1.1\r\nHost: {host}\r\n\
             Connection: close\r\n\r\n"
        );
        let ask = |text: &str| {
            exchange(TcpStream::connect(("127.0.0.1", parent)).expect("a parent"), text)
        };
        // The client receives its response first, so that it does not wait for the prefetch.
        client
            .write_all(&ask(&text))
            .and_then(|()| client.shutdown(Shutdown::Write))
            .expect("sent");
        ask(&more);
    });
    address.to_string()
}

#[test]
fn a_proxy_that_prefetches_is_named_and_one_beside_it_is_not() {
    let first = free_ports(3);
    let collector = format!("127.0.0.1:{first}");
    let (eager, honest) = (prefetching(first + 1), format!("honest=127.0.0.1:{}", first + 2));
    let eager = format!("eager={eager}");
    let (out, value) = leap(&[
        "--collector",
        &collector,
        "--proxy",
        &eager,
        "--proxy",
        &honest,
        "--requests",
        "10",
    ]);
    // The probe before the run also causes prefetches. The last prefetch may be missing when the
    // run ends.
    let prefetches = value("eager", "prefetches").expect("counted");
    assert!((11.0..=12.0).contains(&prefetches), "{prefetches}: {out}");
    assert_eq!(value("honest", "prefetches"), Some(0.0), "{out}");
    assert_eq!(value("direct", "prefetches"), Some(0.0), "{out}");
    assert!(out.contains("eager prefetches: 1") && out.contains("/o/123456789/100/1"), "{out}");
    assert!(!out.contains("honest prefetches"), "{out}");
}

#[test]
fn what_each_proxy_fetches_is_said_beside_one_that_stores_nothing() {
    let first = free_ports(3);
    // The "proxy" is a port of the Collector, the common parent proxy of the proxies in LEAP. So it
    // has no cache.
    let (collector, proxy) = (format!("127.0.0.1:{first}"), format!("a=127.0.0.1:{}", first + 1));
    let (out, value) =
        leap(&["--collector", &collector, "--proxy", &proxy, "--passthrough", "--requests", "20"]);
    assert_eq!(value("passthrough", "verdict_ok"), Some(20.0), "{out}");
    let share = value("a", "bandwidth_share_of_passthrough").expect("measured");
    assert!((0.9..1.1).contains(&share) && out.contains("of passthrough"), "{share}: {out}");
}
