//! Synthetic traces of a catalogue: objects asked for independently by Zipf's law, renewed over
//! time, and others asked for once. They stand in for a content network's edge and for a package
//! registry; a proxy's traces need [`synthetic`](super::synthetic), which remembers. Never to be
//! shown without the label "synthetic".

use super::{Get, Names, Trace};
use foxy_base::Random;

/// What a catalogue's traffic is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Catalogue {
    /// Its name.
    pub name: &'static str,
    /// Gets of a full trace.
    pub gets: usize,
    /// Objects in the catalogue at any time.
    pub objects: usize,
    /// Zipf's exponent.
    pub exponent: f64,
    /// The share of gets for objects outside the catalogue that are never asked for again.
    pub once: f64,
    /// How many times over the catalogue is renewed in a full trace.
    pub renewals: f64,
    /// The share of objects that are metadata, lognormal with this median in bytes and a spread of
    /// one.
    pub metadata: (f64, f64),
    /// The others are lognormal: median in bytes and spread of the logarithm.
    pub body: (f64, f64),
    /// Bytes of the largest object; a twentieth of those that are no metadata is in a Pareto tail
    /// up to it.
    pub largest: f64,
}

/// A content network's edge. Three objects of four are asked for once (Maggs and Sitaraman,
/// Algorithmic Nuggets in Content Delivery, 2015, saw 74 %); the exponent is at the upper end of
/// what proxies had; the sizes are a choice.
pub const CDN: Catalogue = Catalogue {
    name: "cdn",
    gets: 1_000_000,
    objects: 150_000,
    exponent: 0.9,
    once: 0.22,
    renewals: 1.0,
    metadata: (0.0, 0.0),
    body: (12e3, 1.6),
    largest: 64e6,
};

/// A package registry's: more than half of the objects are small metadata, a few archives hold most
/// bytes. All its numbers are a choice.
pub const REGISTRY: Catalogue = Catalogue {
    name: "registry",
    gets: 600_000,
    objects: 120_000,
    exponent: 0.95,
    once: 0.05,
    renewals: 0.5,
    metadata: (0.55, 2.5e3),
    body: (40e3, 1.8),
    largest: 200e6,
};

/// The share of bodies in the Pareto tail, its exponent, and where it begins in multiples of the
/// median.
const TAIL: (f64, f64, f64) = (0.05, 1.1, 4.0);
/// Bytes of the smallest object.
const SMALLEST: f64 = 64.0;

struct Generator<'a> {
    model: &'a Catalogue,
    random: Random,
    /// By URL.
    sizes: Vec<u64>,
    /// By rank of popularity: the URL, once it was asked for.
    ranks: Vec<Option<u32>>,
    /// Sums of the weights of all ranks up to each.
    sums: Vec<f64>,
}

impl Catalogue {
    /// Makes a trace of so many gets; one that is shorter than a full trace has a catalogue that is
    /// smaller by as much.
    pub fn generate(&self, gets: usize, seed: u64) -> Trace {
        let scale = gets as f64 / self.gets as f64;
        let objects = ((self.objects as f64 * scale) as usize).max(1);
        let mut sum = 0.0;
        let weight = |rank: usize| {
            sum += (rank as f64).powf(-self.exponent);
            sum
        };
        let mut generator = Generator {
            model: self,
            random: Random::new(seed),
            sizes: Vec::new(),
            ranks: vec![None; objects],
            sums: (1..=objects).map(weight).collect(),
        };
        let renewed = self.renewals * objects as f64 / gets.max(1) as f64;
        let list = (0..gets).map(|number| generator.get(number, renewed)).collect();
        let sites = vec![0; generator.sizes.len()];
        Trace {
            gets: list,
            others: Vec::new(),
            start: 0,
            sites,
            names: Names::Numbered,
            clients: 1,
            site_count: 1,
        }
    }
}

impl Generator<'_> {
    fn get(&mut self, number: usize, renewed: f64) -> Get {
        if self.random.chance(renewed) {
            let rank = self.random.below(self.ranks.len() as u64) as usize;
            self.ranks[rank] = None;
        }
        let url = if self.random.chance(self.model.once) { self.object() } else { self.popular() };
        Get { time: number as u64, client: 0, url, size: self.sizes[url as usize] }
    }

    fn popular(&mut self) -> u32 {
        let place = self.random.unit() * self.sums.last().copied().unwrap_or(0.0);
        let rank = self.sums.partition_point(|&sum| sum <= place).min(self.ranks.len() - 1);
        let url = self.ranks[rank].unwrap_or_else(|| self.object());
        self.ranks[rank] = Some(url);
        url
    }

    fn object(&mut self) -> u32 {
        let size = self.size().clamp(SMALLEST, self.model.largest);
        self.sizes.push(size as u64);
        self.sizes.len() as u32 - 1
    }

    fn size(&mut self) -> f64 {
        let ((metadata, small), (median, spread)) = (self.model.metadata, self.model.body);
        let (tail, exponent, begin) = TAIL;
        if self.random.chance(metadata) {
            small * self.normal().exp()
        } else if self.random.chance(tail) {
            median * begin * (1.0 - self.random.unit()).powf(-1.0 / exponent)
        } else {
            median * (spread * self.normal()).exp()
        }
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.random.unit(), self.random.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Statistics;

    #[test]
    fn a_seed_decides_the_whole_trace() {
        let gets = |seed| CDN.generate(2000, seed).gets;
        assert_eq!(gets(1), gets(1));
        assert_ne!(gets(1), gets(2));
    }

    #[test]
    fn a_content_networks_objects_are_mostly_asked_for_once() {
        let found = Statistics::of(&CDN.generate(100_000, 1));
        assert!((0.70..0.80).contains(&found.once), "{}", found.once);
        assert!((0.6..0.7).contains(&found.infinite.gets), "{:?}", found.infinite);
    }

    #[test]
    fn a_registry_has_many_small_objects_and_a_few_that_hold_most_bytes() {
        let trace = REGISTRY.generate(100_000, 1);
        let mut sizes: Vec<u64> = vec![0; trace.urls()];
        trace.gets.iter().for_each(|get| sizes[get.url as usize] = get.size);
        sizes.sort_unstable();
        let bytes: u64 = sizes.iter().sum();
        let largest: u64 = sizes.iter().rev().take(sizes.len() / 50).sum();
        assert!(sizes[sizes.len() / 2] < 10_000, "the median is {}", sizes[sizes.len() / 2]);
        assert!(largest * 2 > bytes, "a fiftieth of the objects holds {largest} of {bytes} bytes");
    }
}
