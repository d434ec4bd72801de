//! Tests the sample of requests, and the counts of requests and hits from which the what-if curves
//! start.

use super::*;
use foxy_proxy::core::outcome::HitSource;

fn answer(outcome: CacheStatus, status: u16) -> SampledAnswer<'static> {
    SampledAnswer {
        key: Key::of(b"http://a.test/"),
        host: b"a.test",
        is_get: true,
        outcome,
        status,
        head_bytes: 200,
        body_bytes: 1000,
    }
}

fn forwarded(reason: ForwardReason, stored: bool, collapsed: bool) -> CacheStatus {
    CacheStatus::Forwarded { reason, status: Some(200), stored, collapsed, detail: None }
}

#[test]
fn only_an_absent_response_could_be_a_hit_with_another_size() {
    let hit = CacheStatus::Hit { source: HitSource::Disk, ttl: 1, permit: None, coding: None };
    let cases = [
        (hit, (true, true)),
        (forwarded(ForwardReason::UriMiss, true, false), (true, true)),
        (forwarded(ForwardReason::UriMiss, false, false), (false, false)),
        (forwarded(ForwardReason::UriMiss, false, true), (true, false)),
        (forwarded(ForwardReason::Stale, true, false), (false, true)),
    ];
    for (outcome, expected) in cases {
        let queued = QueuedRequest::of(&answer(outcome, 200));
        assert_eq!((queued.may_hit, queued.may_store), expected, "{outcome:?}");
    }
}

#[test]
fn the_body_of_a_part_or_of_no_object_tells_no_size() {
    let of =
        |status| QueuedRequest::of(&answer(forwarded(ForwardReason::UriMiss, true, false), status));
    assert_eq!([200, 404, 206, 304].map(|status| of(status).is_whole), [true, true, false, false]);
}

fn outcome(outcome: RequestOutcome, requests: u64, bytes: u64) -> OutcomeMetrics {
    let mut classes = [0; 6];
    classes[2] = requests;
    OutcomeMetrics {
        outcome,
        classes,
        bytes,
        durations: foxy_proxy::core::metrics::timing::Durations::sum(std::iter::empty()),
        exemplars: Default::default(),
    }
}

#[test]
fn failed_changes_do_not_count_as_requests_that_a_cache_could_answer() {
    let all =
        vec![outcome(RequestOutcome::Miss, 3, 300), outcome(RequestOutcome::OriginFailed, 5, 50)];
    let left = cacheable(all, [4, 40]);
    let counts = |it: &OutcomeMetrics| (it.classes.iter().sum::<u64>(), it.bytes);
    assert_eq!(left.iter().map(counts).collect::<Vec<_>>(), [(3, 300), (1, 10)]);
}

#[test]
fn old_requests_lose_half_of_their_weight() {
    let tier = Tier { capacity: 100, policy: PolicyName::Lru, object_limit: 100, shards: 1 };
    let tier = SimulatedTier {
        name: "disk",
        tier,
        estimator: Estimator::new(tier, &[], 1 << 20),
        counts_hit: RequestOutcome::is_hit,
        size: |request| request.body_bytes,
    };
    let now = Instant(1);
    let forgotten = vec![Totals::default()];
    let mut simulation =
        Simulation { tiers: vec![tier], forgotten, halved: now, looked: now, seen: 0, lost: 0 };
    let counted = [
        outcome(RequestOutcome::DiskHit, 6, 600),
        outcome(RequestOutcome::Miss, 2, 100),
        outcome(RequestOutcome::Bypass, 9, 900),
    ];
    let totals =
        |requests, bytes, hits| vec![Totals { requests, bytes, hits: Some(hits), lost_share: 0.0 }];
    assert_eq!(simulation.totals(&counted), totals(8.0, 700.0, (6.0, 600.0)));
    simulation.halve(&counted);
    assert_eq!(simulation.totals(&counted), totals(4.0, 350.0, (3.0, 300.0)));
}

#[test]
fn lost_requests_and_a_high_rate_are_too_many() {
    let (start, second) = (Instant(1), Duration::from_secs(1));
    let mut simulation = Simulation {
        tiers: Vec::new(),
        forgotten: Vec::new(),
        halved: start,
        looked: start,
        seen: 0,
        lost: 0,
    };
    assert!(!simulation.has_too_many(4000, 0, start + second));
    assert!(simulation.has_too_many(4001, 1, start + 2 * second), "a request was lost");
    assert!(!simulation.has_too_many(4002, 1, start + 3 * second), "no further request was lost");
    assert!(!simulation.has_too_many(20_000, 1, start + 10 * second));
    assert!(simulation.has_too_many(40_010, 1, start + 20 * second), "2,001 in each second");
}
