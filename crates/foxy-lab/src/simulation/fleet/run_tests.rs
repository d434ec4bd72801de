//! Tests the hits, loads and parts of simulated fleets.

use super::*;
use crate::simulation::fleet::generated;
use crate::simulation::fleet::plan::FleetShare;
use foxy_schemes::PolicyName;
use foxy_workload::Workload;
use std::time::Duration;

fn zipf(objects: u64, gets: usize, is_warm: bool) -> Trace {
    let workload = generated::with_objects(Workload::find("zipf").expect("named"), objects);
    generated::trace(&workload, gets, is_warm, 1).expect("objects")
}

fn plan(placement: Placement, nodes: u32) -> FleetPlan {
    FleetPlan {
        placement,
        nodes,
        entries: nodes,
        is_by_client: false,
        policy: PolicyName::Webcosm,
        object_limit: u64::MAX,
        capacity: 2 << 20,
        tier: 256 << 10,
        hot_rate: 50,
        copy_life: Duration::from_secs(60),
        rate: Some(1000.0),
        churn: 0.0,
        ramp: Duration::from_secs(5),
        former_owner: Duration::from_secs(10),
        outages: Vec::new(),
        window: Some(Duration::from_secs(5)),
        seed: 1,
        share: FleetShare::WHOLE,
    }
}

fn simulated(plan: &FleetPlan, trace: &Trace) -> FleetTally {
    run(plan, trace, &AtomicU64::new(0))
}

fn value(tally: &FleetTally, name: &str) -> f64 {
    let measures = tally.measures();
    let found = measures.iter().find(|measure| measure.0 == name);
    found.unwrap_or_else(|| panic!("no {name} in {measures:?}")).1
}

#[test]
fn parts_add_up_to_exactly_the_whole_run() {
    let trace = zipf(3000, 12_000, false);
    for placement in Placement::ALL {
        for is_by_client in [false, true] {
            let plan = FleetPlan {
                is_by_client,
                churn: 200.0,
                outages: vec!["2@2-7".parse().expect("an outage")],
                ..plan(placement, 7)
            };
            let whole = simulated(&plan, &trace);
            let mut sum = FleetTally::new(plan.nodes);
            for number in 1..=3 {
                let share = format!("{number}/3").parse().expect("a share");
                let part = simulated(&FleetPlan { share, ..plan.clone() }, &trace);
                assert!(part.clients.requests < whole.clients.requests);
                sum.merge(&part);
            }
            assert_eq!(sum, whole, "{placement}");
            assert_eq!(whole.clients.requests, 12_000);
            assert_eq!(whole.at_former.requests > 0, placement != Placement::Replicate);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let trace = zipf(2000, 10_000, false);
    let plan = FleetPlan { churn: 100.0, ..plan(Placement::Owner, 5) };
    assert_eq!(simulated(&plan, &trace), simulated(&plan, &trace));
    assert_ne!(simulated(&plan, &trace), simulated(&FleetPlan { seed: 2, ..plan }, &trace));
}

#[test]
fn owners_fetch_each_object_once_and_lone_nodes_each_fetch_it() {
    let trace = zipf(1000, 50_000, true);
    let large = |placement| FleetPlan { capacity: 1 << 30, ..plan(placement, 4) };
    let owner = simulated(&large(Placement::Owner), &trace);
    assert_eq!(owner.missed.requests, 1000);
    assert_eq!(value(&owner, "origin_fetches"), 1000.0);
    let share = value(&owner, "largest_store_share");
    assert!((0.25..0.3).contains(&share), "{share}");
    let alone = simulated(&large(Placement::Replicate), &trace);
    assert!((3500..=4000).contains(&alone.missed.requests), "{:?}", alone.missed);
    assert_eq!(alone.asked.requests, 0);
    let tiers = simulated(&large(Placement::TwoTiers), &trace);
    assert_eq!(tiers.missed.requests, 1000);
    assert!(tiers.asked.requests < owner.asked.requests, "{:?}", tiers.asked);
}

#[test]
fn copies_of_hot_responses_spread_the_load() {
    let mut trace = zipf(2000, 60_000, false);
    trace.gets.iter_mut().step_by(2).for_each(|get| get.url = 7);
    let with = simulated(&plan(Placement::Owner, 5), &trace);
    let without = simulated(&FleetPlan { hot_rate: u32::MAX, ..plan(Placement::Owner, 5) }, &trace);
    assert!(value(&without, "largest_load") > 1.8, "{:?}", without.load);
    assert!(value(&with, "largest_load") < 1.25, "{:?}", with.load);
    assert!(with.copies >= 4 && without.copies == 0, "{}", with.copies);
}

#[test]
fn the_loss_of_a_node_costs_only_hits_of_its_keys() {
    let trace = zipf(1000, 60_000, true);
    let outages = vec!["3@20-40".parse().expect("an outage")];
    let plan = FleetPlan { ramp: Duration::ZERO, capacity: 1 << 30, ..plan(Placement::Owner, 3) };
    let whole = simulated(&plan, &trace);
    assert_eq!(whole.missed.requests, 1000);
    let tally = simulated(&FleetPlan { outages, ..plan }, &trace);
    let extra = tally.missed.requests - 1000;
    assert!((200..=400).contains(&extra), "{extra} of about 333 keys are fetched again");
    let lost = value(&tally, "hit_ratio_window_5");
    assert!(lost < 0.99 && value(&tally, "hit_ratio_window_9") == 1.0, "{:?}", tally.windows);
}
