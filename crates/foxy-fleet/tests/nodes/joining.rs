//! Tests nodes that join or leave: the owners of their keys, and the source of the new owner's
//! responses.

use super::bench::{TestFleet, TestNode};
use foxy_base::clock;
use foxy_fleet::JoinTerms;
use foxy_proxy::cache::purge::LogPlace;
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::time::Duration;

const CACHEABLE: &str = "Cache-Control: max-age=600\r\nAge: 7\r\n";
const URLS: usize = 8;

/// Lets the second node leave, or stay. Waits until all other nodes know.
fn leave(fleet: &TestFleet, is_leaving: bool) {
    fleet.node(1).nodes.leave(is_leaving, clock::monotonic());
    let knows = |node: &TestNode| node.nodes.status()[1].standing.is_leaving == is_leaving;
    until("all nodes know", || fleet.nodes.iter().all(knows).then_some(()));
}

fn get_all(fleet: &TestFleet, urls: &[String]) {
    for url in urls {
        let answer = fleet.node(0).get(url, "");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]), "{}", answer.head);
        assert!(answer.header("age").parse::<u64>().expect("an age") >= 7, "{}", answer.head);
    }
}

#[test]
fn a_leaving_node_gives_its_responses_to_the_new_owners_of_its_keys() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let mut fleet = TestFleet::start();
    let urls: Vec<_> = fleet.urls(origin.address, 1, 2).take(URLS).collect();
    get_all(&fleet, &urls);
    leave(&fleet, true);
    let served = fleet.node(1).count(Counter::FleetServed);
    get_all(&fleet, &urls);
    // A slow machine may let the new owner ask the origin instead.
    let given = fleet.node(2).count(Counter::FleetFormerHits) as usize;
    assert!(given > 0 && fleet.node(1).count(Counter::FleetServed) > served);
    assert_eq!(origin.requests(), URLS + URLS - given);
    let answer = fleet.node(0).get(&urls[0], "");
    let head = &answer.head;
    assert!(head.contains("foxy-c; hit") && !head.contains("foxy-b;"), "{head}");
    drop(fleet.nodes.remove(1));
    get_all(&fleet, &urls);
    assert_eq!(origin.requests(), URLS + URLS - given, "the new owner has stored all");
}

#[test]
fn a_node_that_joins_gets_responses_from_the_former_owners() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let fleet = TestFleet::start();
    let urls: Vec<_> = fleet.urls(origin.address, 1, 2).take(URLS).collect();
    leave(&fleet, true);
    get_all(&fleet, &urls);
    assert_eq!(fleet.node(2).count(Counter::FleetFormerHits), 0, "the leaving node has nothing");
    let terms = JoinTerms { ramp: Duration::ZERO, former_owner: Duration::from_secs(600) };
    let joining = fleet.node(1);
    joining.nodes.join(terms, clock::monotonic());
    joining.nodes.tick(true, clock::monotonic());
    leave(&fleet, false);
    get_all(&fleet, &urls);
    let got = joining.count(Counter::FleetFormerHits) as usize;
    assert!(got > 0);
    assert_eq!(origin.requests(), URLS + URLS - got);
}

#[test]
fn a_new_owner_takes_nothing_from_a_node_that_has_applied_fewer_purges() {
    let origin = TestOrigin::start(|_, _| ok(CACHEABLE, b"body"));
    let fleet = TestFleet::start();
    let urls: Vec<_> = fleet.urls(origin.address, 1, 2).take(URLS).collect();
    get_all(&fleet, &urls);
    let place = |position| LogPlace { chain: 1, position };
    fleet.node(1).book.followed().finish(place(4));
    fleet.node(2).book.followed().begin(place(5));
    leave(&fleet, true);
    get_all(&fleet, &urls);
    assert_eq!(fleet.node(2).count(Counter::FleetFormerHits), 0);
    assert!(fleet.node(2).count(Counter::FleetFormerAsked) > 0);
    assert_eq!(origin.requests(), URLS * 2);
}
