//! Tests which node answers, fetches and stores.

use super::bench::TestFleet;
use foxy_proxy::cache::purge::LogPlace;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::upstream::fleet::Fleet as _;
use foxy_rules::operator::{Conditions, Effects, OperatorRule, OperatorRules, Upstream, Ways};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const CACHEABLE: &str = "Cache-Control: max-age=60\r\n";

/// Returns rules that send all requests directly to the servers of their URLs.
fn direct() -> OperatorRules {
    let ways = Ways { direct: true, ..Ways::default() };
    let rule = OperatorRule {
        name: "direct".into(),
        when: Conditions::default(),
        unless: Vec::new(),
        then: Effects { upstream: Some(Upstream::Ways(ways.into())), ..Effects::default() },
    };
    OperatorRules::new(vec![rule]).expect("a sound rule")
}

fn statuses(head: &str) -> Vec<&str> {
    head.lines()
        .filter_map(|line| {
            line.strip_prefix("cache-status: ").or(line.strip_prefix("Cache-Status: "))
        })
        .collect()
}

#[test]
fn all_clients_of_all_nodes_share_one_fetch_and_the_owner_stores_alone() {
    let origin = TestOrigin::start(|_, _| {
        std::thread::sleep(Duration::from_secs(1));
        ok(CACHEABLE, &[b'x'; 100_000])
    });
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    std::thread::scope(|scope| {
        for node in &fleet.nodes {
            // With so many requests the owner is busy, but it lets requests join its fetch.
            for _ in 0..50 {
                scope.spawn(|| {
                    let answer = node.get(&url, "");
                    assert_eq!((answer.status, answer.body.len()), (200, 100_000));
                });
            }
        }
    });
    assert_eq!(origin.requests(), 1);
    let stored: Vec<_> = fleet.nodes.iter().map(|node| node.store.len()).collect();
    assert_eq!(stored, [0, 1, 0]);
    assert_eq!(fleet.node(0).count(Counter::FleetFallbacks), 0);
}

#[test]
fn the_answer_names_the_part_of_each_node() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let first = fleet.node(0).get(&url, "");
    let expected = [
        "foxy-b; fwd=uri-miss; fwd-status=200; stored",
        "foxy-a; fwd=uri-miss; fwd-status=200; detail=owner",
    ];
    assert_eq!(statuses(&first.head), expected, "{}", first.head);
    let second = fleet.node(0).get(&url, "");
    let statuses = statuses(&second.head);
    assert!(statuses[0].starts_with("foxy-b; hit; ttl="), "{statuses:?}");
    assert!(!second.head.to_ascii_lowercase().contains("foxy-fleet"), "{}", second.head);
    assert_eq!(fleet.node(0).count(Counter::FleetHits), 1);
    let at_owner = fleet.node(1).get(&url, "");
    assert!(at_owner.cache_status().starts_with("foxy-b; hit"), "{}", at_owner.head);
    assert_eq!(origin.requests(), 1);
    let timed = |number: usize| fleet.node(number).proxy.gauges().first_bytes().count();
    assert_eq!([timed(0), timed(1)], [0, 1], "the times of origins are without those of nodes");
}

#[test]
fn ranges_conditions_and_heads_reach_the_owner() {
    let origin =
        TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\nETag: \"1\"\r\n", b"0123456789"));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let node = fleet.node(0);
    assert_eq!(node.get(&url, "").body, b"0123456789");
    let part = node.get(&url, "Range: bytes=2-4\r\n");
    assert_eq!((part.status, &part.body[..]), (206, &b"234"[..]));
    assert_eq!(node.get(&url, "If-None-Match: \"1\"\r\n").status, 304);
    let host = origin.address;
    let head = node.connect().ask(&format!("HEAD {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!((head.status, head.header("content-length")), (200, "10"));
    assert_eq!(node.get(&url, "Cache-Control: only-if-cached\r\n").status, 200);
    assert_eq!(origin.requests(), 1);
}

#[test]
fn a_private_response_reaches_only_its_client() {
    let origin = TestOrigin::start(|_, number| {
        ok("Cache-Control: private, max-age=60\r\n", &[number as u8])
    });
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    for number in 0..3 {
        assert_eq!(fleet.node(number).get(&url, "").body, [number as u8]);
    }
    assert!(fleet.nodes.iter().all(|node| node.store.len() == 0));
}

#[test]
fn a_post_at_any_node_removes_the_response_at_the_owner() {
    let origin = TestOrigin::start(|_, number| ok(CACHEABLE, &[number as u8]));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    assert_eq!(
        (fleet.node(0).get(&url, "").body, fleet.node(0).get(&url, "").body),
        (vec![0], vec![0])
    );
    let post =
        format!("POST {url} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", origin.address);
    assert_eq!(fleet.node(2).connect().ask(&post).status, 200);
    assert_eq!(fleet.node(0).get(&url, "").body, [2]);
    fleet.node(2).proxy.handle().rules().replace(direct());
    assert_eq!(fleet.node(2).connect().ask(&post).status, 200);
    assert_eq!(fleet.node(0).get(&url, "").body, [4], "a rule chose the upstream of the POST");
}

#[test]
fn a_post_removes_the_responses_that_its_answer_names_at_their_owner() {
    let origin = TestOrigin::start(|head, number| match head.starts_with("POST") {
        true => ok("Location: /9?n=1\r\nContent-Location: http://other.test/1\r\n", b""),
        false => ok(CACHEABLE, &[number as u8]),
    });
    let fleet = TestFleet::start();
    let at = origin.address;
    let named = format!("http://{at}/9?n=1");
    let owner = fleet.node(0).nodes.order(named.as_bytes())[0].clone().expect("an owner").number;
    let (poster, other) = (fleet.node((owner + 1) % 3), fleet.node((owner + 2) % 3));
    assert_eq!([other.get(&named, "").body, other.get(&named, "").body], [[0], [0]]);
    let post = format!("POST http://{at}/9 HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n");
    // The owner may be too slow to answer the message about the POST in time.
    until("the named response is removed", || {
        let before = origin.requests();
        assert_eq!(poster.connect().ask(&post).status, 200);
        (other.get(&named, "").body == [before as u8 + 1]).then_some(())
    });
}

#[test]
fn a_hot_key_has_copies_as_old_as_the_owners_response() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\nAge: 7\r\n", b"body"));
    let fleet = TestFleet::start_with(2);
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let node = fleet.node(0);
    until("a copy", || {
        let answer = node.get(&url, "");
        assert_eq!(answer.status, 200);
        let last = statuses(&answer.head).pop();
        last.is_some_and(|last| last.starts_with("foxy-a; hit")).then_some(())
    });
    let copy = node.get(&url, "");
    assert!(copy.header("age").parse::<u64>().expect("an age") >= 7, "{}", copy.head);
    assert_eq!((origin.requests(), node.store.len()), (1, 0));
    assert_eq!(node.count(Counter::FleetCopies), 1);
    let purge = format!("PURGE {url} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address);
    assert_eq!(node.connect().ask(&purge).status, 200);
    let after = node.get(&url, "");
    assert!(after.head.contains("detail=owner"), "{}", after.head);
}

#[test]
fn a_reload_through_a_node_with_a_copy_is_never_undone() {
    let count = AtomicUsize::new(0);
    let origin = TestOrigin::start(move |_, _| {
        let version = count.fetch_add(1, Ordering::Relaxed);
        // No node can copy the later versions over the first.
        let fields = if version == 0 { CACHEABLE } else { "Cache-Control: no-store\r\n" };
        ok(fields, version.to_string().as_bytes())
    });
    let fleet = TestFleet::start_with(2);
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let node = fleet.node(0);
    until("a copy", || {
        let answer = node.get(&url, "");
        assert_eq!(answer.body, b"0");
        let last = statuses(&answer.head).pop();
        last.is_some_and(|last| last.starts_with("foxy-a; hit")).then_some(())
    });
    assert_eq!(node.get(&url, "Cache-Control: no-cache\r\n").body, b"1");
    assert_eq!(node.get(&url, "").body, b"2", "the old copy came back");
}

#[test]
fn a_node_copies_only_from_an_owner_that_has_applied_the_same_purges() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let fleet = TestFleet::start_with(1);
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let (node, owner) = (fleet.node(0), fleet.node(1));
    let place = |position| LogPlace { chain: 1, position };
    owner.book.followed().finish(place(4));
    node.book.followed().begin(place(5));
    for _ in 0..3 {
        assert_eq!(node.get(&url, "").status, 200);
    }
    assert_eq!(node.count(Counter::FleetCopies), 0);
    owner.book.followed().finish(place(5));
    assert_eq!(node.get(&url, "").status, 200);
    assert_eq!(node.count(Counter::FleetCopies), 1);
}

#[test]
fn a_lost_node_moves_only_its_keys_and_no_client_sees_an_error() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let mut fleet = TestFleet::start();
    let of = |owner, second| fleet.urls(origin.address, owner, second).take(5).collect::<Vec<_>>();
    let (kept, moved) = ([of(0, 1), of(1, 0), of(1, 2)].concat(), of(2, 1));
    let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let all: Vec<_> = kept.iter().chain(&moved).cloned().collect();
    all.iter().for_each(|url| assert_eq!(fleet.node(0).get(url, "").status, 200));
    assert_eq!(origin.requests(), all.len());
    let lost = fleet.nodes.pop().expect("the third node");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for url in &all {
                    let answer = fleet.node(0).get(url, "");
                    assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        until("requests", || (answers.load(Ordering::Relaxed) > 50).then_some(()));
        drop(lost);
        let so_far = answers.load(Ordering::Relaxed);
        until("more requests", || (answers.load(Ordering::Relaxed) > so_far + 100).then_some(()));
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(origin.requests(), all.len() + moved.len());
    let statuses = statuses_of(&fleet, &moved[0]);
    assert!(statuses[0].starts_with("foxy-b; hit"), "{statuses:?}");
}

fn statuses_of(fleet: &TestFleet, url: &str) -> Vec<String> {
    let answer = fleet.node(0).get(url, "");
    statuses(&answer.head).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_node_whose_owner_and_second_are_lost_fetches_itself() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let mut fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    fleet.nodes.truncate(1);
    let answer = fleet.node(0).get(&url, "");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
    assert_eq!(answer.cache_status(), "foxy-a; fwd=uri-miss; fwd-status=200; stored");
    assert_eq!(fleet.node(0).store.len(), 1);
}
