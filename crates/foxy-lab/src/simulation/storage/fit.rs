//! Compares a synthetic trace with the published numbers of the original trace.

use super::operation::{Levels, operations};
use crate::simulation::caches::policies::{CacheSize, Lookups, lru};
use foxy_schemes::PolicyName;
use foxy_workload::Trace;
use foxy_workload::trace::Statistics;
use foxy_workload::trace::models::Target;
use foxy_workload::trace::synthetic::TraceModel;

#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    pub what: String,
    pub unit: &'static str,
    pub target: f64,
    pub ours: f64,
}

/// Compares a trace with the numbers that its model must reach. Cache sizes and numbers of URLs are
/// scaled with the length of the trace.
pub fn fit(model: &TraceModel, trace: &Trace, found: &Statistics) -> Vec<Fit> {
    let scale = real(found.gets) / real(model.gets.max(1));
    model.targets.iter().flat_map(|target| compare(target, trace, found, scale)).collect()
}

fn compare(target: &Target, trace: &Trace, found: &Statistics, scale: f64) -> Vec<Fit> {
    let row = |what: String, target, ours| Fit { what, unit: "share", target, ours };
    match *target {
        Target::Urls { gets, urls } => {
            let count = |what: &str, target: u64, ours: u64| Fit {
                what: what.into(),
                unit: "count",
                target: real(target),
                ours: real(ours),
            };
            vec![
                count("gets", gets, found.gets),
                count("different URLs", scaled(urls, scale), found.urls),
            ]
        }
        Target::MeanSize(size) => {
            let what = "bytes of a get, mean".into();
            vec![Fit { what, unit: "bytes", target: size, ours: found.answers.mean }]
        }
        Target::Infinite { hits, bytes } => vec![
            row("hit ratio, infinite cache".into(), hits, found.infinite.gets),
            row("byte hit ratio, infinite cache".into(), bytes, found.infinite.bytes),
        ],
        Target::Lru { percent, hits, bytes } => {
            let lookups = Lookups::of(trace);
            let ours = lru(&lookups, CacheSize::Percent(percent).of(&lookups));
            vec![
                row(format!("hit ratio, LRU of {percent} %"), hits, ours.hit_ratio()),
                row(format!("byte hit ratio, LRU of {percent} %"), bytes, ours.byte_hit_ratio()),
            ]
        }
        Target::TwoLevels { memory, disk, shares } => {
            let levels = Levels {
                memory: scaled(memory, scale),
                disk: scaled(disk, scale),
                policy: PolicyName::Lru,
                object_limit: u64::MAX,
            };
            let (_, counts) = operations(trace, &levels);
            let written = counts.disk.gets - counts.disk.hits;
            let ours = [counts.memory.hits, counts.disk.hits, written]
                .map(|count| real(count) / real(counts.memory.gets.max(1)));
            let names = ["hits in memory", "disk reads", "disk writes"];
            let rows = names.into_iter().zip(shares).zip(ours);
            rows.map(|((name, share), ours)| row(format!("{name}, share of gets"), share, ours))
                .collect()
        }
    }
}

fn real(number: u64) -> f64 {
    number as f64
}

fn scaled(bytes: u64, factor: f64) -> u64 {
    (real(bytes) * factor).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::trace::synthetic::{BU95, IRCACHE, MODELS, TABLE1, generate};

    fn fits(model: &TraceModel, gets: usize, seed: u64) -> Vec<Fit> {
        let trace = generate(model, gets, seed);
        fit(model, &trace, &Statistics::of(&trace))
    }

    #[test]
    fn table_1_meets_its_targets_at_a_fifth_of_its_length() {
        for seed in 1..=2 {
            for Fit { what, target, ours, .. } in fits(&TABLE1, 211_641, seed) {
                let allowed = if target > 1.0 { target * 0.15 } else { 0.03 };
                assert!((target - ours).abs() < allowed, "seed {seed}: {what}: {target} {ours}");
            }
        }
    }

    #[test]
    fn bu95_meets_its_curve_from_small_caches_to_large_caches() {
        for seed in 1..=2 {
            for Fit { what, target, ours, .. } in fits(&BU95, 135_382, seed) {
                let allowed = if target > 1.0 {
                    target * 0.2
                } else if what.starts_with("byte") {
                    0.08
                } else {
                    0.04
                };
                assert!((target - ours).abs() < allowed, "seed {seed}: {what}: {target} {ours}");
            }
        }
    }

    #[test]
    fn leaps_trace_has_the_gets_and_urls_of_the_replayed_trace() {
        let found = fits(&IRCACHE, 97_462, 1);
        let counts: Vec<_> =
            found.iter().map(|fit| (fit.what.as_str(), fit.target, fit.ours)).collect();
        assert_eq!(counts, [("gets", 97_462.0, 97_462.0), ("different URLs", 57_685.0, 57_685.0)]);
        let tenth = fits(&IRCACHE, 9746, 1);
        assert_eq!((tenth[1].target, tenth[1].ours), (5768.0, 5768.0));
    }

    #[test]
    fn an_empty_trace_can_be_compared() {
        for model in MODELS {
            let found = fits(model, 0, 1);
            assert!(found.iter().all(|fit| fit.ours.is_finite()), "{}", model.name);
        }
    }
}
