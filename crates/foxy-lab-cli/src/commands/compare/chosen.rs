//! Selects and checks the proxies and workloads of a comparison before the first trial.

use super::scenario::{SCENARIOS, Scenario};
use super::wisconsin;
use crate::peers::{Holding, Peer};
use crate::run::{self, allow_connections};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_report::Measurable;
use foxy_report::comparison::{AT_RATE, WITH_RATIOS};
use std::any::Any;
use std::path::PathBuf;

/// Returns an error if a proxy, workload or rate is given twice, because the records of the two
/// measurements would have equal names.
pub fn named_once(matches: &ArgMatches) -> Result<(), Failure> {
    let proxy = twice::<String>(matches, "proxy").cloned();
    let workload = twice::<String>(matches, "workload").map(|name| format!("--workload {name}"));
    let rate = twice::<u32>(matches, "rate").map(|rate| format!("--rate {rate}"));
    match proxy.or(workload).or(rate) {
        None => Ok(()),
        Some(what) => Err(Failure::Unusable(format!(
            "{what}: named twice, but a comparison has one row for each name; name it once, or \
             repeat its trials with --repeats"
        ))),
    }
}

fn twice<'a, T: Any + Clone + PartialEq + Send + Sync>(
    matches: &'a ArgMatches,
    argument: &str,
) -> Option<&'a T> {
    let all: Vec<&T> = matches.get_many(argument).into_iter().flatten().collect();
    (0..all.len()).find(|&at| all[..at].contains(&all[at])).map(|at| all[at])
}

pub fn scenarios(matches: &ArgMatches) -> Result<Vec<Scenario>, Failure> {
    let Some(names) = matches.get_many::<String>("workload") else {
        return Ok(SCENARIOS.into_iter().filter(Scenario::is_at_full_speed).collect());
    };
    let find = |name: &String| {
        Scenario::find(name).ok_or_else(|| {
            let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            Failure::Unusable(format!(
                "--workload {name}: this workload cannot be compared; the workloads are {}",
                known.join(", ")
            ))
        })
    };
    names.map(find).collect()
}

pub fn provide_descriptors(
    scenarios: &[Scenario],
    quick: bool,
    clients: usize,
) -> Result<(), Failure> {
    scenarios.iter().try_for_each(|scenario| {
        let (connections, what) = scenario.connections(quick, clients);
        allow_connections(2 * connections, &what)
    })
}

pub fn measurable(
    matches: &ArgMatches,
    scenarios: &[Scenario],
    peers: &[(Peer, PathBuf)],
) -> Vec<Measurable> {
    let quick = matches.get_flag("quick");
    let rates: Vec<u32> = matches.get_many("rate").into_iter().flatten().copied().collect();
    let names: Vec<&str> = peers.iter().map(|(peer, _)| peer.name).collect();
    let mut all = Vec::new();
    for scenario in scenarios {
        for (place, name) in names.iter().enumerate() {
            let others: &[&str] = if place == 0 { &names[1..] } else { &[] };
            let with_ratios = |measurable: Measurable| {
                let ratios = measurable.and(&["{measure}_ratio_to_{other}"]);
                ratios.choosing("measure", WITH_RATIOS).choosing("other", others.iter().copied())
            };
            let Some(model) = scenario.workload(quick).map(|workload| workload.model) else {
                all.push(with_ratios(wisconsin::measurable(name)).under(scenario.name));
                continue;
            };
            let mut own = run::measurable(&model, name)
                .and(&["origin_requests_per_request", "resident_bytes"]);
            if scenario.holding == Holding::Disk {
                own = own.and(&["device_reads_per_hit", "disk_bytes_per_cached_byte"]);
            }
            if scenario.system_calls {
                own = own.and(&["system_calls_per_request"]);
            }
            if scenario.newest {
                own = own.and(&["resident_after_fill", "size_on_disk_bytes"]);
            }
            all.push(with_ratios(own).under(scenario.name));
            all.extend(rates.iter().map(|rate| {
                with_ratios(run::measurable(&model, name))
                    .under(&format!("{}{AT_RATE}{rate}", scenario.name))
            }));
        }
    }
    all
}
