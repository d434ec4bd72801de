//! Decides by hash which keys belong to the sample. The choice is the same after a restart.

/// Keys of larger objects are sampled more often, in proportion to their size, because a few large
/// objects make up most of the bytes. So estimates of bytes need no larger sample than estimates of
/// hits.
const LARGE_BYTES: u64 = 32 << 10;

/// The share of the keys in a sample: `2^-halvings` for small objects, more for large objects. A
/// lower rate takes a subset of the keys of a higher rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleRate {
    halvings: u8,
}

impl SampleRate {
    /// The lowest rate, at which an estimate is still of use for the largest stores.
    const MAX_HALVINGS: u8 = 40;

    /// Creates the rate `2^-halvings`.
    pub fn new(halvings: u8) -> Self {
        Self { halvings: halvings.min(Self::MAX_HALVINGS) }
    }

    /// Returns how often the rate was halved.
    pub const fn halvings(self) -> u8 {
        self.halvings
    }

    /// Returns half of this rate.
    #[must_use]
    pub fn halved(self) -> Self {
        Self::new(self.halvings + 1)
    }

    /// Returns the share of the keys of small objects.
    pub fn share(self) -> f64 {
        1.0 / self.divisor() as f64
    }

    /// Returns whether the sample contains a key. `size` is the size of its object in bytes, or 0
    /// if it is not known.
    pub fn takes(self, key_hash: u64, size: u64) -> bool {
        // The highest bits decide here, and the lowest bits choose the group of a key.
        key_hash >> (64 - Self::MAX_HALVINGS)
            < self.times(size) << (Self::MAX_HALVINGS - self.halvings)
    }

    /// Returns the number of objects of this size for which a sampled object stands.
    pub fn weight(self, size: u64) -> f64 {
        self.divisor() as f64 / self.times(size) as f64
    }

    /// Returns the bytes that an object takes in a miniature cache.
    pub fn charged(self, size: u64) -> u64 {
        size / self.times(size)
    }

    /// Returns the size of the miniature of a cache of `capacity` bytes.
    pub const fn miniature(self, capacity: u64) -> u64 {
        capacity >> self.halvings
    }

    const fn divisor(self) -> u64 {
        1 << self.halvings
    }

    /// Returns the sampling rate of objects of this size, divided by the rate of small objects.
    fn times(self, size: u64) -> u64 {
        (size / LARGE_BYTES).clamp(1, self.divisor())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn the_weights_of_the_sample_stand_for_all_keys() {
        let mut random = Random::new(1);
        let keys: Vec<u64> = (0..200_000).map(|_| random.next_u64()).collect();
        for size in [0, 1, 32 << 10, 100 << 10, 1 << 20, 1 << 40] {
            for halvings in [0, 1, 5] {
                let rate = SampleRate::new(halvings);
                let taken = keys.iter().filter(|key| rate.takes(**key, size)).count();
                let stands_for = taken as f64 * rate.weight(size) / keys.len() as f64;
                assert!((stands_for - 1.0).abs() < 0.05, "{stands_for} {size} {halvings}");
                let charged = rate.charged(size) as f64 * taken as f64;
                let share = charged / (size.max(1) as f64 * keys.len() as f64 * rate.share());
                assert!(size == 0 || (share - 1.0).abs() < 0.05, "{share} {size} {halvings}");
            }
        }
    }

    #[test]
    fn a_lower_rate_takes_a_subset() {
        let mut random = Random::new(2);
        for _ in 0..10_000 {
            let (key, size) = (random.next_u64(), random.below(1 << 20));
            let taken: Vec<bool> =
                (0..=40).map(|halvings| SampleRate::new(halvings).takes(key, size)).collect();
            assert!(taken[0] && taken.is_sorted_by(|a, b| a >= b), "{key} {size}");
        }
    }
}
