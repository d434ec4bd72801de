//! Tests nodes whose settings or certificates change.

use crate::engine::EngineKind;
use crate::fleet::Fleet;
use crate::support::commands::foxy;
use crate::versions::Versions;
use foxy_testkit::wait::until;

#[test]
fn a_node_with_an_old_configuration_is_shown_and_reported() {
    let Some(engine) = EngineKind::Redis.start("a node of a fleet with an old configuration")
    else {
        return;
    };
    let mut fleet = Fleet::start(&engine);
    fleet.kill(1);
    fleet.begin_with(1, Some(0));
    until("the difference", || fleet.fact(1, "differs").then_some(()));
    assert!(!fleet.fact(0, "differs") && !fleet.fact(2, "differs"));
    let metrics = fleet.node(0).admin("/metrics").body;
    for line in
        ["foxy_fleet_node_differs{node=\"b\"} 1\n", "foxy_fleet_node_differs{node=\"c\"} 0\n"]
    {
        assert!(metrics.contains(line), "{metrics}");
    }
    let admin = fleet.node(0).admin.to_string();
    let (_, out, err) = foxy(&["fleet", "status", "--admin", &admin]);
    let line = out.lines().find(|line| line.starts_with("b "));
    assert!(line.is_some_and(|line| line.contains(" differs ")), "{out}{err}");
    let node = fleet.nodes[0].as_mut().expect("a node");
    node.report_containing("node `b` of the fleet has other members, weights, rules or origins");
    fleet.kill(1);
    fleet.begin(1);
    until("equal settings", || (!fleet.fact(1, "differs")).then_some(()));
}

#[test]
fn new_certificates_are_in_use_after_a_reload() {
    let Some(engine) = EngineKind::Redis.start("new certificates of a fleet") else { return };
    let (origin, mut fleet) = (Versions::start(), Fleet::start(&engine));
    let urls: Vec<_> = (0..12).map(|number| origin.url(&format!("/{number}"))).collect();
    urls.iter().for_each(|url| fleet.warm(url));
    fleet.write_new_certificates();
    for number in [0, 1] {
        let node = fleet.nodes[number].as_mut().expect("a node");
        node.signal("HUP");
        node.report_containing("read the certificates again (SIGHUP, for the fleet)");
    }
    // The third node starts with the new authority, which did not sign the old certificates.
    fleet.kill(2);
    until("a lost node", || fleet.fact(2, "is_lost").then_some(()));
    fleet.begin(2);
    until("the node's return", || (!fleet.fact(2, "is_lost")).then_some(()));
    urls.iter().for_each(|url| fleet.warm(url));
    fleet.spoil_certificate(0);
    let node = fleet.nodes[0].as_mut().expect("a node");
    node.signal("HUP");
    node.report_containing("continues with the old certificates (SIGHUP, for the fleet)");
    urls.iter().for_each(|url| fleet.warm(url));
}
