//! What paths differ by: paired by request, with intervals, and whether that is more than noise.

use super::group::place;
use super::report::LeapReport;
use foxy_report::{Interval, Statistic};

/// By how much one path is slower than another, over the requests that both answered, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedDifference {
    /// Places of the paths in the report: the first less the second.
    pub paths: (usize, usize),
    /// How many requests it comes from.
    pub requests: usize,
    /// Of the median difference.
    pub median: Interval,
    /// Of the mean difference.
    pub mean: Interval,
    /// Whether both are the same address, or set up alike, so that what differs is noise.
    pub same: bool,
}

/// What a difference means beside the noise floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Both are one address, or set up alike: whatever it is, it is noise.
    Noise,
    /// Its interval has zero in it.
    MayBeZero,
    /// No noise floor is known.
    Unknown,
    /// It is not beyond the noise floor.
    Within,
    /// It is beyond both.
    Differs,
}

impl Meaning {
    /// In a few words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Noise => "this is noise",
            Self::MayBeZero => "may be zero",
            Self::Unknown => "unknown",
            Self::Within => "within",
            Self::Differs => "differs",
        }
    }
}

impl PairedDifference {
    /// What the median difference means beside this noise floor.
    #[must_use]
    pub fn meaning(&self, floor: Option<NoiseFloor>) -> Meaning {
        self.beside(self.median, floor.map(|floor| floor.median))
    }

    /// What the mean difference means beside this noise floor.
    #[must_use]
    pub fn meaning_of_mean(&self, floor: Option<NoiseFloor>) -> Meaning {
        self.beside(self.mean, floor.map(|floor| floor.mean))
    }

    fn beside(&self, found: Interval, floor: Option<f64>) -> Meaning {
        match floor {
            _ if self.same => Meaning::Noise,
            _ if !found.excludes_zero() => Meaning::MayBeZero,
            None => Meaning::Unknown,
            Some(floor) if found.value.abs() <= floor => Meaning::Within,
            Some(_) => Meaning::Differs,
        }
    }
}

impl LeapReport {
    /// The paired differences of all paths, in their order.
    #[must_use]
    pub fn differences(&self) -> Vec<PairedDifference> {
        let count = self.paths.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        pairs.filter_map(|pair| self.difference(pair)).collect()
    }

    fn difference(&self, (one, other): (usize, usize)) -> Option<PairedDifference> {
        let pair = |(_, row): &(u64, Vec<Option<u32>>)| Some(f64::from(row[one]?) - f64::from(row[other]?));
        let values: Vec<f64> = self.rows.iter().filter_map(pair).collect();
        let (first, second) = (&self.targets[one], &self.targets[other]);
        Some(PairedDifference {
            paths: (one, other),
            requests: values.len(),
            median: Interval::over_time(&values, Statistic::Median, self.seed)?,
            mean: Interval::over_time(&values, Statistic::Mean, self.seed)?,
            same: (first.address == second.address && first.manner == second.manner)
                || self.alike.contains(&(one, other)),
        })
    }

    /// The times of two paths in microseconds, of the requests that both answered: first of the one that was sent earlier.
    #[must_use]
    pub fn as_sent(&self, (one, other): (usize, usize)) -> Vec<[f64; 2]> {
        let count = self.paths.len();
        let pair = |(number, row): &(u64, Vec<Option<u32>>)| {
            let (first, second) = (f64::from(row[one]?), f64::from(row[other]?));
            let earlier = place(*number, one, count) < place(*number, other, count);
            Some(if earlier { [first, second] } else { [second, first] })
        };
        self.rows.iter().filter_map(pair).collect()
    }
}

/// What two paths to one address, or to proxies set up alike, differ by at most, in microseconds; a difference below it says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// In the median.
    pub median: f64,
    /// In the mean.
    pub mean: f64,
}

/// The noise floor: the farthest end of the intervals of all pairs that are the same. None when there is no such pair.
#[must_use]
pub fn noise_floor(differences: &[PairedDifference]) -> Option<NoiseFloor> {
    let farthest = |of: fn(&PairedDifference) -> Interval| {
        let end = |pair| {
            let found = of(pair);
            found.low.abs().max(found.high.abs())
        };
        differences.iter().filter(|pair| pair.same).map(end).reduce(f64::max)
    };
    Some(NoiseFloor { median: farthest(|pair| pair.median)?, mean: farthest(|pair| pair.mean)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_interval_and_floor_differs() {
        let difference = |low, high, same| {
            let interval = Interval { value: f64::midpoint(low, high), low, high };
            PairedDifference { paths: (0, 1), requests: 9, median: interval, mean: interval, same }
        };
        let (clear, unsure) = (difference(4.0, 6.0, false), difference(-1.0, 6.0, false));
        let floor = |median| Some(NoiseFloor { median, mean: 5.5 });
        assert_eq!(clear.meaning(floor(3.0)), Meaning::Differs);
        assert_eq!(clear.meaning(floor(5.0)), Meaning::Within);
        assert_eq!(clear.meaning_of_mean(floor(3.0)), Meaning::Within);
        assert_eq!(clear.meaning(None), Meaning::Unknown);
        assert_eq!(unsure.meaning(floor(1.0)), Meaning::MayBeZero);
        assert_eq!(difference(4.0, 6.0, true).meaning(floor(1.0)), Meaning::Noise);
        let found = noise_floor(&[clear, difference(-7.0, 6.0, true)]);
        assert_eq!(found, Some(NoiseFloor { median: 7.0, mean: 7.0 }));
    }
}
