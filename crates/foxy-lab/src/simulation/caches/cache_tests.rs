//! Tests of the simulated cache. Each policy is compared with a slow, simple cache that follows the
//! policy's published definition. Both must have the same number of hits.

use super::*;
use crate::simulation::caches::belady::belady;
use foxy_base::Random;
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, PolicySettings};

fn cache(name: PolicyName, capacity: u64, urls: u32) -> Cache {
    Cache::new(name.make(&PolicySettings { capacity, object_limit: capacity / 8 }), capacity, urls)
}

fn missed(is_stored: bool, evicted: &[u32]) -> Lookup<'_> {
    Lookup::Miss { is_stored, evicted }
}

/// Generates look-ups as a proxy sees them. Half of the new objects are never requested again. A
/// repeat copies the look-up D positions before, where the logarithm of D is uniformly random.
fn stream(seed: u64, length: usize) -> (Vec<(u32, u64)>, u32) {
    let mut random = Random::new(seed);
    let mut gets: Vec<(u32, u64)> = Vec::new();
    let (mut repeatable, mut urls) = (Vec::new(), 0);
    for _ in 0..length {
        let get = if repeatable.is_empty() || random.chance(0.5) {
            urls += 1;
            (urls - 1, (100.0 * 4000f64.powf(random.unit().powi(2))) as u64)
        } else {
            let back = (repeatable.len() as f64).powf(random.unit()) as usize;
            repeatable[repeatable.len() - back]
        };
        if get.0 % 2 == 0 {
            repeatable.push(get);
        }
        gets.push(get);
    }
    (gets, urls)
}

fn hits(name: PolicyName, gets: &[(u32, u64)], capacity: u64, urls: u32) -> u64 {
    let mut cache = cache(name, capacity, urls);
    for &(url, size) in gets {
        cache.get(url, size);
    }
    cache.counts().hits
}

#[test]
fn a_repeat_of_another_size_hits_and_keeps_the_stored_size() {
    let mut cache = cache(PolicyName::Lru, 10, 3);
    assert_eq!(cache.get(0, 4), missed(true, &[]));
    assert_eq!(cache.get(0, 9), Lookup::Hit);
    assert_eq!(cache.get(1, 6), missed(true, &[]));
    assert_eq!(cache.used(), 10);
    assert_eq!(cache.get(2, 5), missed(true, &[0, 1]));
    assert_eq!(cache.counts(), Counts { gets: 4, hits: 1, bytes: 24, hit_bytes: 9 });
}

#[test]
fn an_object_larger_than_the_cache_displaces_nothing() {
    let mut cache = cache(PolicyName::Lru, 10, 2);
    cache.get(0, 10);
    assert_eq!(cache.get(1, 11), missed(false, &[]));
    assert_eq!(cache.get(0, 10), Lookup::Hit);
}

#[test]
fn a_rejected_newcomer_is_neither_stored_nor_evicted() {
    let mut cache = cache(PolicyName::Gdsf, 10, 2);
    cache.get(0, 1);
    assert_eq!(cache.get(1, 10), missed(false, &[]));
    assert_eq!(cache.get(0, 1), Lookup::Hit);
}

#[test]
fn an_object_that_the_policy_refuses_is_not_stored() {
    let mut cache = cache(PolicyName::LruThreshold, 80, 2);
    assert_eq!(cache.get(0, 11), missed(false, &[]));
    assert_eq!(cache.get(1, 10), missed(true, &[]));
}

#[test]
fn every_policy_keeps_the_capacity_and_removes_the_evicted() {
    let (gets, urls) = stream(1, 5000);
    for row in POLICIES {
        let mut cache = cache(row.name, 100_000, urls);
        for &(url, size) in &gets {
            if let Lookup::Miss { is_stored, evicted } = cache.get(url, size) {
                let evicted = evicted.to_vec();
                assert_eq!(cache.holds(url), is_stored, "{}", row.text);
                assert!(!evicted.iter().any(|&url| cache.holds(url)), "{}", row.text);
            }
            assert!(cache.used() <= 100_000, "{}", row.text);
        }
    }
}

/// A slow, simple cache with the policy GDSF. It first inserts the new object. Then it evicts the
/// object with the least key, and this key becomes the cache's age.
fn naive_gdsf(gets: &[(u32, u64)], capacity: u64) -> u64 {
    struct Item {
        url: u32,
        size: u64,
        frequency: u32,
        key: f64,
        used: usize,
    }
    let (mut items, mut age, mut hits): (Vec<Item>, f64, u64) = (Vec::new(), 0.0, 0);
    for (now, &(url, size)) in gets.iter().enumerate() {
        if let Some(item) = items.iter_mut().find(|item| item.url == url) {
            item.frequency += 1;
            item.key = age + f64::from(item.frequency) / item.size as f64;
            item.used = now;
            hits += 1;
        } else if size <= capacity {
            items.push(Item { url, size, frequency: 1, key: age + 1.0 / size as f64, used: now });
            while items.iter().map(|item| item.size).sum::<u64>() > capacity {
                let least = (0..items.len())
                    .min_by(|&a, &b| {
                        (items[a].key, items[a].used)
                            .partial_cmp(&(items[b].key, items[b].used))
                            .expect("no NaN")
                    })
                    .expect("something takes the space");
                age = items.remove(least).key;
            }
        }
    }
    hits
}

/// A slow, simple cache with the policy SIEVE, as its authors publish it. It first makes room, then
/// inserts the new object at the head of the queue.
fn naive_sieve(gets: &[(u32, u64)], capacity: u64) -> u64 {
    let (mut queue, mut hand, mut hits): (Vec<(u32, u64, bool)>, usize, u64) = (Vec::new(), 0, 0);
    for &(url, size) in gets {
        if let Some(item) = queue.iter_mut().find(|item| item.0 == url) {
            item.2 = true;
            hits += 1;
            continue;
        }
        if size > capacity {
            continue;
        }
        while queue.iter().map(|item| item.1).sum::<u64>() + size > capacity {
            while queue[hand].2 {
                queue[hand].2 = false;
                hand = (hand + 1) % queue.len();
            }
            queue.remove(hand);
            if hand == queue.len() {
                hand = 0;
            }
        }
        queue.push((url, size, false));
    }
    hits
}

#[test]
fn gdsf_and_sieve_hit_exactly_as_often_as_naive_caches() {
    for (seed, capacity) in [(2, 30_000), (3, 300_000)] {
        let (gets, urls) = stream(seed, 20_000);
        let run = format!("seed {seed}, {capacity} bytes");
        assert_eq!(
            hits(PolicyName::Gdsf, &gets, capacity, urls),
            naive_gdsf(&gets, capacity),
            "{run}"
        );
        assert_eq!(
            hits(PolicyName::Sieve, &gets, capacity, urls),
            naive_sieve(&gets, capacity),
            "{run}"
        );
    }
}

#[test]
fn the_heap_and_the_list_keep_the_same_order_of_use() {
    let (gets, urls) = stream(4, 20_000);
    let lru = hits(PolicyName::Lru, &gets, 200_000, urls);
    assert_eq!(hits(PolicyName::HeapLru, &gets, 200_000, urls), lru);
}

#[test]
fn no_policy_beats_the_oracle_on_objects_of_one_size() {
    let (mut gets, urls) = stream(5, 20_000);
    gets.iter_mut().for_each(|get| get.1 = 1);
    let oracle = belady(&gets, 500, urls).hits;
    for row in POLICIES {
        let hits = hits(row.name, &gets, 500, urls);
        assert!(hits <= oracle, "{} {hits}, the oracle {oracle}; seed 5", row.text);
    }
}
