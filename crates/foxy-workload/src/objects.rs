//! The workload model `objects/1`: all objects have one size. The knobs set their number and their
//! popularity, which is how often each is requested.

use crate::distribution::Zipf;
use crate::knobs::{Knobs, WorkloadError};
use crate::object::Object;
use foxy_base::Random;

/// Largest number of objects with Zipf popularity. Each takes eight bytes of memory.
pub const MAX_RANKED_OBJECTS: u64 = 100_000_000;

/// The way in which the next object is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Each request asks for a new object.
    AllNew,
    /// All objects are equally likely.
    Uniform,
    /// Requests ask for all objects in order, again and again.
    InOrder,
    /// Requests ask for all objects in order, again and again. The numbers of the objects start at
    /// `first`.
    Window {
        /// Number of the first object.
        first: u64,
    },
    /// Zipf's law: the object of rank k is requested with a probability proportional to
    /// k^-exponent.
    Zipf {
        /// Exponent of Zipf's law. Published traces of proxies have exponents from 0.57 to 0.83.
        exponent: f64,
    },
}

/// The knobs of the model `objects/1`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// Number of objects.
    pub objects: u64,
    /// Body length of each object in bytes.
    pub size: u64,
    /// Rule that chooses the next object.
    pub popularity: Popularity,
    /// Whether every object is requested once before the measurement.
    pub warm_up: bool,
}

impl Objects {
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
            let right =
                format!("a number up to {MAX_RANKED_OBJECTS}, or a popularity other than zipf");
            return Err(knobs.refusal("objects", objects, &right));
        }
        Ok(read)
    }

    /// Returns whether the number of objects with Zipf popularity exceeds [`MAX_RANKED_OBJECTS`].
    pub fn are_too_many(&self) -> bool {
        matches!(self.popularity, Popularity::Zipf { .. }) && self.objects > MAX_RANKED_OBJECTS
    }

    /// Returns these objects as a workload that requests them in order, without a warm-up.
    pub fn in_order(&self) -> Self {
        Self { popularity: Popularity::InOrder, warm_up: false, ..self.clone() }
    }
}

/// The requested objects, as a function of seed and request number.
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

    /// Returns the object of request `number`, counted from 0.
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
