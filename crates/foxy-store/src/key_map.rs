//! Hash maps with [`Key`] as the key. Each map hashes with its own secret. Otherwise outsiders, who
//! choose the names behind the keys, could cause hash collisions.

use crate::contract::Key;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash map from [`Key`] to a value.
pub type KeyMap<Value> = HashMap<Key, Value, Mixed>;

/// A hash set of [`Key`]s.
pub type KeySet = HashSet<Key, Mixed>;

/// Creates the hashers of one map. Contains the secret numbers of that map.
#[derive(Clone, Copy, Debug)]
pub struct Mixed([u64; 2]);

impl Default for Mixed {
    fn default() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0), random.hash_one(1)])
    }
}

impl BuildHasher for Mixed {
    type Hasher = Mixing;

    fn build_hasher(&self) -> Mixing {
        Mixing { secret: self.0, mixed: 0 }
    }
}

/// The multiplier of the hash function: an odd number without a regular bit pattern.
const STIR: u64 = 0xd6e8_feb8_6659_fd93;

/// The hasher for [`Key`].
#[derive(Debug)]
pub struct Mixing {
    secret: [u64; 2],
    mixed: u64,
}

impl Hasher for Mixing {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(16) {
            let mut padded = [0; 16];
            padded[..part.len()].copy_from_slice(part);
            let [low, high] =
                [u128::from_le_bytes(padded) as u64, (u128::from_le_bytes(padded) >> 64) as u64];
            let product = u128::from(low ^ self.secret[0]) * u128::from(high ^ self.secret[1]);
            self.mixed = self.mixed.rotate_left(1) ^ product as u64 ^ (product >> 64) as u64;
        }
    }

    /// Ignores the length that the standard library hashes before the bytes of a key. All keys have
    /// the same length.
    fn write_usize(&mut self, _length: usize) {}

    /// Multiplies twice. With some secrets, a single multiplication would give similar hashes to
    /// similar keys.
    fn finish(&self) -> u64 {
        let stirred = |mixed: u64| (mixed ^ mixed >> 32).wrapping_mul(STIR);
        let mixed = stirred(stirred(self.mixed));
        mixed ^ mixed >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u128) -> Key {
        Key(number.to_le_bytes())
    }

    #[test]
    fn keys_that_differ_in_few_bits_spread_over_all_places() {
        let secrets = || (0..100).map(|_| Mixed::default());
        let steps = [0, 7, 32, 63, 64, 100, 118];
        for (mixed, step) in secrets().flat_map(|mixed| steps.map(|step| (mixed, step))) {
            let mut places = vec![0_u32; 256];
            for number in 0..1024_u128 {
                places[(mixed.hash_one(key(number << step)) % 256) as usize] += 1;
            }
            assert!(places.iter().all(|count| *count < 24), "step {step}: {places:?}");
        }
    }

    #[test]
    fn two_maps_mix_the_same_keys_in_another_way() {
        let (one, two) = (Mixed::default(), Mixed::default());
        assert_eq!(one.hash_one(key(7)), one.hash_one(key(7)));
        assert!((0..100).any(|number| one.hash_one(key(number)) != two.hash_one(key(number))));
    }

    #[test]
    fn a_map_finds_what_is_under_a_key() {
        let mut map = KeyMap::default();
        for number in 0..1000 {
            map.insert(key(number), number);
        }
        assert!((0..1000).all(|number| map.get(&key(number)) == Some(&number)));
        assert_eq!(map.get(&key(1000)), None);
    }
}
