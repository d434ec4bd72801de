//! `foxy sim` without a storage scheme: simulates the hit ratios of cache policies for several
//! cache sizes.

use super::input::Input;
use super::{parsed_policies, policy_names};
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_lab::parallel::run_all;
use foxy_lab::simulation::caches::policies::{self, CacheSize, Lookups, PolicyResult, Replacement};
use foxy_report::{Measure, Record, Table};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Task {
    replacement: Replacement,
    size: CacheSize,
    lookups: usize,
}

pub fn run(
    matches: &ArgMatches,
    input: &Input,
    seeds: &[u64],
    threads: usize,
) -> Result<(String, Vec<Record>), Failure> {
    let policies = replacements(matches)?;
    let sizes: Vec<CacheSize> =
        matches.get_many("cache-size").into_iter().flatten().copied().collect();
    let ByteSize(object_limit) = *matches.get_one("object-limit").expect("has a default");
    let seeds = if input.has_seeds() { seeds } else { &seeds[..1] };
    let lookups = run_all(seeds, threads, &|&seed| Lookups::of(&input.trace(seed)), &mut || {});
    let mut tasks = Vec::new();
    for &replacement in &policies {
        for &size in &sizes {
            tasks.extend((0..lookups.len()).map(|lookups| Task { replacement, size, lookups }));
        }
    }
    let total = tasks.iter().map(|task| lookups[task.lookups].list.len() as u64).sum();
    let (done, mut progress) = (AtomicU64::new(0), Progress::new("look-ups", Some(total)));
    let one = |task: &Task| {
        let lookups = &lookups[task.lookups];
        policies::run(lookups, task.replacement, task.size.of(lookups), object_limit, &done)
    };
    let results = run_all(&tasks, threads, &one, &mut || progress.update(done.load(Relaxed)));
    drop(progress);
    let mut table =
        Table::new(&["policy", "cache", "bytes", "object hits", "byte hits", "look-ups/s, wall"]);
    let mut records = Vec::new();
    let unique: Vec<f64> = lookups.iter().map(|lookups| lookups.unique_bytes as f64).collect();
    records.push(Record::Measure(Measure::of("unique_bytes", "trace", &unique, "bytes")));
    for (tasks, results) in tasks.chunks(seeds.len()).zip(results.chunks(seeds.len())) {
        let Task { replacement, size, .. } = tasks[0];
        let subject = format!("{replacement}@{size}");
        let of = |name: &str, unit: &str, value: &dyn Fn(&PolicyResult) -> f64| {
            Measure::of(name, &subject, &results.iter().map(value).collect::<Vec<_>>(), unit)
        };
        let hits = of("hit_ratio", "share", &|result| result.counts.hit_ratio());
        let bytes = of("byte_hit_ratio", "share", &|result| result.counts.byte_hit_ratio());
        let rate = of("lookups_per_second", "1/s", &PolicyResult::rate);
        table.row(&[
            replacement.to_string(),
            size.to_string(),
            size.of(&lookups[0]).to_string(),
            format!("{:.3}", hits.value),
            format!("{:.3}", bytes.value),
            format!("{:.0}", rate.value),
        ]);
        records.extend([hits, bytes, rate].map(Record::Measure));
    }
    let text = format!(
        "{}\nLook-ups/s are measured on this machine, so they depend on other programs that run on \
         it.",
        table.render()
    );
    Ok((text, records))
}

fn replacements(matches: &ArgMatches) -> Result<Vec<Replacement>, Failure> {
    let names = policy_names(matches);
    if names.is_empty() || names.contains(&"all") {
        return Ok(Replacement::all());
    }
    parsed_policies(&names)
}
