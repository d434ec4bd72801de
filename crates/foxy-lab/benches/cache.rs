//! Measures look-ups per second of the cache simulation under each policy, on one core and without
//! a device. `cargo bench -p foxy-lab --bench cache` prints the figures. Every round checks the
//! number of hits, so the benchmark is also a test.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use foxy_base::{Random, clock};
use foxy_lab::simulation::caches::cache::Cache;
use foxy_schemes::PolicySettings;
use foxy_schemes::policy::{POLICIES, PolicyRow};

/// The number of look-ups per policy. A debug build performs few look-ups, because its speed says
/// nothing.
const GETS: usize = if cfg!(debug_assertions) { 10_000 } else { 4_000_000 };
const URLS: u32 = 200_000;
const CAPACITY: u64 = 200_000_000;

fn main() {
    let gets = stream();
    for row in POLICIES {
        report(row, &gets);
    }
}

/// Generates look-ups of popular and rare URLs. The index of a URL is proportional to the third
/// power of a uniform random number. Each URL keeps one size between 1 and 20 kB.
fn stream() -> Vec<(u32, u64)> {
    let mut random = Random::new(1);
    (0..GETS)
        .map(|_| {
            let url = (f64::from(URLS) * random.unit().powi(3)) as u32;
            (url, 1000 + u64::from(url.wrapping_mul(2_654_435_761) % 19_000))
        })
        .collect()
}

fn report(row: &PolicyRow, gets: &[(u32, u64)]) {
    let settings = PolicySettings { capacity: CAPACITY, object_limit: 16_000 };
    let mut cache = Cache::new(row.name.make(&settings), CAPACITY, URLS);
    let start = clock::monotonic();
    for &(url, size) in gets {
        cache.get(url, size);
    }
    let nanoseconds = clock::monotonic().0 - start.0;
    let counts = cache.counts();
    assert_eq!(counts.gets, gets.len() as u64);
    assert!(cache.used() <= CAPACITY);
    println!(
        "{:>11}: {:>5.1} million look-ups/s, hit ratio {:.3}",
        row.text,
        gets.len() as f64 * 1e3 / nanoseconds as f64,
        counts.hit_ratio(),
    );
}
