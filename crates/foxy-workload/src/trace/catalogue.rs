//! Generates synthetic traces of a catalogue, a set of objects, as on the edge of a content network
//! or in a package registry. Requests are independent of each other, and choose objects of the
//! catalogue by Zipf's law. Over time, new objects replace objects of the catalogue. Some requests
//! are for objects outside the catalogue, each requested once. For traces of proxies, use
//! [`synthetic`](super::synthetic). Reports must label the traces "synthetic".

use super::{Get, Names, Trace};
use crate::distribution::{Zipf, normal};
use foxy_base::Random;

/// The parameters of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Catalogue {
    /// Name in reports.
    pub name: &'static str,
    /// Number of GET requests in a trace at full length.
    pub gets: usize,
    /// Number of objects in the catalogue at any time, in a trace at full length.
    pub objects: usize,
    /// Exponent of Zipf's law.
    pub exponent: f64,
    /// Share of GET requests for objects outside the catalogue. Each of these objects is requested
    /// once.
    pub once: f64,
    /// Number of objects that are replaced during a trace, as a multiple of the objects in the
    /// catalogue.
    pub renewals: f64,
    /// Share of metadata objects, and the median of their sizes in bytes. Sizes are lognormal, and
    /// the standard deviation of their logarithm is 1.
    pub metadata: (f64, f64),
    /// Median size in bytes of objects that are not metadata, and the standard deviation of the
    /// size's logarithm.
    pub body: (f64, f64),
    /// Largest size in bytes. A twentieth of the objects that are not metadata have sizes from a
    /// Pareto distribution, cut at this size.
    pub largest: f64,
}

/// The edge of a content network. Three of four objects are requested only once. Maggs and
/// Sitaraman (Algorithmic Nuggets in Content Delivery, 2015) measured 74 %. The Zipf exponent is
/// among the largest that were measured for proxies. The sizes are our choice.
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

/// A package registry. Over half of its objects are small metadata, and a few archives have most
/// bytes. All numbers are our choice.
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

/// A popular site's own log. Each of its few objects is requested about fifty times. A store that is
/// small beside the site discards all its content every few minutes. All numbers are our choice.
pub const SITE: Catalogue = Catalogue {
    name: "site",
    gets: 97_000,
    objects: 2_000,
    exponent: 0.9,
    once: 0.0,
    renewals: 0.0,
    metadata: (0.0, 0.0),
    body: (8e3, 1.5),
    largest: 20e6,
};

const TAIL_SHARE: f64 = 0.05;
const TAIL_EXPONENT: f64 = 1.1;
/// Smallest size in the Pareto distribution of large objects, as a multiple of the median size.
const TAIL_START: f64 = 4.0;
const MIN_SIZE_BYTES: f64 = 64.0;

struct Generator<'a> {
    model: &'a Catalogue,
    random: Random,
    /// Size of each URL in bytes.
    sizes: Vec<u64>,
    /// URL number of the object at each popularity rank, or `None` before its first request.
    ranks: Vec<Option<u32>>,
    zipf: Zipf,
}

impl Catalogue {
    /// Generates a trace with `gets` requests. The size of the catalogue is proportional to `gets`.
    pub fn generate(&self, gets: usize, seed: u64) -> Trace {
        let scale = gets as f64 / self.gets as f64;
        let objects = ((self.objects as f64 * scale) as usize).max(1);
        let mut generator = Generator {
            model: self,
            random: Random::new(seed),
            sizes: Vec::new(),
            ranks: vec![None; objects],
            zipf: Zipf::new(objects as u64, self.exponent),
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
        let rank = self.zipf.rank(self.random.unit()) as usize;
        let url = self.ranks[rank].unwrap_or_else(|| self.object());
        self.ranks[rank] = Some(url);
        url
    }

    fn object(&mut self) -> u32 {
        let size = self.size().clamp(MIN_SIZE_BYTES, self.model.largest);
        self.sizes.push(size as u64);
        self.sizes.len() as u32 - 1
    }

    fn size(&mut self) -> f64 {
        let ((metadata, small), (median, spread)) = (self.model.metadata, self.model.body);
        if self.random.chance(metadata) {
            small * normal(&mut self.random, 0.0, 1.0).exp()
        } else if self.random.chance(TAIL_SHARE) {
            median * TAIL_START * (1.0 - self.random.unit()).powf(-1.0 / TAIL_EXPONENT)
        } else {
            median * (spread * normal(&mut self.random, 0.0, 1.0)).exp()
        }
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
    fn a_popular_site_has_few_objects_that_are_all_asked_for_again() {
        let found = Statistics::of(&SITE.generate(SITE.gets, 1));
        assert!(found.once < 0.01 && found.infinite.gets > 0.97, "{found:?}");
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
