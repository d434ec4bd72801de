//! The documents of one type at one server, and the choice among them when a request repeats an
//! earlier request. The choice follows the benchmark program Web Polygraph. The working set is the
//! newest part of the documents. The size of the working set is frozen at some point of the run.
//! The hot set is a hundredth of the working set that is requested more often.

use super::content::Nature;
use foxy_base::Random;

/// Share of repeated requests that choose a document of the hot set, the most requested documents.
const HOT_CHANCE: f64 = 0.10;
/// Number of documents in the working set (documents that requests repeat) for each document in the
/// hot set.
const HOT_DIVISOR: u64 = 100;
/// Probability that a repeated request asks for a small document: the document with the smallest
/// body among the drawn document and its cachable neighbours.
const NEIGHBOUR_CHANCE: f64 = 0.90;
/// Number of neighbours, which are documents with the next numbers, on each side of a document.
const NEIGHBOURS: u64 = 4;

/// The documents of one type at one server that were requested so far. The numbers of these
/// documents are consecutive and begin with 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Collection {
    seen: u64,
    /// Size of the working set (documents that requests repeat): repeated requests choose from this
    /// number of newest documents. `None` before the working set is frozen. Until then, repeated
    /// requests choose from all documents.
    window: Option<u64>,
}

impl Collection {
    /// Returns whether a request can repeat. As in Web Polygraph, a collection that is empty when
    /// the working set (documents that requests repeat) is frozen never repeats.
    pub fn can_repeat(&self) -> bool {
        self.seen > 0 && self.window != Some(0)
    }

    /// Adds a document and returns its number.
    pub fn add(&mut self) -> u64 {
        self.seen += 1;
        self.seen - 1
    }

    /// Freezes the size of the working set (documents that requests repeat) at the present number
    /// of documents.
    pub fn freeze(&mut self) {
        self.window = Some(self.seen);
    }

    /// Chooses the number of a document to repeat. `nature` returns the properties of the document
    /// with a given number.
    pub fn repeat(&self, random: &mut Random, nature: impl Fn(u64) -> Nature) -> u64 {
        let number = self.draw(random);
        if !random.chance(NEIGHBOUR_CHANCE) || !nature(number).cachable {
            return number;
        }
        let last = self.seen.saturating_sub(1);
        let near = number.saturating_sub(NEIGHBOURS)..=(number + NEIGHBOURS).min(last);
        let smallest = near
            .map(|neighbour| (neighbour, nature(neighbour)))
            .filter(|(_, nature)| nature.cachable)
            .min_by_key(|(_, nature)| nature.size);
        smallest.map_or(number, |(neighbour, _)| neighbour)
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let size = self.window.unwrap_or(self.seen).clamp(1, self.seen.max(1));
        let first = self.seen.saturating_sub(size);
        if self.window.is_none() || !random.chance(HOT_CHANCE) {
            return first + random.below(size);
        }
        // The hot set holds the most requested documents of the working set. It begins at the
        // document whose number is a multiple of the working set's size. The working set always
        // contains exactly one such document. So the hot set stays in place while the working set
        // moves to newer documents, until the working set has passed it.
        let hot = size.div_ceil(HOT_DIVISOR);
        let start = first.next_multiple_of(size);
        (start + random.below(hot)).min(self.seen - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::{Document, Kind, World};
    use super::*;
    use std::collections::HashMap;

    fn collection(seen: u64, window: Option<u64>) -> Collection {
        Collection { seen, window }
    }

    fn nature(number: u64) -> Nature {
        let world = World { number: 1, time_scale: 1, delay_scale: 1 };
        Document { world, container: Kind::Other, number, image: 0 }.nature()
    }

    fn repeats(collection: &Collection, count: usize) -> Vec<u64> {
        let mut random = Random::new(5);
        std::iter::repeat_with(|| collection.repeat(&mut random, nature)).take(count).collect()
    }

    #[test]
    fn repeats_stay_within_the_frozen_window_and_its_neighbours() {
        let numbers = repeats(&collection(1000, Some(200)), 20_000);
        assert!(numbers.iter().all(|number| (800 - NEIGHBOURS..1000).contains(number)));
        assert!(numbers.iter().any(|&number| number < 810), "the oldest twentieth");
        let numbers = repeats(&collection(1000, None), 20_000);
        assert!(numbers.iter().any(|&number| number < 50), "the whole set before it is frozen");
    }

    #[test]
    fn a_collection_that_was_empty_when_it_was_frozen_never_repeats() {
        let mut empty = Collection::default();
        empty.freeze();
        assert_eq!(empty.add(), 0);
        assert!(!empty.can_repeat());
        let mut full = Collection::default();
        assert!(!full.can_repeat());
        full.add();
        full.freeze();
        assert!(full.can_repeat());
    }

    /// A tenth of the repeats chooses one of the 4 documents of the hot set. Then a small neighbour
    /// of this document may replace it.
    #[test]
    fn a_hot_set_is_repeated_most_and_stays_in_place() {
        let hottest = |seen| {
            let numbers = repeats(&collection(seen, Some(400)), 20_000);
            let mut counts = HashMap::new();
            numbers.iter().for_each(|number| *counts.entry(*number / 20).or_insert(0u32) += 1);
            counts.into_iter().max_by_key(|&(_, count)| count).map(|(place, _)| place * 20)
        };
        assert_eq!((hottest(900), hottest(1100)), (Some(800), Some(800)));
        assert_eq!(hottest(1250), Some(1200));
    }
}
