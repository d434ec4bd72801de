//! Tests owners that are busy or slow.

use super::bench::{SLOW, TestFleet, TestNode, WORKERS};
use foxy_base::{Instant, clock};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::upstream::fleet::{Fleet, Told};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::{PATIENCE, until};
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
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
    scope(|scope| {
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

#[test]
fn a_node_that_hangs_while_it_waits_for_the_origin_costs_no_client_its_answer() {
    let (is_asked, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (asked, on) = (Arc::clone(&is_asked), Arc::clone(&goes_on));
    let origin = TestOrigin::start(move |_, _| {
        // Only the first request waits: the request of the owner that hangs.
        if !asked.swap(true, Ordering::Relaxed) {
            until("the end of the test", || on.load(Ordering::Relaxed).then_some(()));
        }
        ok("Cache-Control: max-age=60\r\n", b"body")
    });
    let fleet = TestFleet::start();
    let mut urls = fleet.urls(origin.address, 1, 2);
    let url = urls.next().expect("a URL");
    let (node, owner) = (fleet.node(0), fleet.node(1));
    let has_ended = AtomicBool::new(false);
    let answer = scope(|scope| {
        let asking = scope.spawn(|| node.get(&url, ""));
        until("a request", || is_asked.load(Ordering::Relaxed).then_some(()));
        owner.store.hangs.store(true, Ordering::Relaxed);
        // The owner answers pings, but no requests.
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                node.nodes.pinged(1, Told::default());
                sleep(Duration::from_millis(20));
            }
        });
        let mut streams = Vec::new();
        let begun = clock::monotonic();
        let do_all_hang = || owner.store.blocked.load(Ordering::Relaxed) == WORKERS;
        while !do_all_hang() && clock::monotonic().since(begun) < PATIENCE {
            let mut stream = TcpStream::connect(owner.proxy.addresses()[0]).expect("accepted");
            let other = urls.next().expect("a URL");
            write!(stream, "GET {other} HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
            streams.push(stream);
            sleep(Duration::from_millis(50));
        }
        let has_hung = do_all_hang();
        let answer = asking.join();
        has_ended.store(true, Ordering::Relaxed);
        owner.store.hangs.store(false, Ordering::Relaxed);
        goes_on.store(true, Ordering::Relaxed);
        assert!(has_hung, "the owner's threads hang");
        answer.expect("an answer")
    });
    assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
    assert!(answer.head.contains("detail=second"), "{}", answer.head);
}

#[test]
fn the_client_of_a_slow_origin_gets_the_owners_answer() {
    let origin = TestOrigin::start(|_, _| {
        sleep(Duration::from_secs(13));
        ok("Cache-Control: max-age=60\r\n", b"body")
    });
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let answer = fleet.node(0).get(&url, "");
    assert_eq!((answer.status, origin.requests()), (200, 1));
    assert!(answer.head.contains("detail=owner"), "{}", answer.head);
}
