//! `foxy sim`: simulates a trace. It reports hit ratios by cache size and policy, the disk
//! operations of storage schemes, and the caches of a fleet.

mod fleet;
mod hits;
mod input;
mod place;
mod rows;
mod schemes;
mod stream;

use crate::arguments::{count, option, path};
use crate::experiment::{Conclusion, Experiment, Flag, flags};
use crate::logs;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::machine::Machine;
use foxy_lab::simulation::caches::policies::CacheSize;
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{SCHEMES, TUNING};
use foxy_workload::trace::synthetic::MODELS;
use std::fmt::Display;
use std::str::FromStr;

/// The arguments that name the input. Exactly one of them must be given.
const INPUTS: [&str; 4] = ["trace", "workload", "operations", "merge"];

pub fn command() -> Command {
    Command::new("sim")
        .about(
            "Simulate a trace: its hits with cache policies, or its disk operations with storage schemes",
        )
        .long_about(ABOUT)
        .after_help(names())
        .args(fed_with())
        .group(ArgGroup::new("input").args(INPUTS).required(true))
        .group(ArgGroup::new("levels").args(["scheme", "save-operations"]).multiple(true))
        .args(caches())
        .args(storage())
        .args(fleet::arguments())
        .args(flags([Flag::Json]))
}

const ABOUT: &str = "\
Without --scheme the command sends a trace through a cache of every --policy and every \
--cache-size, and prints object and byte hit ratios. A repeated request is a hit even if the \
object's size has changed. Sizes in percent refer to the bytes of all objects, each counted once \
with its last size.

With --scheme the command sends the trace through a memory cache (LRU) and a disk cache \
(--policy). The production code of each scheme then performs the reads, writes and deletes of \
the disk cache on an empty store. aufs and diskd have up to 32 operations in flight, schemes \
that batch reads up to 32 reads, and all others one operation. The store is in memory (counts \
only), on a model of the paper's disk in virtual time, or in a folder of a real disk. Model, \
store and limits are the same as in `foxy figure`, except for the mapping of ufs \
(--ufs-mapping). If a store loses or refuses more than a twentieth of its work, the run has \
failed. Its row then gives the reason instead of a rate.

With --fleet the command sends the trace through the caches of a fleet's nodes. The proxy's \
functions choose the owner of each key, and the hot keys.

  foxy sim --trace access.log
  foxy sim --trace access.log --fleet --nodes 3,10,100 --cache-size 1G
  foxy sim --workload table1 --scale 0.1 --scheme ufs,stream,lazy-reads-loc --device mechanical --seed 1,2,3
  foxy sim --trace access.log --memory 64M --disk 1G --scheme all --device /mnt/disk";

fn names() -> String {
    let mut text = String::from("Workloads, all synthetic:\n");
    for model in MODELS {
        text.push_str(&format!("  {}\n", model.name));
    }
    text.push_str("\nPolicies:\n");
    for row in POLICIES {
        text.push_str(&format!("  {:<11} {}\n", row.text, row.summary));
    }
    text.push_str(
        "  belady      an oracle: evicts the object whose next request is latest\n\nSchemes:\n",
    );
    for row in SCHEMES {
        text.push_str(&format!("  {:<17} {}\n", row.text, row.summary));
    }
    text.push_str("\nSettings of schemes (--set), with their defaults in brackets:\n");
    for row in TUNING {
        text.push_str(&format!("  {:<17} {}\n{:20}{}\n", row.name, row.values, "", row.summary));
    }
    text.push_str(
        "\nExit codes: 0 done (the row of a failed run gives the reason), 2 unusable arguments or input, 3 no run succeeded",
    );
    text
}

fn several(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append).num_args(1..).value_delimiter(',')
}

fn fed_with() -> Vec<Arg> {
    vec![
        path("trace", "FILE", "Log file of requests, plain or gzip; - reads standard input"),
        logs::format().requires("trace"),
        option("workload", "NAME", "Synthetic workload to use instead of a log file"),
        path(
            "operations",
            "FILE",
            "File of URL operations that --save-operations wrote, to use instead of requests",
        )
        .requires("scheme")
        .conflicts_with_all(["requests", "memory", "disk", "save-operations", "policy"]),
        option(
            "requests",
            "N",
            "Number of requests [default: all of a log, 1058206 of a workload]",
        )
        .value_parser(count()),
        option(
            "scale",
            "F",
            "Factor for the number of requests, --memory, --disk and the size of the modelled disk",
        )
        .default_value("1")
        .value_parser(scale),
        several("seed", "N", "Seeds of workload and disk; the results are means over all seeds")
            .default_value("1")
            .value_parser(value_parser!(u64)),
    ]
}

fn caches() -> Vec<Arg> {
    vec![
        several(
            "policy",
            "NAME",
            "Replacement policies, or all; with --scheme, the policy of the disk cache [default: \
             all; with --scheme lru]",
        ),
        several(
            "cache-size",
            "SIZES",
            "Cache sizes: bytes such as 512M, percent of the bytes of all objects such as 0.5%, \
             or infinite",
        )
        .default_value("0.1%,1%,5%,10%,30%,infinite")
        .conflicts_with_all(["scheme", "save-operations", "operations"])
        .value_parser(value_parser!(CacheSize)),
        option("object-limit", "SIZE", "Maximum object size of the policy lru-th")
            .default_value("256K")
            .value_parser(value_parser!(ByteSize)),
    ]
}

fn storage() -> Vec<Arg> {
    vec![
        several("scheme", "NAME", "Storage schemes of the disk cache, or all for every scheme"),
        option(
            "device",
            "DEVICE",
            "Device under the schemes: memory, null, mechanical, or an existing folder",
        )
        .default_value("memory")
        .requires("scheme"),
        option(
            "read-ahead",
            "SIZE",
            "Bytes that the file system of --device mechanical reads ahead in sequential reads; 0 \
             turns this off [default: 56K]",
        )
        .requires("scheme")
        .value_parser(value_parser!(ByteSize)),
        option("memory", "SIZE", "Size of the memory cache in front of the disk cache")
            .default_value("512M")
            .requires("levels")
            .value_parser(value_parser!(ByteSize)),
        option("disk", "SIZE", "Size of the disk cache")
            .default_value("2G")
            .requires("levels")
            .value_parser(value_parser!(ByteSize)),
        option(
            "ufs-mapping",
            "WORD",
            "Distribution of files over folders in ufs, aufs and diskd, as the setting \
             ufs.mapping; Table 2 of the paper uses round-robin",
        )
        .default_value("consecutive")
        .requires("scheme")
        .value_parser(["consecutive", "round-robin"]),
        several(
            "utilization",
            "PERCENT",
            "Highest share of slots in use, in percent, for schemes with one file",
        )
        .default_value("75")
        .requires("scheme")
        .value_parser(utilization),
        option(
            "prefetch",
            "SIZE",
            "Most bytes that a read of stream-loc, lazy-reads-loc or squidmla prefetches: the next \
             records of the same origin server; 0 turns this off",
        )
        .default_value("0")
        .requires("scheme")
        .value_parser(value_parser!(ByteSize)),
        several(
            "set",
            "NAME=VALUE",
            "Setting of the schemes, such as locality-buffers=32; the settings are listed below",
        )
        .requires("scheme"),
        path(
            "save-operations",
            "FILE",
            "Write the URL operations to this file, for a later run with --operations",
        ),
    ]
}

fn utilization(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches(['%', ' ']).parse().ok();
    let percent = percent.filter(|percent: &f64| (1.0..=99.0).contains(percent));
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "a utilization is a percentage from 1 to 99".into())
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= 1000.0);
    scale.ok_or_else(|| "a scale is a number above 0 and up to 1000, such as 0.1".into())
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let scale = *matches.get_one("scale").expect("has a default");
    let seeds: Vec<u64> = matches.get_many("seed").into_iter().flatten().copied().collect();
    let has_requests = !matches.contains_id("operations") && !matches.contains_id("merge");
    let opened = if has_requests { Some(input::open(matches, scale)?) } else { None };
    let input = opened.as_ref().map(|(input, _)| input);
    let about = opened.as_ref().map_or(String::new(), |(_, about)| format!("{about}\n"));
    let (text, found, any) = match input {
        input if matches.get_flag("fleet") => {
            let (table, found) = fleet::run(matches, input, &seeds, Machine::look().cores)?;
            (format!("\n{table}"), found, true)
        }
        Some(input)
            if !matches.contains_id("scheme") && !matches.contains_id("save-operations") =>
        {
            let (table, found) = hits::run(matches, input, &seeds, Machine::look().cores)?;
            (format!("\n{table}"), found, true)
        }
        input => schemes::run(matches, input, scale, &seeds)?,
    };
    let conclusion = Conclusion { text: about + &text, records: found, ..Conclusion::default() };
    Experiment::new("sim", matches).scaled(scale).finish(conclusion)?;
    if any {
        Ok(())
    } else {
        Err(Failure::Failed("sim: no run succeeded; the rows give the reasons".into()))
    }
}

/// Returns the values of `--policy`.
fn policy_names(matches: &ArgMatches) -> Vec<&str> {
    matches.get_many::<String>("policy").into_iter().flatten().map(String::as_str).collect()
}

fn parsed_policies<P: FromStr<Err: Display>>(names: &[&str]) -> Result<Vec<P>, Failure> {
    let parse = |name: &&str| {
        name.parse().map_err(|error| Failure::Unusable(format!("--policy {name}: {error}")))
    };
    names.iter().map(parse).collect()
}
