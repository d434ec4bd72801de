//! Computes the hit ratio of each replacement policy for each cache size. The simulation has one
//! cache level, no disk and no clock.

use super::belady::belady;
use super::cache::{Cache, Counts};
use foxy_base::{ByteSize, clock};
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, PolicySettings};
use foxy_workload::Trace;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of look-ups between two progress updates.
const STEP: usize = 1 << 16;

/// A replacement policy of the store, or the oracle that knows all future look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    Policy(PolicyName),
    Belady,
}

impl Replacement {
    pub const BELADY: &'static str = "belady";

    pub fn all() -> Vec<Self> {
        POLICIES.iter().map(|row| Self::Policy(row.name)).chain([Self::Belady]).collect()
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(name) => name.fmt(f),
            Self::Belady => f.write_str(Self::BELADY),
        }
    }
}

impl FromStr for Replacement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == Self::BELADY {
            return Ok(Self::Belady);
        }
        let name = text.parse::<PolicyName>();
        name.map(Self::Policy).map_err(|error| format!("{error}, {}", Self::BELADY))
    }
}

/// The size of a simulated cache, in relation to a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    Bytes(ByteSize),
    /// The size in percent of the trace's unique bytes, the sum of the sizes of all its URLs.
    Percent(f64),
    /// A size so large that the cache never evicts.
    Infinite,
}

impl CacheSize {
    pub fn of(self, lookups: &Lookups) -> u64 {
        match self {
            Self::Bytes(ByteSize(bytes)) => bytes,
            Self::Percent(percent) => {
                (lookups.unique_bytes as f64 * percent / 100.0).round() as u64
            }
            Self::Infinite => lookups.most_bytes,
        }
    }
}

impl fmt::Display for CacheSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Infinite => f.write_str("infinite"),
        }
    }
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "infinite" {
            return Ok(Self::Infinite);
        }
        let Some(number) = text.strip_suffix('%') else {
            return text
                .parse()
                .map(Self::Bytes)
                .map_err(|error: foxy_base::size::SizeError| error.to_string());
        };
        let percent = number.trim().parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
        percent.map(Self::Percent).ok_or_else(|| {
            format!(
                "cache size {text:?} is not a percentage from 0% to 1000%; write a percentage such \
                 as 0.5%"
            )
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookups {
    /// The URL and the size of each look-up, in order.
    pub list: Vec<(u32, u64)>,
    /// The number of different URLs. URLs are numbers below it.
    pub urls: u32,
    /// The sum of the sizes of all URLs, in bytes. If the size of a URL changes, the last size
    /// counts.
    pub unique_bytes: u64,
    /// The sum of the sizes of all URLs, in bytes. If the size of a URL changes, the largest size
    /// counts.
    most_bytes: u64,
}

impl Lookups {
    pub fn of(trace: &Trace) -> Self {
        let list: Vec<_> = trace.gets.iter().map(|get| (get.url, get.size)).collect();
        let mut sizes = vec![(0, 0); trace.urls()];
        for &(url, size) in &list {
            let (last, most): &mut (u64, u64) = &mut sizes[url as usize];
            (*last, *most) = (size, (*most).max(size));
        }
        let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
        Self {
            urls: u32::try_from(sizes.len()).unwrap_or(u32::MAX),
            unique_bytes: sum(&mut sizes.iter().map(|size| size.0)),
            most_bytes: sum(&mut sizes.iter().map(|size| size.1)),
            list,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyResult {
    pub counts: Counts,
    pub took: Duration,
}

impl PolicyResult {
    pub fn rate(&self) -> f64 {
        self.counts.gets as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Simulates all look-ups on a cache of `capacity` bytes that is empty at first. A policy with a
/// size threshold stores no object above `object_limit` bytes. `done` increases by 1 for each
/// look-up.
pub fn run(
    lookups: &Lookups,
    replacement: Replacement,
    capacity: u64,
    object_limit: u64,
    done: &AtomicU64,
) -> PolicyResult {
    let started = clock::monotonic();
    let counts = match replacement {
        Replacement::Belady => {
            let counts = belady(&lookups.list, capacity, lookups.urls);
            done.fetch_add(counts.gets, Relaxed);
            counts
        }
        Replacement::Policy(name) => {
            let policy = name.make(&PolicySettings { capacity, object_limit });
            let mut cache = Cache::new(policy, capacity, lookups.urls);
            for gets in lookups.list.chunks(STEP) {
                for &(url, size) in gets {
                    cache.get(url, size);
                }
                done.fetch_add(gets.len() as u64, Relaxed);
            }
            cache.counts()
        }
    };
    PolicyResult { counts, took: clock::monotonic().since(started) }
}

pub fn lru(lookups: &Lookups, capacity: u64) -> Counts {
    run(lookups, Replacement::Policy(PolicyName::Lru), capacity, u64::MAX, &AtomicU64::new(0))
        .counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::trace::{Get, synthetic};

    #[test]
    fn sizes_are_bytes_or_shares_of_what_urls_had_last() {
        let get = |url, size| Get { time: 0, client: 0, url, size };
        let gets = vec![get(0, 3000), get(1, 600), get(0, 400)];
        let lookups = Lookups::of(&Trace { gets, sites: vec![0, 0], ..Trace::default() });
        let check = |text: &str, bytes| {
            let size = text.parse::<CacheSize>().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(size.of(&lookups), bytes, "{text}");
        };
        check("2K", 2048);
        check("0.1%", 1);
        check("50%", 500);
        check("infinite", 3600);
        for wrong in ["-1%", "nan%", "1e9%", "%", "much", ""] {
            assert!(wrong.parse::<CacheSize>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_parse_back_and_an_unknown_name_lists_all() {
        for replacement in Replacement::all() {
            assert_eq!(replacement.to_string().parse(), Ok(replacement));
        }
        let error = "coffee".parse::<Replacement>().expect_err("no such policy");
        assert!(error.contains("lru, ") && error.ends_with("belady"), "{error}");
    }

    #[test]
    fn every_policy_hits_all_repeats_in_an_infinite_cache() {
        let lookups = Lookups::of(&synthetic::generate(&synthetic::DEC, 3000, 1));
        let capacity = CacheSize::Infinite.of(&lookups);
        for replacement in Replacement::all() {
            let done = AtomicU64::new(0);
            let result = run(&lookups, replacement, capacity, u64::MAX, &done);
            assert_eq!(result.counts.hits, 3000 - urls_asked_for(&lookups), "{replacement}");
            assert_eq!(done.load(Relaxed), 3000, "{replacement}");
        }
    }

    fn urls_asked_for(lookups: &Lookups) -> u64 {
        let urls: std::collections::HashSet<_> = lookups.list.iter().map(|&(url, _)| url).collect();
        urls.len() as u64
    }
}
