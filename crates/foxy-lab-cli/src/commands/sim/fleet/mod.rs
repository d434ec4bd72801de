//! `foxy sim --fleet`: simulates the caches of a fleet's nodes.

mod arguments;
mod tallies;

pub use arguments::arguments;

use super::input::Input;
use super::{parsed_policies, policy_names};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_lab::parallel::run_all;
use foxy_lab::simulation::caches::policies::{CacheSize, Lookups};
use foxy_lab::simulation::fleet;
use foxy_lab::simulation::fleet::plan::{FleetPlan, Placement};
use foxy_lab::simulation::fleet::tally::{FleetTally, means};
use foxy_report::{Record, Table};
use foxy_schemes::PolicyName;
use foxy_workload::Trace;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tallies::SavedTally;

/// Requests per second of a workload without times.
const RATE: f64 = 1000.0;

/// A simulation of one seed.
struct FleetTask {
    subject: String,
    seed: u64,
    plan: FleetPlan,
    /// Position of the trace.
    trace: usize,
}

/// Simulates the fleets, or merges their tallies if there is no input.
pub fn run(
    matches: &ArgMatches,
    input: Option<&Input>,
    seeds: &[u64],
    threads: usize,
) -> Result<(String, Vec<Record>), Failure> {
    let tallies = match input {
        Some(input) => simulate(matches, input, seeds, threads)?,
        None => tallies::merge(matches)?,
    };
    tallies::write(matches, &tallies)?;
    let mut subjects: Vec<&str> = Vec::new();
    for saved in &tallies {
        if !subjects.contains(&saved.subject.as_str()) {
            subjects.push(&saved.subject);
        }
    }
    let heads = std::iter::once("placement/nodes/policy@size").chain(HEADS.map(|head| head.1));
    let mut table = Table::new(&heads.collect::<Vec<_>>());
    let mut records = Vec::new();
    for subject in subjects {
        let same = tallies.iter().filter(|saved| saved.subject == subject);
        let same: Vec<FleetTally> = same.map(|saved| saved.tally.clone()).collect();
        let measures = means(subject, &same);
        let show = |(name, _): &(&str, &str)| {
            let found = measures.iter().find(|measure| measure.name == *name);
            found.map_or("-".into(), |measure| match measure.unit.as_str() {
                "count" => format!("{:.0}", measure.value),
                _ => format!("{:.3}", measure.value),
            })
        };
        let cells: Vec<String> =
            std::iter::once(subject.to_owned()).chain(HEADS.iter().map(show)).collect();
        table.row(&cells);
        records.extend(measures.into_iter().map(Record::Measure));
    }
    Ok((table.render(), records))
}

const HEADS: [(&str, &str); 8] = [
    ("hit_ratio", "hits"),
    ("byte_hit_ratio", "byte hits"),
    ("node_hit_ratio", "at node"),
    ("owner_hit_ratio", "at owner"),
    ("former_owner_hit_ratio", "at former"),
    ("origin_fetches", "fetches"),
    ("requests_between_nodes", "between nodes"),
    ("largest_load", "largest load"),
];

fn simulate(
    matches: &ArgMatches,
    input: &Input,
    seeds: &[u64],
    threads: usize,
) -> Result<Vec<SavedTally>, Failure> {
    let traces: Vec<Cow<'_, Trace>> = if input.has_seeds() {
        seeds.iter().map(|seed| input.trace(*seed)).collect()
    } else {
        vec![input.trace(seeds[0])]
    };
    let tasks = tasks(matches, &traces, seeds, !input.has_times())?;
    let total = tasks.iter().map(|task| traces[task.trace].gets.len() as u64).sum();
    let (done, mut progress) = (AtomicU64::new(0), Progress::new("requests", Some(total)));
    let one = |task: &FleetTask| SavedTally {
        subject: task.subject.clone(),
        seed: task.seed,
        tally: fleet::run(&task.plan, &traces[task.trace], &done),
    };
    Ok(run_all(&tasks, threads, &one, &mut || progress.update(done.load(Relaxed))))
}

/// Lists all simulations. The seed varies fastest.
fn tasks(
    matches: &ArgMatches,
    traces: &[Cow<'_, Trace>],
    seeds: &[u64],
    needs_rate: bool,
) -> Result<Vec<FleetTask>, Failure> {
    let lookups: Vec<Lookups> = traces.iter().map(|trace| Lookups::of(trace)).collect();
    let placements = matches.get_many::<Placement>("placement").into_iter().flatten();
    let mut tasks = Vec::new();
    for &placement in placements {
        for &nodes in matches.get_many::<u32>("nodes").into_iter().flatten() {
            for &policy in &policies(matches)? {
                for &size in matches.get_many::<CacheSize>("cache-size").into_iter().flatten() {
                    for (place, &seed) in seeds.iter().enumerate() {
                        let trace = place.min(traces.len() - 1);
                        let capacity = size.of(&lookups[trace]);
                        let mut plan =
                            arguments::plan(matches, placement, nodes, policy, capacity, seed)?;
                        plan.rate = plan.rate.or(needs_rate.then_some(RATE));
                        let subject = format!("{placement}/{nodes}/{policy}@{size}");
                        tasks.push(FleetTask { subject, seed, plan, trace });
                    }
                }
            }
        }
    }
    Ok(tasks)
}

fn policies(matches: &ArgMatches) -> Result<Vec<PolicyName>, Failure> {
    let names = policy_names(matches);
    if names.is_empty() { Ok(vec![PolicyName::Webcosm]) } else { parsed_policies(&names) }
}
