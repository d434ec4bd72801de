//! Computes statistics of a trace: counts, repeats, sizes and popularity. The crate `foxy-lab`
//! simulates caches of limited size.

use super::Trace;

/// Statistics of a trace. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Number of GET requests.
    pub gets: u64,
    /// Number of URLs.
    pub urls: u64,
    /// Number of clients.
    pub clients: u64,
    /// Number of origin servers.
    pub sites: u64,
    /// Bytes of all responses.
    pub bytes: u128,
    /// Sum of the sizes of all URLs. The size of a URL is its last size in the trace.
    pub unique_bytes: u128,
    /// Hit ratios of a cache that never evicts.
    pub infinite: Repeats,
    /// Share of URLs with a single request.
    pub once: f64,
    /// Fit of the URLs' numbers of requests to a power law. `None` with fewer than three repeated
    /// URLs.
    pub zipf: Option<ZipfFit>,
    /// Sizes of the responses.
    pub answers: Spread,
    /// Sizes of the URLs. The size of a URL is its last size in the trace.
    pub objects: Spread,
    /// Number of requests per client.
    pub per_client: Spread,
    /// Microseconds from the first request to the last.
    pub duration: u64,
}

/// The requests that repeat a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeats {
    /// Share of the requests that repeat a URL among all requests.
    pub gets: f64,
    /// Share of the bytes of the repeating requests among the bytes of all requests.
    pub bytes: f64,
}

/// The power law of popularity: the number of requests for a URL is proportional to rank^-alpha.
/// The most requested URL has rank 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZipfFit {
    /// The exponent, from a least squares fit of the logarithms. The fit uses ranks with evenly
    /// spaced logarithms, 20 for each factor of ten. If it used every rank, the many high ranks
    /// alone would determine the exponent.
    pub alpha: f64,
    /// Coefficient of determination (R²) of the fit.
    pub fit: f64,
    /// First rank that the fit uses.
    pub from: usize,
    /// Last rank that the fit uses: the last URL with several requests. How many URLs have a single
    /// request depends on the length of the trace and says nothing about popularity.
    pub to: usize,
}

/// The distribution of some values, such as sizes in bytes. The fields have the unit of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Median.
    pub median: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest value.
    pub largest: u64,
}

impl Statistics {
    /// Computes the statistics of `trace`.
    pub fn of(trace: &Trace) -> Self {
        let mut counts = vec![0u64; trace.urls()];
        let mut last_sizes = vec![0u64; trace.urls()];
        let mut per_client = vec![0u64; trace.clients as usize];
        for get in &trace.gets {
            counts[get.url as usize] += 1;
            last_sizes[get.url as usize] = get.size;
            per_client[get.client as usize] += 1;
        }
        // A synthetic trace may have URLs and clients without requests.
        let sizes =
            last_sizes.iter().zip(&counts).filter(|(_, count)| **count > 0).map(|(&size, _)| size);
        let objects: Vec<u64> = sizes.collect();
        counts.retain(|&count| count > 0);
        per_client.retain(|&count| count > 0);
        let mut sites = vec![false; trace.site_count as usize];
        trace.gets.iter().for_each(|get| sites[trace.site(get.url) as usize] = true);
        let once = counts.iter().filter(|&&count| count == 1).count();
        Self {
            gets: trace.gets.len() as u64,
            urls: counts.len() as u64,
            clients: per_client.len() as u64,
            sites: sites.iter().filter(|&&seen| seen).count() as u64,
            bytes: total(trace.gets.iter().map(|get| get.size)),
            unique_bytes: total(objects.iter().copied()),
            infinite: Repeats::of(trace),
            once: share(once as u64, counts.len() as u64),
            zipf: zipf(counts),
            answers: Spread::of(trace.gets.iter().map(|get| get.size).collect()),
            objects: Spread::of(objects),
            per_client: Spread::of(per_client),
            duration: trace.gets.last().map_or(0, |get| get.time),
        }
    }
}

impl Repeats {
    fn of(trace: &Trace) -> Self {
        let mut seen = vec![false; trace.urls()];
        let (mut gets, mut bytes) = (0, 0u128);
        for get in &trace.gets {
            if std::mem::replace(&mut seen[get.url as usize], true) {
                gets += 1;
                bytes += u128::from(get.size);
            }
        }
        let all = total(trace.gets.iter().map(|get| get.size));
        Self { gets: share(gets, trace.gets.len() as u64), bytes: real(bytes) / real(all.max(1)) }
    }
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let Some(&largest) = values.last() else { return Self::default() };
        let at = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        let mean = real(total(values.iter().copied())) / real(values.len() as u64);
        Self { mean, median: at(50), p90: at(90), p99: at(99), largest }
    }
}

fn zipf(mut counts: Vec<u64>) -> Option<ZipfFit> {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let to = counts.partition_point(|&count| count > 1);
    if to < 3 {
        return None;
    }
    let ranks = log_spaced(to);
    let points = || ranks.iter().map(|&rank| (real(rank as u64).ln(), real(counts[rank - 1]).ln()));
    let number = real(ranks.len() as u64);
    let mean_x = points().map(|(x, _)| x).sum::<f64>() / number;
    let mean_y = points().map(|(_, y)| y).sum::<f64>() / number;
    let xx: f64 = points().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let yy: f64 = points().map(|(_, y)| (y - mean_y).powi(2)).sum();
    let xy: f64 = points().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let fit = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
    Some(ZipfFit { alpha: -xy / xx, fit, from: 1, to })
}

/// The fit of a Zipf distribution uses this number of ranks between a rank and ten times this rank.
const RANKS_PER_DECADE: f64 = 20.0;

/// Returns different ranks from 1 to `last` with evenly spaced logarithms.
fn log_spaced(last: usize) -> Vec<usize> {
    let rank = |step: i32| 10f64.powf(f64::from(step) / RANKS_PER_DECADE).round() as usize;
    let mut ranks: Vec<usize> = (0..).map(rank).take_while(|&rank| rank <= last).collect();
    ranks.dedup();
    ranks
}

/// Returns the sum in 128 bits, so that it cannot overflow.
fn total(values: impl Iterator<Item = u64>) -> u128 {
    values.map(u128::from).sum()
}

fn share(part: u64, all: u64) -> f64 {
    real(part) / real(all.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a statistic to be shown")]
fn real(number: impl Into<u128>) -> f64 {
    number.into() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Get;

    #[test]
    fn a_small_trace_is_counted_by_hand() {
        let gets = [(0, 0, 0, 100), (5, 1, 1, 10), (7, 1, 0, 120), (9, 1, 0, 120)];
        let gets = gets.map(|(time, client, url, size)| Get { time, client, url, size });
        let trace = Trace {
            gets: gets.to_vec(),
            sites: vec![0, 0, 1],
            clients: 3,
            site_count: 2,
            ..Trace::default()
        };
        let found = Statistics::of(&trace);
        assert_eq!((found.gets, found.urls, found.clients, found.sites), (4, 2, 2, 1));
        assert_eq!((found.bytes, found.unique_bytes, found.duration), (350, 130, 9));
        assert_eq!((found.infinite.gets, found.once), (0.5, 0.5));
        assert!((found.infinite.bytes - 240.0 / 350.0).abs() < 1e-9);
        assert_eq!(
            found.answers,
            Spread { mean: 87.5, median: 100, p90: 120, p99: 120, largest: 120 }
        );
        assert_eq!(found.per_client, Spread { mean: 2.0, median: 1, p90: 3, p99: 3, largest: 3 });
        assert_eq!(found.zipf, None);
    }

    #[test]
    fn an_empty_trace_has_no_statistics_to_divide_by() {
        let found = Statistics::of(&Trace::default());
        assert_eq!((found.gets, found.once, found.answers), (0, 0.0, Spread::default()));
        assert_eq!(found.infinite, Repeats::default());
    }

    #[test]
    fn a_power_law_is_found_again() {
        let counts: Vec<u64> =
            (1..=10_000u32).map(|rank| (1e6 / f64::from(rank).powf(0.8)) as u64).collect();
        let zipf = zipf(counts).expect("enough ranks");
        assert!((zipf.alpha - 0.8).abs() < 0.01 && zipf.fit > 0.999, "{zipf:?}");
        assert_eq!((zipf.from, zipf.to), (1, 10_000));
    }
}
