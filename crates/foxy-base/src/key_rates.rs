//! Estimates how often nodes ask for each key, in a table of fixed size. Rare keys displace each
//! other from the table, but not a frequent key.

use crate::Instant;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// Number of keys in the table.
const SLOTS: usize = 4096;
/// Time over which requests are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The keys with their counts.
#[derive(Debug)]
pub struct KeyRates(Mutex<Vec<Slot>>);

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: u64,
    begun: Instant,
    /// Number of requests since `begun`.
    count: u32,
    /// Number of requests in the previous window.
    before: u32,
}

impl Default for KeyRates {
    fn default() -> Self {
        Self(Mutex::new(vec![Slot::default(); SLOTS]))
    }
}

impl KeyRates {
    /// Counts a request for a key. Returns the number of requests for the key in the present or the
    /// previous window, whichever is larger.
    pub fn note(&self, key: &[u8], now: Instant) -> u32 {
        let key = xxh3_64(key);
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut slots[key as usize % SLOTS];
        if slot.key != key {
            // Each request for another key lowers the count. Another key takes the slot only if the
            // count is 0 or the window has ended.
            let is_old = now.since(slot.begun) >= WINDOW;
            slot.count = slot.count.saturating_sub(1);
            if slot.count > 0 && !is_old {
                return 1;
            }
            *slot = Slot { key, begun: now, ..Slot::default() };
        }
        let windows = now.since(slot.begun).as_millis() / WINDOW.as_millis();
        if windows > 0 {
            slot.before = if windows == 1 { slot.count } else { 0 };
            (slot.begun, slot.count) = (now, 0);
        }
        slot.count = slot.count.saturating_add(1);
        slot.count.max(slot.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_rate_of_a_key_counts_the_present_and_the_previous_second() {
        let rates = KeyRates::default();
        let last = (0..100).map(|number| rates.note(b"hot", at(number * 10))).last();
        assert_eq!(last, Some(100));
        assert_eq!(rates.note(b"hot", at(1100)), 100, "the second before counts");
        assert_eq!(rates.note(b"hot", at(5000)), 1, "but no earlier second");
        assert_eq!(rates.note(b"cold", at(5000)), 1);
    }

    #[test]
    fn rare_keys_do_not_displace_a_hot_key_of_the_same_slot() {
        let slot = |key: &str| xxh3_64(key.as_bytes()) as usize % SLOTS;
        let mut keys = (0..).map(|number| format!("k{number}"));
        let other = keys.find(|key| slot(key) == slot("hot")).expect("a key");
        let rates = KeyRates::default();
        (0..50).for_each(|_| {
            rates.note(b"hot", at(0));
        });
        assert_eq!(rates.note(other.as_bytes(), at(1)), 1);
        assert_eq!(rates.note(b"hot", at(2)), 50);
    }
}
