//! The oracle: whoever is asked for again latest goes, the newcomer included (Belady 1966). With one size for all
//! objects no policy can hit more often; with many sizes it is a mark to look up to and no bound.

use super::cache::Counts;
use std::collections::BTreeSet;

/// No next use.
const NEVER: usize = usize::MAX;

/// Look-ups of (URL, size) through a cache of `capacity` bytes that knows the future, by the rules of
/// [`super::cache::Cache`]. URLs are numbered below `urls`.
///
/// # Panics
/// If a URL is not below `urls`.
#[must_use]
pub fn belady(gets: &[(u32, u64)], capacity: u64, urls: u32) -> Counts {
    let mut counts = Counts::default();
    let mut stored: Vec<Option<u64>> = vec![None; urls as usize];
    let mut by_next_use = BTreeSet::new();
    let mut used = 0;
    for (now, (&(url, size), next)) in gets.iter().zip(next_uses(gets, urls)).enumerate() {
        let is_hit = stored[url as usize].is_some();
        counts.add(size, is_hit);
        if is_hit {
            assert!(by_next_use.remove(&(now, url)), "a hit is the next use that was foreseen");
        } else if size > capacity {
            continue;
        } else {
            used += size;
            stored[url as usize] = Some(size);
        }
        by_next_use.insert((next, url));
        while used > capacity {
            let (_, latest) = by_next_use.pop_last().expect("something takes the space");
            used -= stored[latest as usize].take().unwrap_or(0);
        }
    }
    counts
}

/// For each look-up, the place of the next one of the same URL.
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
    fn it_hits_as_often_as_can_be() {
        check(&[], 3, 0);
        check(&[1, 1, 1], 0, 0);
        check(&[1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5], 3, 5);
        check(&[1, 2, 3, 1, 2, 3, 1, 2, 3], 2, 4);
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_stored_and_displaces_nothing() {
        let counts = belady(&[(0, 2), (1, 9), (0, 2), (1, 9)], 4, 2);
        assert_eq!(counts, Counts { gets: 4, hits: 1, bytes: 22, hit_bytes: 2 });
    }
}
