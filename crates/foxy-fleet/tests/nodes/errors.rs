//! Tests which node answers while the origin fails.

use super::bench::TestFleet;
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_owners_error_of_the_origin_is_the_answer() {
    let origin = TestOrigin::start(|_, _| Vec::new());
    let fleet = TestFleet::start();
    let (node, second) = (fleet.node(0), fleet.node(2));
    for (address, reason) in
        [(origin.address, "no-response"), (free_address(), "connection-refused")]
    {
        let mut urls = fleet.urls(address, 1, 2);
        let [at_owner, through_node] = [(); 2].map(|()| urls.next().expect("a URL"));
        assert_eq!(fleet.node(1).get(&at_owner, "").status, 502);
        let requests = origin.requests();
        let answer = node.get(&through_node, "");
        let head = &answer.head;
        assert_eq!(answer.status, 502, "{head}");
        let expected = format!("foxy-b; detail={reason}");
        assert!(head.contains(&expected) && head.contains("detail=owner"), "{head}");
        let again = if address == origin.address { 1 } else { 0 };
        assert_eq!(origin.requests(), requests + again, "only the owner asks the origin");
    }
    assert_eq!(second.count(Counter::FleetServed), 0);
    assert_eq!(node.count(Counter::FleetFallbacks), 0);
}

#[test]
fn a_stale_copy_replaces_the_owners_error_of_the_origin() {
    for permission in ["stale-if-error=600", "stale-while-revalidate=600"] {
        answer_with_stale_copy(permission);
    }
}

fn answer_with_stale_copy(permission: &'static str) {
    let is_down = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_down);
    let origin = TestOrigin::start(move |_, _| match fails.load(Ordering::Relaxed) {
        true => Vec::new(),
        false => ok(&format!("Cache-Control: max-age=1, {permission}\r\n"), b"body"),
    });
    let fleet = TestFleet::start_with(2);
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let node = fleet.node(0);
    until("a copy", || {
        let answer = node.get(&url, "");
        assert_eq!(answer.status, 200);
        answer.head.contains("foxy-a; hit").then_some(())
    });
    is_down.store(true, Ordering::Relaxed);
    let lines = format!("Host: {}\r\nFoxy-Purge: hard\r\n", origin.address);
    let purge = format!("PURGE {url} HTTP/1.1\r\n{lines}\r\n");
    assert_eq!(fleet.node(1).connect().ask(&purge).status, 200);
    until("the stale copy", || {
        let answer = node.get(&url, "");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]), "{}", answer.head);
        (answer.head.contains("foxy-a;") && answer.head.contains("ttl=-")).then_some(())
    });
    assert_eq!(node.count(Counter::FleetFallbacks), 0);
}
