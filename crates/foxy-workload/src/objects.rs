//! The model `objects/1`: a number of objects of one size, and how the next is chosen among them.

use crate::knobs::{Knobs, WorkloadError};
use crate::object::Object;
use foxy_base::Random;

/// How many objects can have a popularity of their own, each of which takes eight bytes of memory.
pub const MOST_RANKED: u64 = 100_000_000;

/// How the next object is chosen.
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

/// The knobs of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// How many different objects.
    pub objects: u64,
    /// Body length of each, in bytes.
    pub size: u64,
    /// How the next one is chosen.
    pub popularity: Popularity,
    /// Whether every object is asked for once, unmeasured, before the measurement.
    pub warm_up: bool,
}

impl Objects {
    /// Takes the model's knobs.
    pub(crate) fn read(knobs: &mut Knobs) -> Result<Self, WorkloadError> {
        let objects = knobs.count("objects")?;
        let size = knobs.size("size")?;
        let zipf = Popularity::Zipf { exponent: 0.0 };
        let choices = [
            ("all-new", Popularity::AllNew),
            ("uniform", Popularity::Uniform),
            ("in-order", Popularity::InOrder),
            ("zipf", zipf),
        ];
        let popularity = match knobs.choice("popularity", &choices)? {
            Popularity::Zipf { .. } => {
                Popularity::Zipf { exponent: knobs.number("zipf-exponent")? }
            }
            popularity => popularity,
        };
        let read = Self { objects, size, popularity, warm_up: knobs.flag("warm-up")? };
        if read.are_too_many() {
            let right = format!("a number up to {MOST_RANKED}, or another popularity than zipf");
            return Err(knobs.refusal("objects", objects, &right));
        }
        Ok(read)
    }

    /// Whether there are more of them than can have a popularity of their own.
    pub fn are_too_many(&self) -> bool {
        matches!(self.popularity, Popularity::Zipf { .. }) && self.objects > MOST_RANKED
    }

    /// The same objects, each once, in order, without a warm-up.
    pub fn in_order(&self) -> Self {
        Self { popularity: Popularity::InOrder, warm_up: false, ..self.clone() }
    }
}

/// Says which object each request asks for: a function of the seed and the request's number.
#[derive(Clone, Debug)]
pub(crate) struct ObjectStream {
    objects: Objects,
    seed: u64,
    zipf: Option<Zipf>,
}

impl ObjectStream {
    pub(crate) fn new(objects: &Objects, seed: u64) -> Self {
        let zipf = match objects.popularity {
            Popularity::Zipf { exponent } => Some(Zipf::new(objects.objects, exponent)),
            _ => None,
        };
        Self { objects: objects.clone(), seed, zipf }
    }

    /// The object that request `number` asks for, counted from 0.
    pub(crate) fn object_at(&self, number: u64) -> Object {
        let objects = self.objects.objects.max(1);
        let mut random = Random::new(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let id = match (self.objects.popularity, &self.zipf) {
            (Popularity::Zipf { .. }, Some(zipf)) => zipf.rank(random.unit()),
            (Popularity::AllNew, _) => number,
            (Popularity::InOrder, _) => number % objects,
            (Popularity::Window { first }, _) => first + number % objects,
            _ => random.below(objects),
        };
        Object { id, size: self.objects.size, version: 1 }
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

    fn ids(objects: u64, popularity: Popularity, seed: u64, count: u64) -> Vec<u64> {
        let objects = Objects { objects, size: 8, popularity, warm_up: false };
        let stream = ObjectStream::new(&objects, seed);
        (0..count).map(|number| stream.object_at(number).id).collect()
    }

    #[test]
    fn same_seed_gives_the_same_requests() {
        let uniform = |seed| ids(1000, Popularity::Uniform, seed, 100);
        assert_eq!(uniform(5), uniform(5));
        assert_ne!(uniform(5), uniform(6));
    }

    #[test]
    fn a_fill_never_repeats() {
        assert_eq!(ids(10, Popularity::AllNew, 1, 1000), (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn a_window_walks_its_own_objects() {
        assert_eq!(ids(3, Popularity::Window { first: 90 }, 1, 4), [90, 91, 92, 90]);
    }

    #[test]
    fn zipf_gives_the_first_rank_its_share() {
        let draws = 100_000;
        let ids = ids(10_000, Popularity::Zipf { exponent: 0.8 }, 1, draws);
        let first = ids.iter().filter(|&&id| id == 0).count();
        let weights: f64 = (1..=10_000).map(|rank| f64::from(rank).powf(-0.8)).sum();
        let expected = f64::from(u32::try_from(draws).expect("small")) / weights;
        let ratio = f64::from(u32::try_from(first).expect("small")) / expected;
        assert!((0.9..1.1).contains(&ratio), "{first} draws of rank 1, {expected:.0} expected");
    }
}
