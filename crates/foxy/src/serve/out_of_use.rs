//! Which stores of a set are out of use, and which store takes their keys instead. A store that is
//! out stays out as long as the process lives. When one is taken out is decided in `wear`.

use foxy_base::random::split_mix;
use foxy_store::Key;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stores that are out.
pub struct OutOfUse {
    out: Vec<AtomicBool>,
    secret: u64,
}

impl OutOfUse {
    /// None of so many stores. `secret` is random, and another in each process.
    pub fn none(stores: usize, mut secret: u64) -> Self {
        let out = (0..stores).map(|_| AtomicBool::new(false)).collect();
        Self { out, secret: split_mix(&mut secret) }
    }

    /// From now on that store is asked for nothing.
    pub fn take_out(&self, store: usize) {
        self.out[store].store(true, Ordering::SeqCst);
    }

    /// Whether a store is out.
    pub fn is_out(&self, store: usize) -> bool {
        self.out[store].load(Ordering::SeqCst)
    }

    /// The stores in use.
    pub fn in_use(&self) -> Vec<usize> {
        (0..self.out.len()).filter(|store| !self.is_out(*store)).collect()
    }

    /// Where a key whose store is `home` lies, and under which name: as it is at home, and under
    /// another name where that is out. No other process and no other number of stores in use gives
    /// it the same one, so that what is stored there is found again only as long as nobody else can
    /// have changed it.
    pub fn place(&self, key: Key, home: usize) -> (usize, Key) {
        if !self.is_out(home) {
            return (home, key);
        }
        let in_use = self.in_use();
        let mut state = self.secret.wrapping_add(in_use.len() as u64);
        let [low, high] = [split_mix(&mut state), split_mix(&mut state)];
        let mask = u128::from(low) | u128::from(high) << 64;
        let name = u128::from_le_bytes(key.0) ^ mask;
        let turn = usize::try_from(name % in_use.len().max(1) as u128)
            .expect("less than the number of stores");
        (in_use.get(turn).copied().unwrap_or(home), Key(name.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;
    use std::collections::HashSet;

    fn keys() -> Vec<Key> {
        let mut random = Random::new(7);
        let key = || {
            Key((u128::from(random.next_u64()) | u128::from(random.next_u64()) << 64).to_le_bytes())
        };
        std::iter::repeat_with(key).take(300).collect()
    }

    #[test]
    fn keys_of_stores_in_use_stay_and_the_others_are_divided_among_these() {
        let out = OutOfUse::none(4, 5);
        out.take_out(2);
        let (mut names, mut taken) = (HashSet::new(), [0; 4]);
        for key in keys() {
            assert_eq!(out.place(key, 1), (1, key));
            let (store, name) = out.place(key, 2);
            assert_eq!(out.place(key, 2), (store, name));
            assert!(name != key && names.insert(name.0));
            taken[store] += 1;
        }
        assert_eq!(taken[2], 0);
        assert!([0, 1, 3].iter().all(|&store: &usize| taken[store] > 60), "{taken:?}");
    }

    #[test]
    fn a_key_away_from_home_has_another_name_in_each_process_and_for_each_number_of_stores() {
        for key in keys() {
            let (one, other) = (OutOfUse::none(3, 5), OutOfUse::none(3, 6));
            one.take_out(0);
            other.take_out(0);
            let before = one.place(key, 0);
            assert_ne!(before.1, other.place(key, 0).1);
            one.take_out(1);
            let after = one.place(key, 0);
            assert!(after.0 == 2 && after.1 != before.1);
        }
    }
}
