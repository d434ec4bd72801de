//! Tests nodes that leave a running fleet and join it again.

use crate::engine::{EngineKind, on_each_engine};
use crate::fleet::Fleet;
use crate::support::commands::foxy;
use crate::versions::{Versions, version};
use foxy_testkit::wait::until;
use serde_json::Value;

on_each_engine!(
    a_node_leaves_and_joins_without_a_restart_of_others_and_no_answer_is_stale,
    a_drained_node_gives_its_keys_and_responses_to_the_others,
);

/// Returns the state of the fleet, as a node shows it.
pub fn status(fleet: &Fleet, node: usize) -> Value {
    serde_json::from_str(&fleet.node(node).admin("/data/fleet").body).expect("JSON")
}

/// Returns the names of all members, as a node shows them.
pub fn names(fleet: &Fleet, node: usize) -> Vec<String> {
    let status = status(fleet, node);
    let nodes = status["nodes"].as_array().expect("nodes");
    nodes.iter().map(|node| node["name"].as_str().expect("a name").to_owned()).collect()
}

fn a_node_leaves_and_joins_without_a_restart_of_others_and_no_answer_is_stale(engine: EngineKind) {
    let Some(engine) = engine.start("changed members of a fleet") else { return };
    let (origin, mut fleet) = (Versions::start(), Fleet::start(&engine));
    let urls: Vec<_> = (0..12).map(|number| origin.url(&format!("/{number}"))).collect();
    urls.iter().for_each(|url| fleet.warm(url));
    let check = |fleet: &Fleet, purger: usize| {
        for (number, url) in urls.iter().enumerate() {
            let newest = origin.change(&format!("/{number}"));
            fleet.purge_acknowledged(purger, url);
            for node in fleet.nodes.iter().flatten() {
                assert_eq!(version(&node.get(url)), Some(newest), "{url}, purged at {purger}");
            }
        }
    };
    fleet.reload_members(0, &[0, 1], "applied 1 change");
    assert_eq!(names(&fleet, 0), ["a", "b"]);
    // The third node still serves with its lease, and has another list. Purges wait for it.
    check(&fleet, 0);
    fleet.kill(2);
    fleet.reload_members(1, &[0, 1], "applied 1 change");
    check(&fleet, 1);
    urls.iter().for_each(|url| fleet.warm(url));
    fleet.reload_members(0, &[1, 2], "the members do not include this node, `a`");
    fleet.reload_members(0, &[0, 1, 2], "applied 1 change");
    fleet.reload_members(1, &[0, 1, 2], "applied 1 change");
    fleet.begin(2);
    fleet.wait_for_leases();
    assert_eq!(names(&fleet, 0), ["a", "b", "c"]);
    urls.iter().for_each(|url| fleet.warm(url));
    check(&fleet, 2);
    assert!(fleet.node(1).metric::<u64>("foxy_proxy_fleet_requests_total") > 0);
}

fn a_drained_node_gives_its_keys_and_responses_to_the_others(engine: EngineKind) {
    let Some(engine) = engine.start("a drained node of a fleet") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    let urls: Vec<_> = (0..24).map(|number| origin.url(&format!("/{number}"))).collect();
    urls.iter().for_each(|url| fleet.warm(url));
    let drain = |more: &[&str]| {
        let admin = fleet.node(2).admin.to_string();
        let words = [&["fleet", "drain", "--admin", &admin], more].concat();
        let (code, out, err) = foxy(&words);
        assert_eq!(code, Some(0), "{out}{err}");
        let is_leaving = more.is_empty();
        until("the first node knows", || (fleet.fact(2, "is_leaving") == is_leaving).then_some(()));
    };
    drain(&[]);
    urls.iter().for_each(|url| fleet.warm(url));
    for url in &urls {
        let status = fleet.node(0).get(url).cache_status().to_owned();
        assert!(!status.starts_with("foxy-c; hit"), "{status}");
    }
    let given = |node| fleet.node(node).metric::<u64>("foxy_proxy_fleet_former_hits_total");
    assert!(given(0) + given(1) > 0, "the new owners took responses of the drained node");
    let newest = origin.change("/0");
    fleet.purge_acknowledged(2, &urls[0]);
    for node in fleet.nodes.iter().flatten() {
        assert_eq!(version(&node.get(&urls[0])), Some(newest));
    }
    drain(&["--cancel"]);
    urls.iter().for_each(|url| fleet.warm(url));
}
