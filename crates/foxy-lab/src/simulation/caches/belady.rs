//! Oracles: simulated caches that know all future look-ups. They show how many hits are possible.
//! The rule `Time` evicts the object whose next use is farthest away (Belady 1966). If all objects
//! have one size, no policy hits more often. With many sizes, the rule `SpaceAndTime`, which also
//! weighs the size, hits more often than `Time`.

use super::cache::Counts;
use std::collections::BTreeSet;

/// The position of the next look-up for a URL that is never looked up again.
const NEVER: usize = usize::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foresight {
    Time,
    /// Evicts the object with the largest product of the time to its next use and its size. The
    /// size is rounded down to a power of two.
    SpaceAndTime,
}

/// Simulates a cache of `capacity` bytes that knows the future. `gets` has the URL and the object
/// size of each look-up. The cache follows the rules of [`super::cache::Cache`]. URLs are numbers
/// below `urls`.
pub fn belady(gets: &[(u32, u64)], capacity: u64, urls: u32) -> Counts {
    oracle(gets, capacity, urls, Foresight::Time, |size| size)
}

/// Simulates an oracle (a cache that knows all future look-ups) with this rule for evictions. An
/// object of `size` bytes takes `charged(size)` bytes of the capacity. URLs are numbers below
/// `urls`.
pub fn oracle(
    gets: &[(u32, u64)],
    capacity: u64,
    urls: u32,
    foresight: Foresight,
    charged: fn(u64) -> u64,
) -> Counts {
    let mut counts = Counts::default();
    let mut stored: Vec<Option<u64>> = vec![None; urls as usize];
    let mut future = Future::new(foresight);
    let mut used = 0;
    for (now, (&(url, size), next)) in gets.iter().zip(next_uses(gets, urls)).enumerate() {
        let kept = stored[url as usize];
        counts.add(size, kept.is_some());
        let space = kept.unwrap_or_else(|| charged(size));
        if kept.is_some() {
            assert!(future.remove(now, url, space), "a hit is the next use that was foreseen");
        } else if space > capacity {
            continue;
        } else {
            used += space;
            stored[url as usize] = Some(space);
        }
        future.add(next, url, space);
        while used > capacity {
            let latest = future.pop(now).expect("something takes the space");
            used -= stored[latest as usize].take().unwrap_or(0);
        }
    }
    counts
}

/// The stored objects in the order of their next uses. `SpaceAndTime` has a list for each power of
/// two of the size.
struct Future {
    octaves: Vec<BTreeSet<(usize, u32)>>,
    foresight: Foresight,
}

impl Future {
    fn new(foresight: Foresight) -> Self {
        Self { octaves: vec![BTreeSet::new(); u64::BITS as usize], foresight }
    }

    fn octave(&mut self, space: u64) -> &mut BTreeSet<(usize, u32)> {
        let octave = if self.foresight == Foresight::Time { 0 } else { space.max(1).ilog2() };
        &mut self.octaves[octave as usize]
    }

    fn add(&mut self, next: usize, url: u32, space: u64) {
        self.octave(space).insert((next, url));
    }

    fn remove(&mut self, next: usize, url: u32, space: u64) -> bool {
        self.octave(space).remove(&(next, url))
    }

    fn pop(&mut self, now: usize) -> Option<u32> {
        let cost = |(octave, set): (usize, &BTreeSet<(usize, u32)>)| {
            let &(next, _) = set.last()?;
            let time = next.saturating_sub(now) as u128;
            Some(if next == NEVER { (u128::MAX, octave) } else { (time << octave, octave) })
        };
        let (_, octave) = self.octaves.iter().enumerate().filter_map(cost).max()?;
        self.octaves[octave].pop_last().map(|(_, url)| url)
    }
}

/// Returns for each look-up the position of the next look-up of the same URL.
fn next_uses(gets: &[(u32, u64)], urls: u32) -> Vec<usize> {
    let mut seen = vec![NEVER; urls as usize];
    let mut next: Vec<_> = gets
        .iter()
        .enumerate()
        .rev()
        .map(|(place, &(url, _))| std::mem::replace(&mut seen[url as usize], place))
        .collect();
    next.reverse();
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(urls: &[u32], capacity: u64, hits: u64) {
        let gets: Vec<_> = urls.iter().map(|&url| (url, 1)).collect();
        assert_eq!(belady(&gets, capacity, 10).hits, hits, "{urls:?} in {capacity}");
    }

    #[test]
    fn the_oracle_hits_as_often_as_possible() {
        check(&[], 3, 0);
        check(&[1, 1, 1], 0, 0);
        check(&[1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5], 3, 5);
        check(&[1, 2, 3, 1, 2, 3, 1, 2, 3], 2, 4);
    }

    #[test]
    fn an_object_larger_than_the_cache_displaces_nothing() {
        let counts = belady(&[(0, 2), (1, 9), (0, 2), (1, 9)], 4, 2);
        assert_eq!(counts, Counts { gets: 4, hits: 1, bytes: 22, hit_bytes: 2 });
    }

    #[test]
    fn by_size_one_large_object_is_evicted_before_many_small_objects() {
        let large_first = [(0, 8), (1, 1), (2, 1), (3, 1), (0, 8), (1, 1), (2, 1), (3, 1)];
        let hits = |foresight| oracle(&large_first, 8, 4, foresight, |size| size).hits;
        assert_eq!((hits(Foresight::Time), hits(Foresight::SpaceAndTime)), (1, 3));
    }

    #[test]
    fn charged_bytes_take_space_and_requested_bytes_are_counted() {
        let gets = [(0, 1), (1, 1), (0, 1), (1, 1)];
        let counts = oracle(&gets, 512, 2, Foresight::Time, |size| size.next_multiple_of(512));
        assert_eq!(counts, Counts { gets: 4, hits: 1, bytes: 4, hit_bytes: 1 });
    }
}
