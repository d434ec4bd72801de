//! The memory tier of the cache: whole small responses, and parts of large stored bodies. A *part*
//! is up to 1 MiB of a large body, and is one record of the store. All workers share the tier, and
//! its size is limited. The tier does not know about purges.

mod sieve;

use crate::cache::storage::PART;
use crate::cache::stored::{Stored, VaryList};
use bytes::Bytes;
use foxy_rules::Policy;
use foxy_store::{Key, KeySet};
use sieve::Sieve;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of shards of the memory tier. A response must fit into one shard.
pub const SHARDS: usize = 16;

/// Overhead in bytes that the tier counts for each part (1 MiB of a body), in addition to the
/// part's bytes. It covers unused memory at the beginning and end of the record, and the tier's own
/// data about the part.
const PART_OVERHEAD_BYTES: u64 = 8 << 10;

const HEAD_ROOM_BYTES: u64 = 8 << 10;

#[derive(Clone, Debug)]
pub enum Cached {
    Response(Arc<Stored>),
    /// The Vary list of a URL (the request fields that select a variant), and the text of the URL's
    /// key.
    Varies(Arc<(Bytes, VaryList)>),
}

impl Cached {
    fn weight(&self) -> u64 {
        match self {
            Self::Response(stored) => stored.weight(),
            Self::Varies(list) => 256 + list.0.len() as u64,
        }
    }

    pub fn key(&self) -> &[u8] {
        match self {
            Self::Response(stored) => &stored.key,
            Self::Varies(list) => &list.0,
        }
    }
}

pub struct MemoryTier {
    shards: Vec<Mutex<Shard>>,
}

/// The memory tier remembers the keys of recently read parts (1 MiB of a body each). If memory has
/// room for N parts, the tier remembers `RECENT_PER_HELD` times N keys. A part whose key is
/// remembered enters memory at its next read.
const RECENT_PER_HELD: u64 = 4;

/// One of the [`SHARDS`] shards of the memory tier, with its own lock. Responses may use half of
/// the shard's bytes, and parts of bodies may use the other half. If one kind uses less than its
/// half, the other kind may use more.
struct Shard {
    limit: u64,
    responses: Sieve<Cached>,
    parts: Sieve<Bytes>,
    recent: Recent,
}

impl MemoryTier {
    pub fn new(bytes: u64) -> Self {
        let shard = || Mutex::new(Shard::new(bytes / SHARDS as u64));
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Returns the size in bytes of the largest body that fits into a shard together with a head of
    /// usual size.
    pub fn largest_body(&self) -> u64 {
        lock(&self.shards[0]).limit.saturating_sub(HEAD_ROOM_BYTES)
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        let index = usize::from(key.0[0]) % SHARDS;
        lock(&self.shards[index])
    }

    pub fn get(&self, key: Key) -> Option<Cached> {
        self.shard(key).responses.get(key)
    }

    /// Stores `value` under the key, and evicts other values if space is needed. Does not store
    /// `value` if it is larger than a shard. Removes the old value under the key in any case.
    pub fn put(&self, key: Key, value: Cached) {
        self.shard(key).put(key, value);
    }

    pub fn remove(&self, key: Key) {
        self.shard(key).responses.remove(key);
    }

    /// Recomputes the lifetime and directives of every response after a change of the operator's
    /// policy. `policy_of` returns the new policy of a response.
    pub fn reassess(&self, policy_of: impl Fn(&Stored) -> Policy) {
        for shard in &self.shards {
            lock(shard).responses.update(|cached| {
                if let Cached::Response(stored) = cached {
                    *stored = Arc::new(stored.with_policy(policy_of(stored)));
                }
            });
        }
    }

    /// Calls `take` for some responses, starting at position `from`. The first call must pass 0.
    /// Returns the position at which the next call must continue. Each call locks a shard only
    /// briefly.
    pub fn visit(&self, from: u64, mut take: impl FnMut(&Stored)) -> Option<u64> {
        const SLOTS_AT_ONCE: usize = 512;
        let (shard, slot) = ((from >> 32) as usize, (from & u64::from(u32::MAX)) as usize);
        let next = lock(self.shards.get(shard)?).responses.visit(slot, SLOTS_AT_ONCE, |cached| {
            if let Cached::Response(stored) = cached {
                take(stored);
            }
        });
        match next {
            Some(next) => Some((shard as u64) << 32 | next as u64),
            None => (shard + 1 < SHARDS).then_some((shard as u64 + 1) << 32),
        }
    }

    pub fn part(&self, key: Key) -> Option<Bytes> {
        self.shard(key).parts.get(key)
    }

    /// Notes that a part (1 MiB of the body) was sent to a client. Stores the part on its second
    /// use, so that a part that is sent only once evicts nothing. Parts larger than half a shard
    /// are not stored.
    pub fn offer_part(&self, key: Key, part: &Bytes) {
        self.shard(key).offer_part(key, part);
    }

    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| lock(shard).used()).sum()
    }

    pub fn entries(&self) -> usize {
        let entries = |shard: &Shard| shard.responses.entries() + shard.parts.entries();
        self.shards.iter().map(|shard| entries(&lock(shard))).sum()
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn new(limit: u64) -> Self {
        Self { limit, responses: Sieve::new(), parts: Sieve::new(), recent: Recent::beside(limit) }
    }

    const fn used(&self) -> u64 {
        self.responses.used() + self.parts.used()
    }

    fn put(&mut self, key: Key, value: Cached) {
        let weight = value.weight();
        self.responses.remove(key);
        if weight > self.limit {
            return;
        }
        while self.used() + weight > self.limit {
            if self.parts.used() > self.limit / 2 || self.responses.used() == 0 {
                self.parts.evict();
            } else {
                self.responses.evict();
            }
        }
        self.responses.insert(key, value, weight);
    }

    fn offer_part(&mut self, key: Key, part: &Bytes) {
        let (weight, half) = (part.len() as u64 + PART_OVERHEAD_BYTES, self.limit / 2);
        if weight > half || self.parts.get(key).is_some() || !self.recent.again(key) {
            return;
        }
        while self.used() + weight > self.limit {
            if self.parts.used() + weight > half {
                self.parts.evict();
            } else {
                self.responses.evict();
            }
        }
        self.parts.insert(key, part.clone(), weight);
    }
}

/// The keys of recently read parts (1 MiB each) of bodies. If memory has room for N parts, the set
/// has at most `RECENT_PER_HELD` times N keys. The oldest key is forgotten first.
struct Recent {
    keys: KeySet,
    /// All keys of `keys`, oldest first. The queue may also contain a key that is no longer in
    /// `keys`.
    order: VecDeque<Key>,
    limit: usize,
}

impl Recent {
    fn beside(bytes: u64) -> Self {
        let limit = usize::try_from(RECENT_PER_HELD * bytes / PART as u64).unwrap_or(usize::MAX);
        Self { keys: KeySet::default(), order: VecDeque::new(), limit }
    }

    /// Returns true if the part `key` (1 MiB of a body) was read recently, and forgets the key.
    /// Otherwise remembers the key and returns false.
    fn again(&mut self, key: Key) -> bool {
        if self.keys.remove(&key) {
            return true;
        }
        self.keys.insert(key);
        self.order.push_back(key);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::stored::StoredBody;
    use bytes::Bytes;
    use foxy_base::WallTime;
    use foxy_http::ResponseHead;
    use foxy_rules::{Policy, StoredTimes};

    fn value(text: &str, size: usize) -> Cached {
        let times = StoredTimes { received: WallTime(0), initial_age: 0 };
        let body = StoredBody::Whole(Bytes::from(vec![0; size]));
        let key = Bytes::copy_from_slice(text.as_bytes());
        let head = ResponseHead::new(200);
        Cached::Response(Arc::new(Stored::new(
            key,
            &head,
            Policy::default(),
            times,
            size as u64,
            body,
        )))
    }

    fn key(number: u8) -> Key {
        // The first byte of a key chooses its shard (part of the memory tier), so all these keys
        // belong to one shard.
        Key([0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn bytes_stay_within_the_limit_and_what_was_used_stays() {
        let tier = MemoryTier::new(16 * 10_000);
        for number in 0..100 {
            tier.put(key(number), value("k", 1000));
            assert!(tier.get(key(0)).is_some(), "the one in use left at {number}");
            assert!(tier.bytes() <= 10_000);
        }
        assert!(tier.get(key(1)).is_none());
        assert!(tier.get(key(99)).is_some());
    }

    #[test]
    fn replacing_and_removing_give_the_bytes_back() {
        let tier = MemoryTier::new(16 * 10_000);
        tier.put(key(1), value("k", 1000));
        let before = tier.bytes();
        tier.put(key(1), value("k", 2000));
        assert_eq!(tier.bytes(), before + 1000);
        tier.put(key(1), value("k", 1_000_000));
        assert_eq!((tier.bytes(), tier.entries()), (0, 0), "what is too large replaces what was");
        tier.put(key(2), value("k", 10));
        tier.remove(key(2));
        assert_eq!((tier.bytes(), tier.entries()), (0, 0));
    }

    const PART: usize = 1 << 20;

    fn part(tier: &MemoryTier, number: u8) -> bool {
        let part = Bytes::from(vec![number; PART]);
        tier.offer_part(key(number), &part);
        let held = tier.part(key(number));
        assert!(held.as_ref().is_none_or(|held| *held == part));
        held.is_some()
    }

    #[test]
    fn a_part_is_held_from_its_second_read_on_if_that_is_not_long_after_the_first() {
        let tier = MemoryTier::new(16 * 8 * PART as u64);
        assert!(!part(&tier, 1) && part(&tier, 1) && part(&tier, 1));
        assert_eq!(tier.entries(), 1);
        assert!(!part(&tier, 2));
        for number in 10..10 + 4 * 8 {
            assert!(!part(&tier, number));
        }
        assert!(!part(&tier, 2), "remembered for ever");
        assert!(part(&tier, 2));
    }

    #[test]
    fn responses_and_parts_have_half_of_the_room_each_and_what_the_other_leaves() {
        const ROOM: u64 = 10 * (PART as u64 + PART_OVERHEAD_BYTES);
        let tier = MemoryTier::new(16 * ROOM);
        let parts = || (100..200).filter(|number| tier.part(key(*number)).is_some()).count();
        let read_twice = |numbers: std::ops::Range<u8>| {
            for number in numbers {
                part(&tier, number);
                assert!(part(&tier, number));
            }
        };
        read_twice(100..110);
        assert_eq!(parts(), 10, "what responses leave");
        (0..60).for_each(|number| tier.put(key(number), value("k", PART / 4)));
        assert_eq!(parts(), 5, "half of it is theirs");
        read_twice(150..160);
        assert_eq!(parts(), 5, "the other half is not");
        assert!(tier.bytes() <= ROOM);
        (0..60).for_each(|number| tier.remove(key(number)));
        read_twice(170..180);
        (0..60).for_each(|number| tier.put(key(number), value("k", PART / 4)));
        for number in 180..190 {
            assert!(!part(&tier, number), "what is read once displaces nothing");
        }
        assert_eq!(parts(), 5);
    }

    #[test]
    fn a_part_that_would_take_more_than_half_is_not_held() {
        let tier = MemoryTier::new(16 * 2 * PART as u64);
        assert!(!part(&tier, 1) && !part(&tier, 1));
        assert_eq!((tier.bytes(), tier.entries()), (0, 0));
    }
}
