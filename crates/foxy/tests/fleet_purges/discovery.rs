//! Tests nodes that find each other by the records of a real DNS server.

use crate::engine::{EngineKind, on_each_engine};
use crate::fleet::{Fleet, NAMES};
use crate::members::{names, status};
use crate::name_server::NameServer;
use crate::versions::{Versions, version};
use foxy_testkit::wait::until;

/// The name of the SRV records.
const SERVICE: &str = "_fleet._tcp.fleet.test";

on_each_engine!(nodes_join_and_leave_by_srv_records_and_no_answer_is_stale);

/// Returns the options of dnsmasq for the SRV records of these nodes, and the addresses of all
/// nodes.
fn records(fleet: &Fleet, nodes: &[usize]) -> Vec<String> {
    let port = |node: usize| fleet.ground.peer(node).rsplit(':').next().expect("a port").to_owned();
    let service = |&node: &usize| {
        format!("--srv-host={SERVICE},{}.fleet.test,{},0,10", NAMES[node], port(node))
    };
    let address = |name: &str| format!("--host-record={name}.fleet.test,127.0.0.1");
    nodes.iter().map(service).chain(NAMES.map(address)).collect()
}

/// Waits until each of these nodes has these members.
fn wait_for_members(fleet: &Fleet, nodes: &[usize], members: &[&str]) {
    for &node in nodes {
        until("the members by DNS", || (names(fleet, node) == members).then_some(()));
    }
}

/// Changes each object, and purges it at a node. All running nodes must answer with the new object.
fn check(fleet: &Fleet, origin: &Versions, purger: usize) {
    for number in 0..12 {
        let path = format!("/{number}");
        let (url, newest) = (origin.url(&path), origin.change(&path));
        fleet.purge_acknowledged(purger, &url);
        for node in fleet.nodes.iter().flatten() {
            assert_eq!(version(&node.get(&url)), Some(newest), "{url}, purged at {purger}");
        }
        fleet.get_all(&url);
    }
}

fn nodes_join_and_leave_by_srv_records_and_no_answer_is_stale(engine: EngineKind) {
    let Some(engine) = engine.start("members by DNS") else { return };
    let Some(mut server) = NameServer::start(&[]) else { return };
    let origin = Versions::start();
    let more = ["--fleet-members-from", SERVICE, "--name-server", &server.address.to_string()];
    let mut fleet = Fleet::unlisted(Some(engine.url()), &more);
    server.restart(&records(&fleet, &[0, 1]));
    [0, 1].into_iter().for_each(|node| fleet.begin(node));
    fleet.wait_for_leases();
    wait_for_members(&fleet, &[0, 1], &["a", "b"]);
    (0..12).for_each(|number| fleet.warm(&origin.url(&format!("/{number}"))));
    let asked = |node| fleet.node(node).metric::<u64>("foxy_proxy_fleet_requests_total");
    assert!(asked(0) + asked(1) > 0, "the nodes ask each other");

    // This node starts before its record appears. It is a member of its own list.
    fleet.begin(2);
    fleet.wait_for_leases();
    wait_for_members(&fleet, &[2], &["a", "b", "c"]);
    check(&fleet, &origin, 2);
    server.restart(&records(&fleet, &[0, 1, 2]));
    wait_for_members(&fleet, &[0, 1, 2], &["a", "b", "c"]);
    check(&fleet, &origin, 0);

    // A name server that fails changes nothing, and neither does a name server without records.
    server.kill();
    let fails = |node: usize| {
        let fails = || status(&fleet, node)["members_from"]["failure"].is_string().then_some(());
        until("a failed look-up", fails);
        assert_eq!(fleet.node(node).metric::<u64>("foxy_fleet_dns_up"), 0);
        assert_eq!(names(&fleet, node), ["a", "b", "c"]);
    };
    (0..3).for_each(fails);
    check(&fleet, &origin, 1);
    server.restart(&[]);
    (0..3).for_each(fails);

    // The third node still serves with its lease, without a record. Purges wait for it.
    server.restart(&records(&fleet, &[0, 1]));
    wait_for_members(&fleet, &[0, 1], &["a", "b"]);
    check(&fleet, &origin, 0);
    fleet.kill(2);
    check(&fleet, &origin, 1);
    (0..12).for_each(|number| fleet.warm(&origin.url(&format!("/{number}"))));
}

/// Without an answer of DNS, a node starts alone. Its certificate has its address as a name.
#[test]
fn nodes_find_each_other_by_addresses_after_they_started_alone() {
    let Some(mut server) = NameServer::start(&[]) else { return };
    let port = foxy_testkit::ports::free_ports(1);
    let records = format!("fleet.test:{port}");
    let more = ["--fleet-members-from", &records, "--name-server", &server.address.to_string()];
    let mut fleet = Fleet::at_addresses(port, &more);
    (0..2).for_each(|node| fleet.begin(node));
    assert_eq!(names(&fleet, 0), ["127-0-0-2"]);
    server.restart(
        &["--host-record=fleet.test,127.0.0.2", "--host-record=fleet.test,127.0.0.3"]
            .map(str::to_owned),
    );
    wait_for_members(&fleet, &[0, 1], &["127-0-0-2", "127-0-0-3"]);
    let origin = Versions::start();
    (0..12).for_each(|number| fleet.warm(&origin.url(&format!("/{number}"))));
    let asked = |node| fleet.node(node).metric::<u64>("foxy_proxy_fleet_requests_total");
    assert!(asked(0) + asked(1) > 0, "the nodes ask each other");
}
