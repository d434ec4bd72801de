//! The request stream of PolyMix-4: new and repeated documents, methods and conditions.

use super::PolyMix4;
use super::content::{Document, Kind, World};
use foxy_base::Random;

/// Probability that a request repeats a document. 55 % of all requests must be hits, and 80 % are
/// cachable.
const RECURRENCE: f64 = 0.55 / 0.80;
pub(super) const POST_SHARE: f64 = 0.015;
pub(super) const HEAD_SHARE: f64 = 0.001;
/// Share of repeated requests that ask for a document of the hot set.
const HOT_CHANCE: f64 = 0.10;
/// The hot set has the size of the working set divided by this number.
const HOT_DIVISOR: u64 = 100;
/// Probability that a repeated request asks for a neighbour of the drawn document instead. The
/// request then asks for the neighbour with the smallest body among the cachable neighbours.
const NEIGHBOUR_CHANCE: f64 = 0.90;
/// Number of neighbours on each side of a document.
const NEIGHBOURS: u64 = 4;

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

#[derive(Clone, Debug)]
pub(crate) struct PolyMixStream {
    random: Random,
    world: World,
    /// Number of different documents so far, for each type in [`Kind::DIRECT`].
    seen: [u64; 3],
    /// Number of newest documents from which repeated requests choose, for each type in
    /// [`Kind::DIRECT`].
    windows: [u64; 3],
}

impl PolyMixStream {
    /// Starts the stream. `seed` is also the number of the world.
    pub fn new(knobs: &PolyMix4, seed: u64) -> Self {
        let world =
            World { number: seed, time_scale: knobs.time_scale, delay_scale: knobs.delay_scale };
        let windows =
            Kind::DIRECT.map(|(_, share)| (knobs.working_set() * u64::from(share) / 1000).max(1));
        Self { random: Random::new(seed), world, seen: [0; 3], windows }
    }

    /// Returns whether the working set has reached its final size.
    pub fn is_frozen(&self) -> bool {
        self.seen.iter().zip(self.windows).all(|(&seen, window)| seen >= window)
    }

    pub fn next_start(&mut self) -> Start {
        let all: u32 = Kind::DIRECT.iter().map(|(_, share)| share).sum();
        let mut point = self.random.below(u64::from(all));
        let mut place = 0;
        while point >= u64::from(Kind::DIRECT[place].1) {
            point -= u64::from(Kind::DIRECT[place].1);
            place += 1;
        }
        let repeat = self.random.chance(RECURRENCE) && self.seen[place] > 0;
        let number = if repeat { self.again(place) } else { self.seen[place] };
        self.seen[place] += u64::from(!repeat);
        Start { document: self.document(place, number), manner: self.manner(), repeat }
    }

    const fn document(&self, place: usize, number: u64) -> Document {
        Document { world: self.world, container: Kind::DIRECT[place].0, number, image: 0 }
    }

    /// Chooses the number of a document to repeat.
    fn again(&mut self, place: usize) -> u64 {
        let seen = self.seen[place];
        let size = seen.min(self.windows[place]);
        let first = seen - size;
        let number = if self.random.chance(HOT_CHANCE) {
            // The hot set stays unchanged until the window has moved by the hot set's size.
            let hot = size.div_ceil(HOT_DIVISOR);
            let start = (first + size / 2) / hot * hot;
            (start + self.random.below(hot)).clamp(first, seen - 1)
        } else {
            first + self.random.below(size)
        };
        if !self.random.chance(NEIGHBOUR_CHANCE) || !self.document(place, number).nature().cachable
        {
            return number;
        }
        let near = number.saturating_sub(NEIGHBOURS)..=(number + NEIGHBOURS).min(seen - 1);
        let smallest = near
            .map(|neighbour| (neighbour, self.document(place, neighbour).nature()))
            .filter(|(_, nature)| nature.cachable)
            .min_by_key(|(_, nature)| nature.size);
        smallest.map_or(number, |(neighbour, _)| neighbour)
    }

    fn manner(&mut self) -> Manner {
        let method = self.random.unit();
        let point = self.random.unit();
        if method < POST_SHARE {
            Manner::Post
        } else if method < POST_SHARE + HEAD_SHARE {
            Manner::Head
        } else if point < 0.05 {
            Manner::SinceBefore
        } else if point < 0.15 {
            Manner::SinceThen
        } else if point < 0.20 {
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

    fn stream(seed: u64) -> PolyMixStream {
        match Workload::find("polymix-4").expect("known").model {
            Model::PolyMix4(knobs) => {
                PolyMixStream::new(&PolyMix4 { time_scale: 60, ..knobs }, seed)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn same_seed_gives_the_same_requests() {
        let starts = |seed| {
            let mut stream = stream(seed);
            (0..300).map(|_| stream.next_start()).collect::<Vec<_>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
    }

    /// Totals of 100,000 starts with their images: about 290,000 requests. Only the starts are
    /// independent of each other.
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

    fn look(starts: u32) -> Seen {
        let mut stream = stream(11);
        let (mut seen, mut known) = (Seen::default(), HashSet::new());
        for _ in 0..starts {
            let start = stream.next_start();
            assert_eq!(!known.insert(start.document), start.repeat, "{}", start.document);
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

    /// The model offers 55 % hits among plain GETs. The hits of one start deviate by about 0.45 of
    /// its requests, and a start has up to 14 requests. So for one seed in 16,000, the ratio of
    /// 100,000 starts differs by more than 0.8 %.
    #[test]
    fn the_offered_hit_ratio_is_that_of_the_model_and_bytes_hit_less() {
        let seen = look(100_000);
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
    fn manners_have_their_shares() {
        let seen = look(50_000);
        let others = 1.0 - POST_SHARE - HEAD_SHARE;
        let expected =
            [0.80 * others, 0.05 * others, 0.10 * others, 0.05 * others, POST_SHARE, HEAD_SHARE];
        for (count, share) in seen.manners.iter().zip(expected) {
            // The tolerance is four standard deviations of a binomial count.
            let tolerance = 4.0 * (seen.starts * share * (1.0 - share)).sqrt();
            assert!((count - seen.starts * share).abs() < tolerance, "{:?}", seen.manners);
        }
    }

    #[test]
    fn repeats_stay_within_the_working_set_once_it_is_frozen() {
        let mut stream = stream(5);
        while !stream.is_frozen() {
            stream.next_start();
        }
        let mut oldest = [u64::MAX; 3];
        for _ in 0..20_000 {
            let before = stream.seen;
            let start = stream.next_start();
            if let Some(place) = Kind::DIRECT
                .iter()
                .position(|(kind, _)| *kind == start.document.container && start.repeat)
            {
                let age = before[place] - start.document.number;
                assert!(
                    age <= stream.windows[place] + NEIGHBOURS,
                    "{} is {age} back",
                    start.document
                );
                oldest[place] =
                    oldest[place].min(stream.windows[place] - age.min(stream.windows[place]));
            }
        }
        // Repeats reach the whole window, including its oldest twentieth.
        assert!(oldest[0] < stream.windows[0] / 20, "{oldest:?} of {:?}", stream.windows);
    }
}
