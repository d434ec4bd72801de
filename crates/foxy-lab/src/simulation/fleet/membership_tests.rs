//! Tests owners and former owners of keys while nodes join and leave.

use super::*;
use crate::simulation::fleet::generated;
use crate::simulation::fleet::plan::{FleetShare, Placement};
use foxy_schemes::PolicyName;
use foxy_workload::Workload;

const URLS: u32 = 300;

fn trace() -> Trace {
    let workload = generated::with_objects(Workload::find("zipf").expect("named"), URLS.into());
    generated::trace(&workload, 0, true, 1).expect("objects")
}

fn plan(nodes: u32) -> FleetPlan {
    FleetPlan {
        placement: Placement::Owner,
        nodes,
        entries: nodes,
        is_by_client: false,
        policy: PolicyName::Lru,
        object_limit: u64::MAX,
        capacity: u64::MAX,
        tier: 0,
        hot_rate: u32::MAX,
        copy_life: Duration::ZERO,
        rate: Some(1.0),
        churn: 0.0,
        ramp: Duration::from_secs(60),
        former_owner: Duration::from_secs(600),
        outages: Vec::new(),
        window: None,
        seed: 1,
        share: FleetShare::WHOLE,
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn owners_after_changes_are_the_best_of_all_nodes() {
    let outage = "2@500-900".parse().expect("an outage");
    let plan = FleetPlan { churn: 3.0, outages: vec![outage], ..plan(7) };
    let trace = trace();
    let mut membership = Membership::new(&plan, &trace, at(7200));
    let mut moves = 0;
    for minute in 0..120 {
        membership.advance(at(minute * 60 + 3));
        for url in (0..URLS).filter(|url| u64::from(url % 5) != minute % 5) {
            let parts: Vec<u32> = membership.nodes.iter().map(|node| node.part).collect();
            let before = membership.owners[url as usize].map(|(owner, _)| owner);
            let expected = membership.best(url, parts.into_iter().enumerate())[0];
            assert_eq!(membership.owner(url), expected, "url {url}, minute {minute}");
            moves += usize::from(before.is_some() && before != expected);
        }
    }
    assert!(membership.len() > 20, "{} nodes", membership.len());
    assert!(moves > 500, "{moves} moves");
}

#[test]
fn a_node_that_comes_back_asks_the_owner_of_the_meantime() {
    let outage = "3@10-20".parse().expect("an outage");
    let plan = FleetPlan { ramp: Duration::ZERO, outages: vec![outage], ..plan(3) };
    let trace = trace();
    let mut membership = Membership::new(&plan, &trace, at(9999));
    let url = (0..URLS).find(|url| membership.owner(*url) == Some(2)).expect("a key of the third");
    assert_eq!(membership.former_owner(url, 2, at(0)), None);
    membership.advance(at(15));
    let meanwhile = membership.owner(url).expect("an owner");
    assert_ne!(meanwhile, 2);
    assert_eq!(membership.former_owner(url, meanwhile, at(15)), None, "the former owner is lost");
    assert_eq!(membership.reached(2), Some(0));
    membership.advance(at(25));
    assert_eq!((membership.owner(url), membership.reached(2)), (Some(2), Some(2)));
    assert_eq!(membership.former_owner(url, 2, at(619)), Some(meanwhile));
    assert_eq!(membership.former_owner(url, 2, at(620)), None, "after ten minutes");
}

#[test]
fn a_replaced_node_answers_new_owners_until_it_ends() {
    let plan = FleetPlan { churn: 1.0, ..plan(4) };
    let trace = trace();
    let mut membership = Membership::new(&plan, &trace, at(3600));
    let first = *membership.changes.first().expect("a change");
    let url = (0..URLS).find(|url| membership.owner(*url) == Some(first.node));
    let url = url.expect("a key of the replaced node");
    assert!(membership.advance(first.at).is_empty());
    let owner = membership.owner(url).expect("an owner");
    assert_ne!(owner, first.node);
    assert_eq!(membership.former_owner(url, owner, first.at), Some(first.node));
    let gone = membership.advance(first.at + Duration::from_secs(600));
    assert_eq!(gone.first(), Some(&first.node));
}
