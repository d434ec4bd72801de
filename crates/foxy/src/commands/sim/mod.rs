//! `foxy sim`: what caches of some sizes and policies would hit in a trace.

mod hits;
mod input;

use crate::failure::Failure;
use crate::lab::records;
use crate::settings::machine::Machine;
use crate::terminal;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_lab::sim::policies::CacheSize;
use foxy_store::policy::POLICIES;
use foxy_workload::trace::Format;
use foxy_workload::trace::synthetic::MODELS;
use std::path::PathBuf;

/// Its arguments.
pub fn command() -> Command {
    Command::new("sim")
        .about("Send a trace through caches of some policies and sizes: hit ratios, look-ups a second")
        .after_help(names())
        .args(fed_with())
        .group(ArgGroup::new("input").args(["trace", "workload"]).required(true))
        .args(caches())
}

fn names() -> String {
    let mut text = String::from("Workloads, all synthetic:\n");
    for model in MODELS {
        text.push_str(&format!("  {}\n", model.name));
    }
    text.push_str("\nPolicies:\n");
    for row in POLICIES {
        text.push_str(&format!("  {:<11} {}\n", row.text, row.summary));
    }
    text.push_str("  belady      an oracle: whoever is asked for again latest goes");
    text
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option that takes several values, after commas, after spaces or given again.
fn several(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append).num_args(1..).value_delimiter(',')
}

fn fed_with() -> Vec<Arg> {
    vec![
        option("trace", "FILE", "A log of gets, packed with gzip or not")
            .value_parser(value_parser!(PathBuf)),
        option(
            "format",
            "FORMAT",
            "How the log is written; guessed if not given: squid, common, combined, csv or parquet",
        )
        .requires("trace")
        .value_parser(value_parser!(Format)),
        option("workload", "NAME", "A synthetic workload instead of a log"),
        option("requests", "N", "Only the first N gets; 1058206 of a workload if not given")
            .value_parser(value_parser!(u64).range(1..)),
        option("scale", "F", "Multiplies the number of gets").default_value("1").value_parser(scale),
        several("seed", "N", "Seeds of a workload; results are means over them")
            .default_value("1")
            .value_parser(value_parser!(u64)),
    ]
}

fn caches() -> Vec<Arg> {
    vec![
        several("policy", "NAME", "What replaces; all policies if not given"),
        several(
            "cache-size",
            "SIZES",
            "Bytes such as 512M, percent of the trace's unique bytes such as 0.5%, or infinite",
        )
        .default_value("0.1%,1%,5%,10%,30%,infinite")
        .value_parser(value_parser!(CacheSize)),
        option("object-limit", "SIZE", "The largest object that the policy lru-th stores")
            .default_value("256K")
            .value_parser(value_parser!(ByteSize)),
        option("json", "FILE", "Write run records, one JSON object a line")
            .value_parser(value_parser!(PathBuf)),
    ]
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= 1000.0);
    scale.ok_or_else(|| "a scale is a number above 0 and up to 1000, such as 0.1".into())
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let scale = *matches.get_one("scale").expect("has a default");
    let seeds: Vec<u64> = matches.get_many("seed").into_iter().flatten().copied().collect();
    let threads = Machine::look().cores;
    let (input, about) = input::open(matches, scale)?;
    let (table, found) = hits::run(matches, &input, &seeds, threads)?;
    terminal::print(&format!("{about}\n\n{}", table.trim_end()));
    if let Some(path) = matches.get_one::<PathBuf>("json") {
        let setup = foxy_report::Setup { scale, ..records::setup(seeds[0]) };
        records::write(path, setup, found, true)?;
    }
    Ok(())
}
