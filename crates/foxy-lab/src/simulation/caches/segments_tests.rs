//! Tests which objects the simulated store with segments keeps, drops and writes, on short lists of
//! look-ups.

use super::*;

const WORTH: Rule = Rule::Worth { buffer: 0 };
/// The size of a small object in bytes. Several small objects share a page.
const SMALL: u64 = 1000;

/// Creates a cache with room for about `objects` small objects. Each object fills a whole segment,
/// so that tests can follow single objects.
fn cache(rule: Rule, objects: u64) -> SegmentCache {
    SegmentCache::new(rule, objects * charged(SMALL) * 102 / 100, 1000)
}

fn hits(cache: &mut SegmentCache, urls: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let is_hit = |url: &u32| {
        let before = cache.tally().counts.hits;
        cache.get(*url, SMALL);
        cache.tally().counts.hits > before
    };
    urls.into_iter().filter(is_hit).collect()
}

#[test]
fn a_used_object_is_copied_forward_once_for_each_use() {
    let mut cache = cache(Rule::Reinsertion, 10);
    assert!(hits(&mut cache, 0..10).is_empty());
    assert_eq!(hits(&mut cache, [3, 3, 5]), [3, 3, 5]);
    assert!(hits(&mut cache, 10..20).is_empty());
    assert_eq!(cache.tally().copied, 2 * charged(SMALL), "of the first ten, 3 and 5");
    assert!(hits(&mut cache, [0, 4]).is_empty(), "the others went");
    hits(&mut cache, 20..29);
    assert_eq!(hits(&mut cache, [3]), [3], "two uses, two copies");
    assert!(hits(&mut cache, [5]).is_empty(), "one use, one copy");
}

#[test]
fn a_large_newcomer_does_not_displace_small_objects() {
    for (rule, kept) in [(Rule::Reinsertion, false), (WORTH, true)] {
        let mut cache = cache(rule, 1000);
        hits(&mut cache, 0..400);
        (500..800).for_each(|url| cache.get(url, 10 * SMALL));
        assert_eq!(hits(&mut cache, 0..400).len() == 400, kept, "{rule:?}");
    }
}

#[test]
fn an_object_that_returns_soon_after_probation_goes_to_the_main_log() {
    let mut cache = cache(WORTH, 1000);
    hits(&mut cache, 0..400);
    (500..600).for_each(|url| cache.get(url, 10 * SMALL));
    let main = cache.main.bytes;
    let gone =
        (500..600).rev().find(|&url| cache.entries[url as usize].place == SegmentPlace::Absent);
    cache.get(gone.expect("probation is full"), 10 * SMALL);
    assert!(cache.main.bytes > main);
}

#[test]
fn a_write_buffer_writes_heavy_objects_on_their_second_request() {
    let capacity = 1000 * charged(SMALL);
    let heavy = 10 * SMALL;
    let mut cache = SegmentCache::new(Rule::Worth { buffer: capacity / 20 }, capacity, 2000);
    (0..1000).for_each(|url| cache.get(url, SMALL));
    let admitted = cache.tally().admitted;
    (1000..1100).for_each(|url| cache.get(url, heavy));
    assert_eq!(cache.tally().admitted, admitted);
    (1200..1300).for_each(|url| (0..2).for_each(|_| cache.get(url, heavy)));
    assert!(cache.tally().admitted > admitted + 90 * charged(heavy));
}

#[test]
fn the_bytes_on_disk_never_exceed_the_capacity() {
    let mut random = foxy_base::Random::new(1);
    for rule in [Rule::Reinsertion, WORTH, Rule::Worth { buffer: 20_000 }] {
        for capacity in [0, 1, 100, 5000, 1 << 20] {
            let mut cache = SegmentCache::new(rule, capacity, 100);
            for _ in 0..2000 {
                let size = 2f64.powf(24.0 * random.unit()) as u64;
                cache.get(random.below(100) as u32, size);
                assert!(cache.used() + cache.buffered <= capacity, "{rule:?} {capacity}");
            }
            let (main, probation) = (&cache.main, &cache.probation);
            let lists = [main, probation]
                .map(|log| log.sealed.iter().chain([&log.open]).flat_map(|one| &one.urls));
            assert_eq!(lists.into_iter().flatten().count() as u64, cache.resident);
        }
    }
}

#[test]
fn an_object_that_takes_more_than_half_of_the_disk_is_not_stored() {
    let mut cache = SegmentCache::new(WORTH, 100_000, 1);
    cache.get(0, 60_000);
    cache.get(0, 60_000);
    assert_eq!((cache.tally().counts.hits, cache.tally().admitted), (0, 0));
}

#[test]
fn small_objects_are_charged_by_the_byte_and_large_ones_by_the_granule() {
    assert_eq!(charged(0), 24 + 1 + 16);
    assert_eq!(charged(1000), 1024 + 51 + 16);
    assert_eq!(charged(4072), 4096 + 32);
    assert_eq!(charged(4097), 4608 + 32);
    assert!(charged(u64::MAX) > u64::MAX - 512);
}

#[test]
fn the_ghost_forgets_the_oldest_urls_and_those_that_were_taken() {
    let mut ghost = Ghost::default();
    for url in [1, 2, 3] {
        ghost.push(url, 2);
    }
    assert!(!ghost.take(1) && ghost.take(2) && !ghost.take(2));
    ghost.push(2, 2);
    ghost.push(4, 2);
    assert!(ghost.take(2) && ghost.take(4) && !ghost.take(3));
    ghost.push(5, 0);
    assert!(!ghost.take(5));
}
