//! Tests of the estimator: it is exact while the sample has all keys, and close with a sample.

use super::*;
use crate::curve::Estimate;
use foxy_base::Random;
use foxy_base::random::split_mix;
use foxy_lab::simulation::caches::policies::{Lookups, Replacement, run};
use foxy_schemes::policy::POLICIES;
use foxy_workload::trace::synthetic::{BU95, TABLE1, TraceModel, generate};
use std::sync::atomic::AtomicU64;

const PLENTY: usize = 1 << 30;

fn lookups(model: &TraceModel, gets: usize, seed: u64) -> Lookups {
    Lookups::of(&generate(model, gets, seed))
}

fn request(url: u32, size: u64, seed: u64) -> SampledRequest<'static> {
    let key_hash = split_mix(&mut (u64::from(url) ^ seed << 32));
    SampledRequest { key_hash, host: "a.test", size, sent: size, may_hit: true, may_store: true }
}

/// Feeds all look-ups to an estimator. Halves the sampling rate `halvings` times before the first
/// look-up.
fn estimated(lookups: &Lookups, tier: Tier, halvings: u8, seed: u64) -> (Vec<Point>, Estimator) {
    let others: Vec<_> = POLICIES.iter().map(|row| row.name).collect();
    let mut estimator = Estimator::new(tier, &others, PLENTY);
    (0..halvings).for_each(|_| estimator.thin());
    let mut totals = Totals::default();
    for &(url, size) in &lookups.list {
        totals.requests += 1.0;
        totals.bytes += size as f64;
        estimator.add(&request(url, size, seed));
    }
    (estimator.points(&totals), estimator)
}

/// Simulates the whole cache of a point, without sampling. Returns the ratios of requests and bytes
/// that hit.
fn simulated(lookups: &Lookups, point: &Point, object_limit: u64) -> (f64, f64) {
    let replacement = Replacement::Policy(point.policy);
    let counts = run(lookups, replacement, point.capacity, object_limit, &AtomicU64::new(0)).counts;
    (counts.hit_ratio(), counts.byte_hit_ratio())
}

fn tier(lookups: &Lookups, percent: u64, policy: PolicyName) -> Tier {
    Tier {
        capacity: lookups.unique_bytes * percent / 100,
        policy,
        object_limit: u64::MAX,
        shards: 1,
    }
}

#[test]
fn with_all_keys_the_curve_equals_the_simulation() {
    let lookups = lookups(&BU95, 8000, 3);
    for row in POLICIES {
        let tier = tier(&lookups, 5, row.name);
        let (points, _) = estimated(&lookups, tier, 0, 0);
        assert_eq!(points.len(), FACTORS.len() + POLICIES.len() - 1);
        for point in &points {
            let (hits, bytes) = simulated(&lookups, point, u64::MAX);
            for (estimate, exact) in [(point.hits, hits), (point.byte_hits, bytes)] {
                assert!((estimate.value - exact).abs() < 1e-9, "{point:?}, exact {exact}");
                let (low, high) = estimate.interval.expect("all keys were simulated");
                assert!(high - low < 1e-9, "{point:?}");
            }
        }
    }
}

fn is_near(estimate: Estimate, exact: f64, most: f64) -> bool {
    (estimate.value - exact).abs() <= most
}

#[test]
fn with_a_sample_the_curve_is_within_a_point() {
    let lookups = lookups(&TABLE1, 200_000, 5);
    for policy in [PolicyName::Lru, PolicyName::Webcosm] {
        let tier = tier(&lookups, 5, policy);
        let (points, _) = estimated(&lookups, tier, 2, 0);
        let wrong = points[1..FACTORS.len()].iter().filter_map(|point| {
            let (hits, bytes) = simulated(&lookups, point, u64::MAX);
            let is_right = is_near(point.hits, hits, 0.01) && is_near(point.byte_hits, bytes, 0.01);
            (!is_right).then(|| format!("{point:?}, exact {hits} {bytes}"))
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn the_memory_stays_within_its_limit() {
    let mut estimator = Estimator::new(
        Tier { capacity: 1 << 50, policy: PolicyName::Lru, object_limit: u64::MAX, shards: 1 },
        &[PolicyName::S3Fifo, PolicyName::WTinyLfu, PolicyName::Gdsf],
        4 << 20,
    );
    let mut random = Random::new(6);
    for number in 0..150_000u32 {
        estimator.add(&request(number, random.below(50_000), 0));
        assert!(number % 1000 > 0 || estimator.memory() < 6 << 20, "{}", estimator.memory());
    }
    assert!(estimator.rate() > SampleRate::new(1), "{:?}", estimator.rate());
}

#[test]
fn known_hits_move_the_whole_curve() {
    let tier = Tier { capacity: 100, policy: PolicyName::Lru, object_limit: u64::MAX, shards: 1 };
    let mut estimator = Estimator::new(tier, &[], PLENTY);
    for round in 0..10 {
        for url in 0..2 {
            let may_hit = round < 9;
            estimator.add(&SampledRequest { may_hit, ..request(url, 80, 0) });
        }
    }
    let totals =
        Totals { requests: 20.0, bytes: 1600.0, hits: Some((4.0, 400.0)), ..Totals::default() };
    let points = estimator.points(&totals);
    let values: Vec<_> = points.iter().map(|point| (point.hits.value * 20.0).round()).collect();
    assert_eq!(values, [4.0, 4.0, 4.0, 20.0, 20.0, 20.0]);
    let without = estimator.points(&Totals { hits: None, ..totals });
    assert_eq!(without[3].hits.value, 0.8);
}

#[test]
fn hosts_have_curves_of_their_own() {
    let tier = Tier { capacity: 100, policy: PolicyName::Lru, object_limit: u64::MAX, shards: 1 };
    let mut estimator = Estimator::new(tier, &[], PLENTY);
    for number in 0..1000 {
        let host = format!("host{number}.test");
        estimator.add(&SampledRequest { host: &host, ..request(number, 10, 0) });
        estimator.add(&SampledRequest { host: "busy.test", ..request(5000, 10, 0) });
    }
    let hosts = estimator.hosts(3, 0.0);
    assert_eq!((hosts.len(), &*hosts[0].host), (3, "busy.test"));
    assert!(hosts[0].requests == 1000.0 && hosts[0].points[2].0.value == 0.999, "{:?}", hosts[0]);
    assert_eq!(hosts[1].points[2].0.value, 0.0);
}

/// Feeds `requests` requests of small objects to an estimator that halves its sample of keys this
/// often. Its caches hold all objects.
fn sampled(requests: u32, halvings: u32) -> Estimator {
    let tier =
        Tier { capacity: 1 << 40, policy: PolicyName::Lru, object_limit: 1 << 30, shards: 1 };
    let mut estimator = Estimator::new(tier, &[PolicyName::Sieve], PLENTY);
    (0..halvings).for_each(|_| estimator.thin());
    (0..requests).for_each(|number| estimator.add(&request(number % 500, 100, 1)));
    estimator
}

#[test]
fn a_sample_in_which_all_caches_are_equal_gives_no_interval() {
    let hits = Some((1200.0, 120_000.0));
    let totals = Totals { requests: 2000.0, bytes: 200_000.0, hits, lost_share: 0.0 };
    let points = sampled(2000, 2).points(&totals);
    for (number, point) in points.iter().enumerate() {
        let counted = (number == PRESENT).then_some((0.6, 0.6));
        assert_eq!((point.hits.interval, point.byte_hits.interval), (counted, counted));
    }
}

#[test]
fn lost_requests_widen_the_interval_as_if_all_were_hits_or_all_misses() {
    let hits = Some((1200.0, 120_000.0));
    let totals = Totals { requests: 2000.0, bytes: 200_000.0, hits, lost_share: 0.25 };
    let of_part = sampled(2000, 2).points(&totals);
    assert_eq!(of_part[0].hits.interval, None, "a loss does not make an unknown width known");
    let estimator = sampled(2000, 0);
    let points = estimator.points(&totals);
    assert_eq!(points[PRESENT].hits.interval, Some((0.6, 0.6)));
    let (low, high) = points[0].hits.interval.expect("the loss is known");
    assert!((low - 0.45).abs() < 1e-9 && (high - 0.7).abs() < 1e-9, "{low} {high}");
    let host = &estimator.hosts(1, 0.25)[0].points[0].0;
    let (low, high) = host.interval.expect("the loss is known");
    assert!(low < host.value - 0.1 && high > host.value + 0.01, "{host:?}");
}
