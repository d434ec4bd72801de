//! The request stream of PolyMix-4: new and repeated documents, methods and conditions.

use super::PolyMix4;
use super::collection::Collection;
use super::content::{Document, Kind, World};
use super::phases::Factors;
use foxy_base::Random;

/// Probability that a request repeats a document. Then 55 % of all requests can be hits, because 80
/// % of the documents are cachable.
const RECURRENCE: f64 = 0.55 / 0.80;
pub(super) const POST_SHARE: f64 = 0.015;
pub(super) const HEAD_SHARE: f64 = 0.001;

/// The method and conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A plain GET.
    Basic,
    /// GET with an If-Modified-Since date before the document's last change. The response must be
    /// the whole document.
    SinceBefore,
    /// GET with the date of the document's last change as If-Modified-Since. The response must be
    /// 304.
    SinceThen,
    /// GET that bypasses caches.
    Reload,
    /// POST, which is never a hit.
    Post,
    /// HEAD.
    Head,
}

/// A request for a page or single document, without its images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub document: Document,
    pub manner: Manner,
    pub repeat: bool,
}

/// The requests of all robots (clients). As in Web Polygraph, each server has its own documents.
#[derive(Clone, Debug)]
pub(crate) struct PolyMixStream {
    random: Random,
    world: World,
    /// The documents of each server, for each type in [`Kind::DIRECT`].
    servers: Vec<[Collection; 3]>,
    /// Number of cachable misses that one phase must have until the working set (the documents that
    /// requests repeat) is frozen.
    growth: u64,
    /// Number of cachable misses that the current phase must still have until the working set
    /// (documents that requests repeat) is frozen.
    left: u64,
}

impl PolyMixStream {
    /// Starts the stream of requests. `seed` also becomes the world number in the documents' names.
    pub fn new(knobs: &PolyMix4, seed: u64) -> Self {
        let world =
            World { number: seed, time_scale: knobs.time_scale, delay_scale: knobs.delay_scale };
        let servers = vec![[Collection::default(); 3]; knobs.origins() as usize];
        let growth = knobs.working_set();
        Self { random: Random::new(seed), world, servers, growth, left: growth }
    }

    /// Returns whether the working set (documents that requests repeat) has reached its final size.
    pub const fn is_frozen(&self) -> bool {
        self.left == 0
    }

    /// Begins a phase. The misses of the phase are counted from 0.
    pub const fn begin_phase(&mut self) {
        if !self.is_frozen() {
            self.left = self.growth;
        }
    }

    pub fn next_start(&mut self, factors: &Factors) -> Start {
        let count = self.servers.len() as u64;
        let server = self.random.below(count);
        let place = self.place();
        let (world, container) = (self.world, Kind::DIRECT[place].0);
        let document =
            |number| Document { world, container, number: number * count + server, image: 0 };
        let repeat = self.random.chance(RECURRENCE * factors.recurrence);
        let index = usize::try_from(server).expect("a server's number");
        let collection = &mut self.servers[index][place];
        let repeat = repeat && collection.can_repeat();
        let number = if repeat {
            collection.repeat(&mut self.random, |number| document(number).nature())
        } else {
            collection.add()
        };
        let manner = self.manner(factors.special);
        let start = Start { document: document(number), manner, repeat };
        self.grow(&start);
        start
    }

    /// Draws a type of document. Returns its index in [`Kind::DIRECT`].
    fn place(&mut self) -> usize {
        let all: u32 = Kind::DIRECT.iter().map(|(_, share)| share).sum();
        let mut point = self.random.below(u64::from(all));
        let mut place = 0;
        while point >= u64::from(Kind::DIRECT[place].1) {
            point -= u64::from(Kind::DIRECT[place].1);
            place += 1;
        }
        place
    }

    /// Counts the cachable misses that `start` and its images cause, if `start` is a plain GET of
    /// new documents. Freezes the working set (documents that requests repeat) when the phase has
    /// enough of them.
    fn grow(&mut self, start: &Start) {
        if self.is_frozen() || start.repeat || start.manner != Manner::Basic {
            return;
        }
        let images = 0..=start.document.images();
        let cachable = images.filter(|&image| start.document.with_image(image).nature().cachable);
        self.left = self.left.saturating_sub(cachable.count() as u64);
        if self.is_frozen() {
            self.servers.iter_mut().flatten().for_each(Collection::freeze);
        }
    }

    /// Draws method and conditions of a request. `special` multiplies the shares of everything
    /// except plain GETs.
    fn manner(&mut self, special: f64) -> Manner {
        let method = self.random.unit();
        let point = self.random.unit();
        if method < POST_SHARE * special {
            Manner::Post
        } else if method < (POST_SHARE + HEAD_SHARE) * special {
            Manner::Head
        } else if point < 0.05 * special {
            Manner::SinceBefore
        } else if point < 0.15 * special {
            Manner::SinceThen
        } else if point < 0.20 * special {
            Manner::Reload
        } else {
            Manner::Basic
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Model, Workload};
    use std::collections::HashSet;

    const FULL: Factors = Factors::full(1.0);

    /// Returns a stream at full scale. There, 100,000 starts are too few to freeze the working set
    /// (documents that requests repeat). A start is a request for a page or a single document.
    fn stream(seed: u64) -> PolyMixStream {
        match Workload::find("polymix-4").expect("known").model {
            Model::PolyMix4(knobs) => {
                PolyMixStream::new(&PolyMix4 { time_scale: 1, ..knobs }, seed)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn same_seed_gives_the_same_requests() {
        let starts = |seed| {
            let mut stream = stream(seed);
            (0..300).map(|_| stream.next_start(&FULL)).collect::<Vec<_>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
    }

    /// Counts over many starts and their requests. A start is a request for a page or a single
    /// document. With its images, it has about 2.9 requests, which depend on each other.
    #[derive(Default)]
    struct Seen {
        requests: f64,
        plain: f64,
        plain_bytes: f64,
        offered: f64,
        offered_bytes: f64,
        starts: f64,
        manners: [f64; 6],
    }

    /// Generates twice `starts` starts (requests for a page or single document) with `factors`.
    /// Returns the totals of the second half. The first half only makes documents known, so that
    /// later requests can repeat them.
    fn look(starts: u32, factors: &Factors) -> Seen {
        let mut stream = stream(11);
        let (mut seen, mut known) = (Seen::default(), HashSet::new());
        for number in 0..2 * starts {
            let start = stream.next_start(factors);
            assert_eq!(!known.insert(start.document), start.repeat, "{}", start.document);
            if number < starts {
                continue;
            }
            seen.starts += 1.0;
            seen.manners[start.manner as usize] += 1.0;
            let images = match start.manner {
                Manner::Post | Manner::Head => 0,
                _ => start.document.images(),
            };
            for image in 0..=images {
                seen.requests += 1.0;
                let nature = start.document.with_image(image).nature();
                if start.manner == Manner::Basic {
                    let bytes = f64::from(u32::try_from(nature.size).expect("small"));
                    seen.plain += 1.0;
                    seen.plain_bytes += bytes;
                    if start.repeat && nature.cachable {
                        seen.offered += 1.0;
                        seen.offered_bytes += bytes;
                    }
                }
            }
        }
        seen
    }

    /// Tests that 55 % of the plain GETs can be hits, once each server has documents. The tolerance
    /// is 0.8 %, four standard deviations for 100,000 starts. A start is a request for a page or a
    /// single document, with up to 13 requests for images. The share of hits among the requests of
    /// a start deviates by about 0.45.
    #[test]
    fn the_offered_hit_ratio_is_that_of_the_model_and_bytes_hit_less() {
        let seen = look(100_000, &FULL);
        let (documents, bytes) = (seen.offered / seen.plain, seen.offered_bytes / seen.plain_bytes);
        assert!((0.542..=0.558).contains(&documents), "{documents}");
        assert!(bytes < documents - 0.05, "byte hit ratio {bytes}, document hit ratio {documents}");
        let per_start = seen.requests / seen.starts;
        let expected = super::super::requests_per_start();
        assert!(
            (per_start / expected - 1.0).abs() < 0.02,
            "{per_start} requests a start, {expected} expected"
        );
    }

    #[test]
    fn one_phase_must_have_all_misses_that_freeze_the_working_set() {
        let starts = |phases: usize| {
            let mut stream = stream(3);
            (stream.growth, stream.left) = (1000, 1000);
            for number in 1.. {
                stream.next_start(&FULL);
                if stream.is_frozen() {
                    return number;
                }
                if number < phases * 100 && number % 100 == 0 {
                    stream.begin_phase();
                }
            }
            0
        };
        assert!((400..1500).contains(&starts(0)), "{}", starts(0));
        assert!(starts(20) > 2000);
    }

    #[test]
    fn manners_have_their_shares() {
        for special in [1.0, 0.1] {
            let seen = look(50_000, &Factors { special, ..FULL });
            let methods = (POST_SHARE + HEAD_SHARE) * special;
            let conditions = [0.05, 0.10, 0.05].map(|share| share * special * (1.0 - methods));
            let [before, then, reload] = conditions;
            let plain = 1.0 - methods - before - then - reload;
            let expected =
                [plain, before, then, reload, POST_SHARE * special, HEAD_SHARE * special];
            for (count, share) in seen.manners.iter().zip(expected) {
                // Each count may differ from its expected value by four standard deviations.
                let tolerance = 4.0 * (seen.starts * share * (1.0 - share)).sqrt();
                assert!((count - seen.starts * share).abs() < tolerance, "{:?}", seen.manners);
            }
        }
    }

    #[test]
    fn servers_get_equally_many_requests() {
        let mut stream = stream(5);
        let servers = u32::try_from(stream.servers.len()).expect("few");
        let mut counts = vec![0u32; servers as usize];
        for _ in 0..100 * servers {
            counts[stream.next_start(&FULL).document.server(servers) as usize] += 1;
        }
        // Each server should get 100 requests. A difference of 50 is five standard deviations.
        assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
    }
}
