//! Compares the response times of two paths (proxies or the origin), request by request. Computes
//! confidence intervals of the differences for all requests and for each class of requests. Also
//! computes the noise floor: the largest difference between paths that are equal.

use super::LeapReport;
use super::Sample;
use crate::leap::multiplier::group::place;
use crate::named::named;
use crate::parallel::run_all;
use foxy_report::{Interval, Statistic};

/// The smallest number of requests in a class for a confidence interval. Intervals from fewer
/// requests are unreliable.
const LEAST: usize = 50;

/// The differences between the response times of two paths, in microseconds, over the requests that
/// both paths answered.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedDifference {
    /// The two paths (proxies or the origin). The difference is the time of the first minus the
    /// time of the second.
    pub paths: (usize, usize),
    /// The class of the requests (such as hits on both paths). `None` means all requests.
    pub class: Option<Class>,
    /// The number of requests that the intervals use.
    pub requests: usize,
    /// The confidence interval of the median difference.
    pub median: Interval,
    /// The confidence interval of the mean difference.
    pub mean: Interval,
    /// Whether both paths have the same address or the same configuration. If so, any difference is
    /// noise.
    pub same: bool,
}

/// The meaning of a difference between two paths, after comparison with the noise floor (the
/// largest difference between equal paths).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Both times belong to the same proxy, or to proxies with the same configuration. So the
    /// difference is noise.
    Noise,
    /// One of the two proxies had a hit and the other a miss, which explains the difference.
    Uneven,
    /// The confidence interval contains zero, so there may be no difference.
    MayBeZero,
    /// The run has no two equal paths. So the noise floor (the largest difference between equal
    /// paths) is unknown, and the meaning too.
    Unknown,
    /// The difference is within the noise floor (the largest difference between equal paths), so it
    /// may be noise.
    Within,
    /// The difference is larger than the noise floor (the largest difference between equal paths),
    /// so it is real.
    Differs,
}

impl Meaning {
    /// Returns a short description of the meaning, for reports.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Noise => "this is noise",
            Self::Uneven => "hit beside miss",
            Self::MayBeZero => "may be zero",
            Self::Unknown => "unknown",
            Self::Within => "within",
            Self::Differs => "differs",
        }
    }
}

impl PairedDifference {
    /// Returns the meaning of the median difference.
    pub fn meaning(&self, floor: Option<NoiseFloor>) -> Meaning {
        self.beside(self.median, floor.map(|floor| floor.median))
    }

    /// Returns the meaning of the mean difference.
    pub fn meaning_of_mean(&self, floor: Option<NoiseFloor>) -> Meaning {
        self.beside(self.mean, floor.map(|floor| floor.mean))
    }

    fn beside(&self, found: Interval, floor: Option<f64>) -> Meaning {
        match floor {
            _ if self.class.is_some_and(Class::is_uneven) => Meaning::Uneven,
            _ if self.same => Meaning::Noise,
            _ if !found.excludes_zero() => Meaning::MayBeZero,
            None => Meaning::Unknown,
            Some(floor) if found.value.abs() <= floor => Meaning::Within,
            Some(_) => Meaning::Differs,
        }
    }
}

impl LeapReport {
    /// Returns the differences of all pairs of paths (proxies or the origin), in their order.
    pub fn differences(&self) -> Vec<PairedDifference> {
        self.over(&[None])
    }

    /// Returns the differences of all pairs of paths by class of requests. Leaves out classes with
    /// fewer than `LEAST` requests.
    pub fn differences_by_class(&self) -> Vec<PairedDifference> {
        self.over(&Class::ALL.map(Some))
    }

    fn over(&self, classes: &[Option<Class>]) -> Vec<PairedDifference> {
        let count = self.paths.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        let pairs: Vec<_> = pairs.collect();
        let tasks = classes.iter().flat_map(|class| pairs.iter().map(|&pair| (pair, *class)));
        let tasks: Vec<_> = tasks.collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let found =
            run_all(&tasks, threads, &|&(pair, class)| self.difference(pair, class), &mut || {});
        found.into_iter().flatten().collect()
    }

    fn difference(
        &self,
        (one, other): (usize, usize),
        class: Option<Class>,
    ) -> Option<PairedDifference> {
        let pair = |(_, row): &(u64, Vec<Option<Sample>>)| {
            let (first, second) = (row[one]?, row[other]?);
            let counts = class.is_none_or(|class| class.holds(first, second));
            counts.then(|| f64::from(first.time) - f64::from(second.time))
        };
        let values: Vec<f64> = self.rows.iter().filter_map(pair).collect();
        if class.is_some() && values.len() < LEAST {
            return None;
        }
        let (first, second) = (&self.targets[one], &self.targets[other]);
        Some(PairedDifference {
            paths: (one, other),
            class,
            requests: values.len(),
            median: Interval::over_time(&values, Statistic::Median, self.seed)?,
            mean: Interval::over_time(&values, Statistic::Mean, self.seed)?,
            same: (first.address == second.address && first.manner == second.manner)
                || self.alike.contains(&(one, other)),
        })
    }

    /// Returns the response times in microseconds of the requests that both paths answered. Each
    /// pair begins with the time of the path (proxy or origin) that received the request first.
    pub fn as_sent(&self, (one, other): (usize, usize)) -> Vec<[f64; 2]> {
        let count = self.paths.len();
        let pair = |(number, row): &(u64, Vec<Option<Sample>>)| {
            let (first, second) = (f64::from(row[one]?.time), f64::from(row[other]?.time));
            let earlier = place(*number, one, count) < place(*number, other, count);
            Some(if earlier { [first, second] } else { [second, first] })
        };
        self.rows.iter().filter_map(pair).collect()
    }
}

/// The largest differences between paths with the same address or configuration, in microseconds. A
/// difference between other paths that is not larger may be noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// The largest difference in microseconds between the medians of paths with the same address or
    /// configuration.
    pub median: f64,
    /// The largest difference in microseconds between the means of paths with the same address or
    /// configuration.
    pub mean: f64,
}

/// Returns the noise floor over all requests. The floor is the largest absolute value at an end of
/// a confidence interval, among the pairs of equal paths (same address or configuration). Returns
/// `None` without such pairs.
pub fn noise_floor(differences: &[PairedDifference]) -> Option<NoiseFloor> {
    noise_floor_of(None, differences)
}

/// Returns the noise floor (the largest difference between equal paths) of a class of requests.
/// Returns `None` without pairs of equal paths, and for a class in which only one path had a hit.
pub fn noise_floor_of(
    class: Option<Class>,
    differences: &[PairedDifference],
) -> Option<NoiseFloor> {
    let farthest = |of: fn(&PairedDifference) -> Interval| {
        let end = |pair| {
            let found = of(pair);
            found.low.abs().max(found.high.abs())
        };
        let alike = |pair: &&PairedDifference| pair.same && pair.class == class;
        let alike =
            differences.iter().filter(alike).filter(|_| !class.is_some_and(Class::is_uneven));
        alike.map(end).reduce(f64::max)
    };
    Some(NoiseFloor { median: farthest(|pair| pair.median)?, mean: farthest(|pair| pair.mean)? })
}

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 64 << 10;

named! {
    /// A class of requests for the comparison of two paths (proxies or the origin). The first four
    /// classes tell which of the two paths answered from its cache. The last three classes group
    /// requests by body size. So a request may belong to two classes.
    pub enum Class {
        /// Both paths had hits.
        Hits = "hits",
        /// Both paths had misses.
        Misses = "misses",
        /// Only the first path had a hit.
        FirstHits = "first_hits",
        /// Only the second path had a hit.
        SecondHits = "second_hits",
        /// The body has at most 4 KiB.
        Small = "small",
        /// The body has more than 4 KiB and at most 64 KiB.
        Medium = "medium",
        /// The body has more than 64 KiB.
        Large = "large",
    }
}

impl Class {
    /// Returns a description of the class, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Hits => "hits on both",
            Self::Misses => "misses on both",
            Self::FirstHits => "hits on the first only",
            Self::SecondHits => "hits on the second only",
            Self::Small => "up to 4 KiB",
            Self::Medium => "up to 64 KiB",
            Self::Large => "above 64 KiB",
        }
    }

    /// Whether only one path had a hit. Then the hit alone explains a difference in time.
    pub const fn is_uneven(self) -> bool {
        matches!(self, Self::FirstHits | Self::SecondHits)
    }

    pub(crate) fn holds(self, first: Sample, second: Sample) -> bool {
        let hits = (first.hit, second.hit);
        match self {
            Self::Hits => hits == (Some(true), Some(true)),
            Self::Misses => hits == (Some(false), Some(false)),
            Self::FirstHits => hits == (Some(true), Some(false)),
            Self::SecondHits => hits == (Some(false), Some(true)),
            Self::Small => first.length <= SMALL,
            Self::Medium => first.length > SMALL && first.length <= LARGE,
            Self::Large => first.length > LARGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_interval_and_floor_differs() {
        let difference = |low, high, same| {
            let interval = Interval { value: f64::midpoint(low, high), low, high };
            PairedDifference {
                paths: (0, 1),
                class: None,
                requests: 9,
                median: interval,
                mean: interval,
                same,
            }
        };
        let (clear, unsure) = (difference(4.0, 6.0, false), difference(-1.0, 6.0, false));
        let floor = |median| Some(NoiseFloor { median, mean: 5.5 });
        assert_eq!(clear.meaning(floor(3.0)), Meaning::Differs);
        assert_eq!(clear.meaning(floor(5.0)), Meaning::Within);
        assert_eq!(clear.meaning_of_mean(floor(3.0)), Meaning::Within);
        assert_eq!(clear.meaning(None), Meaning::Unknown);
        assert_eq!(unsure.meaning(floor(1.0)), Meaning::MayBeZero);
        assert_eq!(difference(4.0, 6.0, true).meaning(floor(1.0)), Meaning::Noise);
        let noise = difference(-7.0, 6.0, true);
        let of_class = |class| PairedDifference { class: Some(class), ..noise.clone() };
        let (misses, uneven) = (of_class(Class::Misses), of_class(Class::FirstHits));
        assert_eq!((misses.meaning(None), uneven.meaning(None)), (Meaning::Noise, Meaning::Uneven));
        let found = noise_floor(&[clear.clone(), noise.clone()]);
        assert_eq!(found, Some(NoiseFloor { median: 7.0, mean: 7.0 }));
        let all = [clear, noise, misses, uneven];
        assert_eq!(noise_floor_of(Some(Class::Misses), &all), found);
        assert_eq!(noise_floor_of(Some(Class::FirstHits), &all), None);
        assert_eq!(noise_floor_of(Some(Class::Hits), &all), None);
    }

    #[test]
    fn a_request_is_of_one_class_by_hits_where_they_are_known_and_of_one_by_size() {
        let classes = |first, second, length| {
            let sample = |hit| Sample { time: 1, hit, length };
            let held =
                Class::ALL.into_iter().filter(|class| class.holds(sample(first), sample(second)));
            held.map(Class::name).collect::<Vec<_>>()
        };
        assert_eq!(classes(Some(true), Some(true), 4096), ["hits", "small"]);
        assert_eq!(classes(Some(false), Some(false), 4097), ["misses", "medium"]);
        assert_eq!(classes(Some(true), Some(false), 65_536), ["first_hits", "medium"]);
        assert_eq!(classes(Some(false), Some(true), 65_537), ["second_hits", "large"]);
        assert_eq!(classes(None, Some(true), 0), ["small"]);
    }
}
