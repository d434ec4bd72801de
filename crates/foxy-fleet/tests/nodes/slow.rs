//! Tests owners that are busy or slow.

use super::bench::{SLOW, TestFleet, TestNode};
use foxy_base::{Instant, clock};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::upstream::fleet::{Fleet, Told};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Number of requests in progress that make a node busy.
const MANY: usize = 200;

/// Makes `owner` busy, and asks `node` for a URL.
fn ask_while_busy(node: &TestNode, owner: &TestNode, url: &str) -> String {
    for _ in 0..MANY {
        owner.nodes.begin(b"other", Instant::ZERO);
    }
    let answer = node.get(url, "");
    (0..MANY).for_each(|_| owner.nodes.end());
    assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
    answer.head
}

#[test]
fn a_busy_owner_says_so_and_the_second_answers() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"body"));
    let fleet = TestFleet::start();
    let mut urls = fleet.urls(origin.address, 1, 2);
    let [url, other] = [(); 2].map(|()| urls.next().expect("a URL"));
    let node = fleet.node(0);
    let head = ask_while_busy(node, fleet.node(1), &url);
    assert!(head.contains("foxy-c; fwd=uri-miss") && head.contains("detail=second"), "{head}");
    let stored: Vec<_> = fleet.nodes.iter().map(|node| node.store.len()).collect();
    assert_eq!((stored, node.count(Counter::FleetBusy)), (vec![0, 0, 1], 1));
    let answer = node.get(&other, "");
    assert!(answer.head.contains("detail=owner"), "{}", answer.head);
    assert_eq!((origin.requests(), node.count(Counter::FleetFallbacks)), (2, 0));
}

#[test]
fn the_second_answers_for_a_slow_owner_after_twice_the_p99() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"body"));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let (node, owner) = (fleet.node(0), fleet.node(1));
    ask_while_busy(node, owner, &url);
    let usual = || node.nodes.answered(1, Some(Duration::from_millis(50)), Told::default());
    (0..1000).for_each(|_| usual());
    owner.store.is_slow.store(true, Ordering::Relaxed);
    let begun = clock::monotonic();
    let answer = node.get(&url, "");
    let took = clock::monotonic().since(begun);
    assert!(answer.head.contains("foxy-c; hit"), "{}", answer.head);
    assert!((Duration::from_millis(100)..SLOW).contains(&took), "{took:?}");
    assert_eq!((origin.requests(), node.count(Counter::FleetHedges)), (1, 1));
}

#[test]
fn a_node_that_answers_pings_but_no_requests_is_lost() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"body"));
    let fleet = TestFleet::start();
    let urls: Vec<_> = fleet.urls(origin.address, 1, 2).take(4).collect();
    let (node, owner) = (fleet.node(0), fleet.node(1));
    owner.store.is_slow.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        for url in &urls[..3] {
            scope.spawn(move || {
                let answer = node.get(url, "");
                assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
                assert!(answer.head.contains("foxy-c;"), "{}", answer.head);
            });
        }
    });
    assert!(node.nodes.is_lost(1), "the owner answered none of three requests");
    assert_eq!(node.count(Counter::FleetNodesLost), 1);
    let answer = node.get(&urls[3], "");
    assert!(answer.head.contains("foxy-c;"), "{}", answer.head);
}
