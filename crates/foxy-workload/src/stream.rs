//! Named workloads and the request streams they make: which object comes next.

use crate::object::Object;
use foxy_base::Random;

/// How the next object is chosen among those of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Every request asks for an object never asked for before.
    AllNew,
    /// Each of `objects` equally likely.
    Uniform,
    /// Each once, in order, then again from the first.
    InOrder,
    /// Each of `objects` once, in order, counted from `first`, then again.
    Window {
        /// Number of the first object.
        first: u64,
    },
    /// Object of rank k with weight k^-exponent.
    Zipf {
        /// The exponent; 0.57–0.83 in proxies' traces.
        exponent: f64,
    },
}

/// A named workload. The knobs are in sight; what they do not name is fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// How many different objects.
    pub objects: u64,
    /// Body length of each, in bytes.
    pub size: u64,
    /// How the next one is chosen.
    pub popularity: Popularity,
    /// Whether every object is asked for once, unmeasured, before the measurement.
    pub warm_up: bool,
}

/// Every workload `foxy load` knows. Sizes and counts are those of the peers' measurements this project compares with.
pub const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "memory-hit",
        about: "one small object over and over: what a hit costs",
        objects: 1,
        size: 1024,
        popularity: Popularity::Uniform,
        warm_up: true,
    },
    Workload {
        name: "disk-hit",
        about: "more objects than memory holds, each equally likely",
        objects: 200_000,
        size: 8192,
        popularity: Popularity::Uniform,
        warm_up: true,
    },
    Workload {
        name: "fill",
        about: "every object new: misses, stores and evictions",
        objects: 262_144,
        size: 8192,
        popularity: Popularity::AllNew,
        warm_up: false,
    },
    Workload {
        name: "zipf",
        about: "popular and rare objects, most in memory",
        objects: 10_000,
        size: 8192,
        popularity: Popularity::Zipf { exponent: 0.8 },
        warm_up: true,
    },
    Workload {
        name: "large",
        about: "a few objects of 100 MB",
        objects: 4,
        size: 100_000_000,
        popularity: Popularity::InOrder,
        warm_up: true,
    },
];

impl Workload {
    /// The workload of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        WORKLOADS.iter().find(|workload| workload.name == name).cloned()
    }
}

/// Says which object each request asks for: a function of the seed and the request's number, so that clients may
/// take numbers in any order and the requests are still the same.
#[derive(Clone, Debug)]
pub struct RequestStream {
    workload: Workload,
    seed: u64,
    zipf: Option<Zipf>,
}

impl RequestStream {
    /// A stream of `workload`, its choices made from `seed`.
    #[must_use]
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let zipf = match workload.popularity {
            Popularity::Zipf { exponent } => Some(Zipf::new(workload.objects, exponent)),
            _ => None,
        };
        Self { workload: workload.clone(), seed, zipf }
    }

    /// The object that request `number` asks for, counted from 0.
    #[must_use]
    pub fn object_at(&self, number: u64) -> Object {
        let objects = self.workload.objects.max(1);
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let id = match (self.workload.popularity, &self.zipf) {
            (Popularity::Zipf { .. }, Some(zipf)) => zipf.rank(random.unit()),
            (Popularity::AllNew, _) => number,
            (Popularity::InOrder, _) => number % objects,
            (Popularity::Window { first }, _) => first + number % objects,
            _ => random.below(objects),
        };
        self.object(id)
    }

    /// The object `id` of this workload.
    #[must_use]
    pub const fn object(&self, id: u64) -> Object {
        Object { id, size: self.workload.size, version: 1 }
    }
}

/// Ranks by cumulated weight; exact, O(log n) a draw.
#[derive(Clone, Debug)]
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    #[expect(clippy::cast_precision_loss, reason = "ranks are far below 2^53")]
    fn new(objects: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=objects.max(1)).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { cumulated: cumulated.collect() }
    }

    fn rank(&self, unit: f64) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or(1.0);
        let rank = self.cumulated.partition_point(|&sum| sum <= unit * total);
        rank.min(self.cumulated.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(name: &str, seed: u64, count: usize) -> Vec<u64> {
        let stream = RequestStream::new(&Workload::find(name).expect("known"), seed);
        (0..count as u64).map(|number| stream.object_at(number).id).collect()
    }

    #[test]
    fn same_seed_gives_the_same_requests() {
        assert_eq!(ids("disk-hit", 5, 100), ids("disk-hit", 5, 100));
        assert_ne!(ids("disk-hit", 5, 100), ids("disk-hit", 6, 100));
    }

    #[test]
    fn a_fill_never_repeats() {
        assert_eq!(ids("fill", 1, 1000), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_window_walks_its_own_objects() {
        let fill = Workload::find("fill").expect("known");
        let workload = Workload { popularity: Popularity::Window { first: 90 }, objects: 3, ..fill };
        let stream = RequestStream::new(&workload, 1);
        let ids: Vec<u64> = (0..4).map(|number| stream.object_at(number).id).collect();
        assert_eq!(ids, [90, 91, 92, 90]);
    }

    #[test]
    fn zipf_gives_the_first_rank_its_share() {
        let draws = 100_000;
        let first = ids("zipf", 1, draws).iter().filter(|&&id| id == 0).count();
        let weights: f64 = (1..=10_000).map(|rank| f64::from(rank).powf(-0.8)).sum();
        let expected = f64::from(u32::try_from(draws).expect("small")) / weights;
        let ratio = f64::from(u32::try_from(first).expect("small")) / expected;
        assert!((0.9..1.1).contains(&ratio), "{first} draws of rank 1, {expected:.0} expected");
    }

    #[test]
    fn names_are_unique() {
        for (index, workload) in WORKLOADS.iter().enumerate() {
            assert_eq!(WORKLOADS.iter().position(|other| other.name == workload.name), Some(index));
        }
    }
}
