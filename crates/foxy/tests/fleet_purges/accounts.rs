//! Tests how the nodes of a fleet log and count requests that reach them through other nodes.

use crate::fleet::Fleet;
use crate::support::Origin;
use crate::support::commands::foxy;
use foxy_testkit::wait::until;
use serde_json::Value;

/// Returns the lines of a JSON access log.
fn lines(log: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_node_logs_that_another_node_answered_from_its_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log").display().to_string();
    let fleet = Fleet::without_engine(&["--access-log", &log, "--access-log-format", "json"]);
    let origin = Origin::start();
    let url = origin.url("x");
    fleet.warm(&url);
    let has = |hierarchy: &str, end: &str| {
        let peers: Vec<_> = (0..3).map(|node| fleet.ground.peer(node)).collect();
        lines(&log).iter().any(|line| {
            let parent = line["parent"].as_str().unwrap_or_default();
            line["hierarchy"] == hierarchy
                && line["result"] == "TCP_MISS"
                && line["cache_status"].as_str().is_some_and(|status| status.ends_with(end))
                && peers.iter().any(|peer| peer == parent)
        })
    };
    until("a hit at the owner", || has("SIBLING_HIT", "detail=owner").then_some(()));
}

#[test]
fn a_node_without_a_stored_response_counts_no_error_when_another_node_asks_for_it() {
    let (origin, fleet) = (Origin::start(), Fleet::without_engine(&[]));
    let admin = fleet.node(2).admin.to_string();
    let (code, out, err) = foxy(&["fleet", "drain", "--admin", &admin]);
    assert_eq!(code, Some(0), "{out}{err}");
    until("the first node knows", || fleet.fact(2, "is_leaving").then_some(()));
    let count = |node: usize, name: &str| fleet.node(node).metric::<u64>(name);
    // The new owners of its keys ask the drained node for responses that it never had.
    let mut page = 0;
    until("questions to the drained node", || {
        page += 1;
        fleet.node(0).get(&origin.url(&page.to_string()));
        let asked = |node| count(node, "foxy_proxy_fleet_former_asked_total");
        (asked(0) + asked(1) > 2).then_some(())
    });
    assert_eq!(count(2, "foxy_proxy_local_errors_total"), 0);
}

#[test]
fn a_purge_at_a_node_without_the_response_tells_of_the_other_nodes() {
    let (origin, fleet) = (Origin::start(), Fleet::without_engine(&[]));
    let url = origin.url("purged");
    let not_owner = |node: &usize| fleet.node(*node).get(&url).cache_status().contains("owner");
    let node = until("a node that is not the owner", || (0..3).find(not_owner));
    let admin = fleet.node(node).admin.to_string();
    let (code, out, err) = foxy(&["purge", &url, "--admin", &admin]);
    assert_eq!(code, Some(0), "{out}{err}");
    for part in ["this node stores nothing for", "other nodes of the fleet purged nothing"] {
        assert!(out.contains(part), "{out}");
    }
    let (_, out, _) = foxy(&["purge", &url, "--json", "--admin", &admin]);
    assert!(out.contains(r#""reach":"this-node""#), "{out}");
}

#[test]
fn a_node_logs_that_another_node_goes_down_and_comes_up_again() {
    let mut fleet = Fleet::without_engine(&[]);
    let up = |fleet: &Fleet| (!fleet.fact(2, "is_lost")).then_some(());
    until("all nodes", || up(&fleet));
    fleet.kill(2);
    fleet.first_report("node `c` of the fleet is down");
    fleet.begin(2);
    fleet.first_report("node `c` of the fleet is up again");
}
