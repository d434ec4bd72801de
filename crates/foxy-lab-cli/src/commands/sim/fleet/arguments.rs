//! The arguments of `foxy sim --fleet`.

use super::super::several;
use crate::arguments::{count, option, output, path, positive, switch};
use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_lab::simulation::fleet::plan::{FleetPlan, FleetShare, Outage, Placement};
use foxy_schemes::PolicyName;
use std::time::Duration;

pub fn arguments() -> Vec<Arg> {
    let of_fleet = |arg: Arg| arg.requires("fleet").help_heading("Fleets");
    let all = [nodes(), changes(), output_files()].into_iter().flatten();
    let fleet = switch(
        "fleet",
        "Simulate a fleet of nodes, each with a cache of --cache-size [policy: webcosm]",
    );
    let fleet = fleet.help_heading("Fleets").conflicts_with_all(["levels", "operations"]);
    std::iter::once(fleet).chain(all.map(of_fleet)).collect()
}

fn nodes() -> Vec<Arg> {
    let number = |name, help| option(name, "N", help).value_parser(count());
    vec![
        several("nodes", "N", "Numbers of nodes")
            .default_value("3")
            .value_parser(value_parser!(u32).range(1..=100_000)),
        several("placement", "NAME", "Rules for storing: owner, replicate or two-tiers")
            .default_value("owner,replicate,two-tiers")
            .value_parser(value_parser!(Placement)),
        option("tier", "SIZE", "two-tiers: cache of each node for the keys of other owners")
            .default_value("64M")
            .value_parser(value_parser!(ByteSize)),
        option("hot-rate", "N", "owner: requests per second at which other nodes keep copies")
            .default_value("50")
            .value_parser(value_parser!(u32).range(1..)),
        option("copy-life", "SECONDS", "owner: time for which other nodes keep copies")
            .default_value("60")
            .value_parser(seconds()),
        number("objects", "Number of objects of a workload with objects, such as zipf"),
        switch("warm-up", "Begin with the warm-up of the workload, as `foxy load` does"),
        option("rate", "N", "Requests per second of all clients [default: times of the trace]")
            .value_parser(positive),
        option("arrival", "WORD", "Node that a client asks: random, or always the same")
            .default_value("random")
            .value_parser(["random", "client"]),
        option("entries", "N", "Number of nodes that clients ask [default: all]")
            .value_parser(value_parser!(u32).range(1..)),
    ]
}

fn changes() -> Vec<Arg> {
    let time = |name, value, help| {
        option(name, "SECONDS", help).default_value(value).value_parser(seconds())
    };
    vec![
        option("churn", "N", "Times per hour that a new, empty node replaces each node")
            .default_value("0")
            .value_parser(|text: &str| match text.parse::<f64>() {
                Ok(churn) if (0.0..=3600.0).contains(&churn) => Ok(churn),
                _ => Err(format!("{text:?} is not a number from 0 to 3600")),
            }),
        several("outage", "NODE@FROM-TO", "Lose a node between two times, in seconds")
            .value_parser(value_parser!(Outage)),
        time("ramp", "60", "Time in which a joining node takes its keys, as `fleet.ramp`"),
        time("former-owner", "600", "Time to ask former owners, as `fleet.former-owner`"),
        option("window", "SECONDS", "Also report the hit ratio of each interval of this length")
            .value_parser(seconds()),
    ]
}

fn output_files() -> Vec<Arg> {
    vec![
        option("part", "I/N", "Count only the I-th of N parts of the nodes")
            .default_value("1/1")
            .value_parser(value_parser!(FleetShare)),
        output("tallies", "Write the counts to this file, for a later --merge"),
        path(
            "merge",
            "FILES",
            "Report the sum of the --tallies of all parts, without a simulation",
        )
        .num_args(1..)
        .conflicts_with_all(["part", "tallies", "requests"]),
    ]
}

fn seconds() -> ValueParser {
    ValueParser::from(|text: &str| {
        let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| *time <= Duration::from_secs(1_000_000))
            .ok_or_else(|| format!("{text:?} is not a number of seconds from 0 to 1000000"))
    })
}

/// Returns the plan that the arguments describe, with `nodes` nodes and caches of `capacity` bytes.
pub fn plan(
    matches: &ArgMatches,
    placement: Placement,
    nodes: u32,
    policy: PolicyName,
    capacity: u64,
    seed: u64,
) -> Result<FleetPlan, Failure> {
    let entries = matches.get_one::<u32>("entries").copied().unwrap_or(nodes);
    let outages: Vec<Outage> = matches.get_many("outage").into_iter().flatten().copied().collect();
    let size = |name: &str| matches.get_one::<ByteSize>(name).expect("has a default").0;
    let time = |name: &str| *matches.get_one::<Duration>(name).expect("has a default");
    let plan = FleetPlan {
        placement,
        nodes,
        entries,
        is_by_client: matches.get_one::<String>("arrival").is_some_and(|word| word == "client"),
        policy,
        object_limit: size("object-limit"),
        capacity,
        tier: size("tier"),
        hot_rate: *matches.get_one("hot-rate").expect("has a default"),
        copy_life: time("copy-life"),
        rate: matches.get_one("rate").copied(),
        churn: *matches.get_one("churn").expect("has a default"),
        ramp: time("ramp"),
        former_owner: time("former-owner"),
        outages,
        window: matches.get_one("window").copied().filter(|window: &Duration| !window.is_zero()),
        seed,
        share: *matches.get_one("part").expect("has a default"),
    };
    unusable(&plan).map_or(Ok(plan), |why| Err(Failure::Unusable(why)))
}

fn unusable(plan: &FleetPlan) -> Option<String> {
    let (nodes, entries) = (plan.nodes, plan.entries);
    if entries > nodes {
        return Some(format!("--entries {entries}: the fleet has only {nodes} nodes"));
    }
    if let Some(outage) = plan.outages.iter().find(|outage| outage.seat >= nodes) {
        return Some(format!("--outage {}@…: the fleet has {nodes} nodes", outage.seat + 1));
    }
    let is_lost = |seat| plan.outages.iter().any(|outage| outage.seat == seat);
    (0..entries)
        .all(is_lost)
        .then(|| "--outage: at least one node that clients ask must have no outage".into())
}
