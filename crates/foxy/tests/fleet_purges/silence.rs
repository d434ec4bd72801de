//! Tests an engine and a node that accept connections but do not answer.

use crate::engine::{EngineKind, on_each_engine};
use crate::fleet::Fleet;
use crate::versions::{Versions, version};
use foxy_base::clock;
use foxy_testkit::wait::until;
use std::time::Duration;

on_each_engine!(
    a_silent_engine_ends_the_leases_and_refuses_purges_in_time,
    a_silent_node_costs_no_client_an_answer_and_is_found_by_pings,
);

/// Time limit of an answer while a node is silent. Slow machines need most of it.
const LIMIT: Duration = Duration::from_secs(10);

fn is_in_time(begun: foxy_base::Instant) -> bool {
    clock::monotonic().since(begun) < LIMIT
}

fn a_silent_engine_ends_the_leases_and_refuses_purges_in_time(engine: EngineKind) {
    let Some(engine) = engine.start("a silent engine of a fleet") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    let url = origin.url("/x");
    fleet.warm(&url);
    engine.signal("STOP");
    let begun = clock::monotonic();
    let newest = origin.change("/x");
    let answer = fleet.purge(0, &url);
    assert!(answer.status == 503 && is_in_time(begun), "{answer:?}");
    until("the end of the leases", || {
        let statuses = fleet.get_all(&url);
        statuses.iter().all(|status| status.contains("detail=no-lease")).then_some(())
    });
    for node in fleet.nodes.iter().flatten() {
        let begun = clock::monotonic();
        assert_eq!(version(&node.get(&url)), Some(newest), "validated");
        assert!(is_in_time(begun));
    }
    engine.signal("CONT");
    fleet.wait_for_leases();
    fleet.warm(&url);
    let newest = origin.change("/x");
    fleet.purge_acknowledged(1, &url);
    assert_eq!(version(&fleet.node(2).get(&url)), Some(newest));
}

fn a_silent_node_costs_no_client_an_answer_and_is_found_by_pings(engine: EngineKind) {
    let Some(engine) = engine.start("a silent node of a fleet") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    // Each node owns some of these URLs.
    let urls: Vec<_> = (0..12).map(|number| origin.url(&format!("/{number}"))).collect();
    urls.iter().for_each(|url| fleet.warm(url));
    fleet.node(2).signal("STOP");
    for url in &urls {
        let begun = clock::monotonic();
        let answer = fleet.node(0).get(url);
        assert!(answer.status == 200 && is_in_time(begun), "{answer:?}");
    }
    until("a lost node", || fleet.fact(2, "is_lost").then_some(()));
    let newest = origin.change("/0");
    fleet.purge_acknowledged(0, &urls[0]);
    assert_eq!(version(&fleet.node(1).get(&urls[0])), Some(newest));
    fleet.node(2).signal("CONT");
    for _ in 0..5 {
        assert_eq!(version(&fleet.node(2).get(&urls[0])), Some(newest), "not stale after a pause");
    }
    until("the node's return", || (!fleet.fact(2, "is_lost")).then_some(()));
    fleet.wait_for_leases();
}
