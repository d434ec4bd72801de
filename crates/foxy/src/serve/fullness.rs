//! Whether a store's disk is full: what the store counts, remembered for a while. A store on a full disk goes on serving
//! what it has, and stores nothing.

use foxy_base::Instant;
use std::cell::Cell;
use std::time::Duration;

/// How long a disk counts as full after it last was. Until something is stored again nobody can know better.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What is known of one store's disk.
pub struct Fullness {
    counted: Cell<u64>,
    last: Cell<Option<Instant>>,
}

impl Fullness {
    /// A disk with room, whose store has found none so often: while it was opened it may have tried several sizes.
    pub const fn after(counted: u64) -> Self {
        Self { counted: Cell::new(counted), last: Cell::new(None) }
    }

    /// Whether it is full, by how often the store has found no room until `now`.
    pub fn judge(&self, counted: u64, now: Instant) -> bool {
        if self.counted.replace(counted) != counted {
            self.last.set(Some(now));
        }
        self.last.get().is_some_and(|last| now < last + REMEMBERED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_for_a_minute_after_it_last_had_no_room() {
        let fullness = Fullness::after(2);
        let second = |count: u64| Instant::ZERO + Duration::from_secs(count);
        let looks =
            [(0, 2, false), (5, 3, true), (60, 3, true), (64, 3, true), (65, 3, false), (66, 9, true)];
        for (at, counted, expected) in looks {
            assert_eq!(fullness.judge(counted, second(at)), expected, "after {at} s");
        }
    }
}
