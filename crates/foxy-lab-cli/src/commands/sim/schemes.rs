//! `foxy sim` with storage schemes. Converts the requests of a trace into reads, writes and
//! deletions of a proxy's disk cache, and runs each scheme on them.

use super::input::Input;
use super::place::Where;
use super::rows::{self, Row};
use super::stream;
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::machine::Machine;
use foxy_cli::progress::Progress;
use foxy_cli::signals::interrupted;
use foxy_lab::parallel::run_all;
use foxy_lab::simulation::storage::operation::Operations;
use foxy_lab::simulation::storage::runs::{RunResult, SimulationPlan, Watch};
use foxy_report::Record;
use foxy_schemes::{PreferredDevice, SCHEMES, SchemeName, SchemeSettings};
use std::sync::atomic::Ordering::Relaxed;

pub fn run(
    matches: &ArgMatches,
    input: Option<&Input>,
    scale: f64,
    seeds: &[u64],
) -> Result<(String, Vec<Record>, bool), Failure> {
    let schemes = schemes(matches)?;
    let device = matches.get_one::<String>("device").expect("has a default");
    let device = Where::named(device, scale, matches.get_one("read-ahead").copied())?;
    let machine = Machine::look();
    let (streams, mut text) = stream::take(matches, input, scale, seeds, machine.cores)?;
    if schemes.is_empty() {
        return Ok((text, Vec::new(), true));
    }
    let utilizations: Vec<f64> =
        matches.get_many("utilization").into_iter().flatten().copied().collect();
    let tasks = tasks(&schemes, &utilizations, &scheme_settings(matches)?, seeds);
    let mut watch = Watch::default();
    if matches!(device, Where::Folder(_)) {
        watch.stop = interrupted()?;
    }
    let _claimed = device.claim()?;
    let largest = streams.iter().map(|stream| stream.disk).max().unwrap_or(0);
    let threads = device.threads(machine.cores, machine.memory, largest);
    let results = run_tasks(&tasks, &streams, &device, threads, seeds.len(), &watch);
    if watch.stop.load(Relaxed) {
        return Err(Failure::Failed("sim: stopped by a signal; its files are removed".into()));
    }
    let rows: Vec<Row> = tasks
        .chunks(seeds.len())
        .zip(results.chunks(seeds.len()))
        .map(|(plans, results)| Row::new(&plans[0], results))
        .collect();
    let records = rows.iter().flat_map(Row::records).collect();
    text.push_str(&format!("\n\nOn {}:\n\n{}", device.title(), rows::table(&rows)));
    let helped = |scheme: &SchemeName| scheme.row().device == PreferredDevice::Helper;
    if matches!(device, Where::Folder(_)) && schemes.iter().any(helped) {
        text.push_str("\ndiskd is measured with blocking calls here, without its helper process.");
    }
    let any = rows.iter().any(|row| !row.results.is_empty());
    Ok((text, records, any))
}

/// Returns the settings that `--ufs-mapping`, `--prefetch` and `--set` give to the storage schemes.
fn scheme_settings(matches: &ArgMatches) -> Result<SchemeSettings, Failure> {
    let mut settings = SchemeSettings::with_size(0);
    let prefetch = matches.get_one::<ByteSize>("prefetch").expect("has a default").0;
    settings.prefetch = usize::try_from(prefetch).unwrap_or(usize::MAX);
    let mapping = matches.get_one::<String>("ufs-mapping").expect("has a default");
    let changes = matches.get_many::<String>("set").into_iter().flatten().cloned();
    for change in std::iter::once(format!("ufs-mapping={mapping}")).chain(changes) {
        settings
            .tune(&change)
            .map_err(|error| Failure::Unusable(format!("--set {change}: {error}")))?;
    }
    Ok(settings)
}

fn schemes(matches: &ArgMatches) -> Result<Vec<SchemeName>, Failure> {
    let names: Vec<&String> = matches.get_many("scheme").into_iter().flatten().collect();
    if names.iter().any(|name| *name == "all") {
        return Ok(SCHEMES
            .iter()
            .filter(|row| !row.stores_nothing())
            .map(|row| row.name)
            .collect());
    }
    let parse = |name: &&String| {
        name.parse().map_err(|error| Failure::Unusable(format!("--scheme {name}: {error}, or all")))
    };
    names.iter().map(parse).collect()
}

/// Lists all runs: each storage scheme at each utilization (share of its slots with live data) that
/// it supports, and with each seed. The seed varies fastest.
fn tasks(
    schemes: &[SchemeName],
    utilizations: &[f64],
    scheme_settings: &SchemeSettings,
    seeds: &[u64],
) -> Vec<SimulationPlan> {
    let mut tasks = Vec::new();
    for &scheme in schemes {
        let all = if scheme.row().has_utilization() { utilizations } else { &utilizations[..1] };
        for &utilization in all {
            tasks.extend(seeds.iter().map(|&seed| SimulationPlan {
                scheme,
                utilization,
                scheme_settings: scheme_settings.clone(),
                seed,
            }));
        }
    }
    tasks
}

fn run_tasks(
    plans: &[SimulationPlan],
    streams: &[Operations],
    device: &Where,
    threads: usize,
    seeds: usize,
    watch: &Watch,
) -> Vec<Result<RunResult, String>> {
    let stream = |place: usize| &streams[place % seeds % streams.len()];
    let total = (0..plans.len()).map(|place| stream(place).list.len() as u64).sum();
    let mut progress = Progress::new("URL operations", Some(total));
    let places: Vec<usize> = (0..plans.len()).collect();
    let one = |&place: &usize| device.run(&plans[place], stream(place), watch);
    run_all(&places, threads, &one, &mut || progress.update(watch.done.load(Relaxed)))
}
