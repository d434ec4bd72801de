//! Tests purges in a fleet of three real nodes with a real Redis
//! or NATS. After the answer to a purge, no
//! node serves a purged response, whatever happens to nodes and engine.
//!
//! `FOXY_FLEET_PURGES` sets the number of purges of the random run, `FOXY_FLEET_RUN_SEED` its seed,
//! and `FOXY_FLEET_RECORD` the file for its record. The random run puts nodes and engine into
//! network namespaces of their own, or says that it cannot.

mod accounts;
mod balancers;
mod checker;
mod differences;
mod discovery;
mod engine;
mod engine_password;
mod faulty;
mod fleet;
mod ground;
mod members;
mod name_server;
mod nats;
mod plan;
mod random_run;
mod redis;
mod silence;
#[path = "../support/mod.rs"]
mod support;
mod versions;

use engine::{EngineKind, on_each_engine};
use fleet::Fleet;
use foxy_testkit::wait::until;
use ground::Ground;
use std::sync::Arc;
use versions::{Versions, version};

on_each_engine!(
    a_purge_on_one_node_holds_on_all_before_it_is_acknowledged,
    a_killed_node_delays_a_purge_by_its_lease_and_is_not_stale_after_its_return,
    without_the_engine_purges_are_refused_and_then_everything_is_validated,
    every_node_validates_after_entries_were_taken_out_of_the_log,
    foxy_names_the_setting_with_which_an_engine_loses_purges,
);

fn a_purge_on_one_node_holds_on_all_before_it_is_acknowledged(engine: EngineKind) {
    let Some(engine) = engine.start("purges of a fleet") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    let url = origin.url("/x");
    for purger in 0..3 {
        fleet.warm(&url);
        let newest = origin.change("/x");
        let refused = fleet.purge_acknowledged(purger, &url);
        let failed: u64 = fleet.node(purger).metric("foxy_fleet_purges_failed_total");
        assert!(failed <= refused, "{failed} failures, but {refused} refusals");
        for node in fleet.nodes.iter().flatten() {
            assert_eq!(version(&node.get(&url)), Some(newest), "purged at node {purger}");
        }
    }
}

fn a_killed_node_delays_a_purge_by_its_lease_and_is_not_stale_after_its_return(engine: EngineKind) {
    let Some(engine) = engine.start("a killed node of a fleet") else { return };
    let (origin, mut fleet) = (Versions::start(), Fleet::start(&engine));
    let url = origin.url("/x");
    fleet.warm(&url);
    fleet.kill(2);
    let newest = origin.change("/x");
    fleet.purge_acknowledged(0, &url);
    fleet.begin(2);
    for _ in 0..5 {
        assert_eq!(version(&fleet.node(2).get(&url)), Some(newest));
    }
    fleet.wait_for_leases();
    fleet.warm(&url);
}

fn without_the_engine_purges_are_refused_and_then_everything_is_validated(engine: EngineKind) {
    let Some(mut engine) = engine.start("the loss of a fleet's engine") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    let url = origin.url("/x");
    fleet.warm(&url);
    engine.kill();
    let answer = fleet.purge(1, &url);
    assert_eq!(answer.status, 503);
    let status = answer.cache_status();
    assert!(status.ends_with("detail=purge-engine-away"), "{status}");
    until("the end of the leases", || {
        let statuses = fleet.get_all(&url);
        statuses.iter().all(|status| status.contains("detail=no-lease")).then_some(())
    });
    let answer = fleet.purge(1, &url);
    assert_eq!(answer.status, 503);
    let health = || fleet.node(0).admin("/healthz");
    until("the trouble", || health().body.contains("the fleet's engine gives").then_some(()));
    assert_eq!(health().status, 200, "the node still serves");
    // The alert FoxyFleetEngineAway uses this metric.
    assert_eq!(fleet.node(0).metric::<u64>("foxy_fleet_engine_up"), 0);
    engine.restart();
    fleet.wait_for_leases();
    until("the end of the trouble", || health().body.contains("\"troubles\":[]").then_some(()));
    fleet.warm(&url);
    let newest = origin.change("/x");
    fleet.purge_acknowledged(1, &url);
    assert_eq!(version(&fleet.node(0).get(&url)), Some(newest));
}

fn every_node_validates_after_entries_were_taken_out_of_the_log(engine: EngineKind) {
    let Some(engine) = engine.start("lost entries of a fleet's log") else { return };
    let (origin, fleet) = (Versions::start(), Fleet::start(&engine));
    // Each node owns some of these URLs.
    let urls: Vec<_> = (0..12).map(|number| origin.url(&format!("/{number}"))).collect();
    for url in &urls {
        fleet.purge(0, url);
        fleet.warm(url);
    }
    assert!(engine.remove(engine.tail()), "the last entry was there");
    let is_validated = |status: &String| {
        status.contains("fwd-status=304")
            && (status.contains("detail=broken-chain") || status.contains("detail=no-lease"))
    };
    for node in fleet.nodes.iter().flatten() {
        until("a new chain", || {
            (node.metric::<u64>("foxy_fleet_validations_total") > 0).then_some(())
        });
    }
    fleet.wait_for_leases();
    for url in &urls {
        let statuses = fleet.get_all(url);
        assert!(is_validated(&statuses[0]), "the owner answers all nodes: {statuses:?}");
        fleet.warm(url);
    }
}

fn foxy_names_the_setting_with_which_an_engine_loses_purges(kind: EngineKind) {
    let ground = Arc::new(Ground::loopback());
    let Some(engine) = kind.start_with(&ground, false) else { return };
    let mut fleet = Fleet::start(&engine);
    let node = fleet.nodes[0].as_mut().expect("a node");
    let part = match kind {
        EngineKind::Nats => "`sync_interval` is not `always`",
        EngineKind::Redis => "`appendfsync` is `everysec`, not `always`",
    };
    if !node.welcome.contains(part) {
        node.report_containing(part);
    }
}
