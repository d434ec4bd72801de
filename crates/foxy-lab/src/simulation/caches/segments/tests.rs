//! What the model keeps, drops and writes, on streams short enough to follow.

use super::*;

const WORTH: Rule = Rule::Worth { stage: 0 };
/// Small enough to be packed with others.
const SMALL: u64 = 1000;

/// A cache with room for about so many small objects, in segments of less than one of them.
fn cache(rule: Rule, objects: u64) -> SegmentCache {
    SegmentCache::new(rule, objects * charged(SMALL) * 102 / 100, 1000)
}

fn hits(cache: &mut SegmentCache, urls: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let is_hit = |url: &u32| {
        let before = cache.counts().counts.hits;
        cache.get(*url, SMALL);
        cache.counts().counts.hits > before
    };
    urls.into_iter().filter(is_hit).collect()
}

#[test]
fn what_was_used_is_copied_forward_once_for_each_use() {
    let mut cache = cache(Rule::Reinsertion, 10);
    assert!(hits(&mut cache, 0..10).is_empty());
    assert_eq!(hits(&mut cache, [3, 3, 5]), [3, 3, 5]);
    assert!(hits(&mut cache, 10..20).is_empty());
    assert_eq!(cache.counts().copied, 2 * charged(SMALL), "of the first ten, 3 and 5");
    assert!(hits(&mut cache, [0, 4]).is_empty(), "the others went");
    hits(&mut cache, 20..29);
    assert_eq!(hits(&mut cache, [3]), [3], "two uses, two copies");
    assert!(hits(&mut cache, [5]).is_empty(), "one use, one copy");
}

#[test]
fn a_newcomer_that_is_large_does_not_displace_the_small() {
    for (rule, kept) in [(Rule::Reinsertion, false), (WORTH, true)] {
        let mut cache = cache(rule, 1000);
        hits(&mut cache, 0..400);
        (500..800).for_each(|url| cache.get(url, 10 * SMALL));
        assert_eq!(hits(&mut cache, 0..400).len() == 400, kept, "{rule:?}");
    }
}

#[test]
fn what_comes_back_soon_after_probation_goes_to_the_main_log() {
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
fn a_stage_writes_what_is_heavy_only_when_it_is_asked_for_again() {
    let capacity = 1000 * charged(SMALL);
    let heavy = 10 * SMALL;
    let mut cache = SegmentCache::new(Rule::Worth { stage: capacity / 20 }, capacity, 2000);
    (0..1000).for_each(|url| cache.get(url, SMALL));
    let admitted = cache.counts().admitted;
    (1000..1100).for_each(|url| cache.get(url, heavy));
    assert_eq!(cache.counts().admitted, admitted);
    (1200..1300).for_each(|url| (0..2).for_each(|_| cache.get(url, heavy)));
    assert!(cache.counts().admitted > admitted + 90 * charged(heavy));
}

#[test]
fn the_bytes_on_disk_stay_below_the_capacity_whatever_comes() {
    let mut random = foxy_base::Random::new(1);
    for rule in [Rule::Reinsertion, WORTH, Rule::Worth { stage: 20_000 }] {
        for capacity in [0, 1, 100, 5000, 1 << 20] {
            let mut cache = SegmentCache::new(rule, capacity, 100);
            for _ in 0..2000 {
                let size = 2f64.powf(24.0 * random.unit()) as u64;
                cache.get(random.below(100) as u32, size);
                assert!(cache.used() + cache.staged <= capacity, "{rule:?} {capacity}");
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
    assert_eq!((cache.counts().counts.hits, cache.counts().admitted), (0, 0));
}

#[test]
fn small_objects_are_charged_by_the_byte_and_large_ones_by_the_granule() {
    assert_eq!(charged(0), 24 + 1 + 16);
    assert_eq!(charged(1000), 1024 + 51 + 16);
    assert_eq!(charged(4072), 4096 + 32);
    assert_eq!(charged(4097), 4608 + 32);
    assert!(charged(u64::MAX) > u64::MAX - 512);
}
