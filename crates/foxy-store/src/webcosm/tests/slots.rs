//! A slot that cannot be written to is left out after two turns, and still after an opening.

use super::{length, settings};
use crate::contract::Answer;
use crate::status::StoreStatus;
use crate::testing::Store;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment};
use foxy_base::Instant;
use foxy_device::{Device, IoDone, IoError, IoId, IoOp, Memory};
use std::ops::Range;

/// A device on which writes to some bytes fail.
struct Scratched {
    inner: Memory,
    bad: Range<u64>,
    failed: u32,
    done: Vec<IoDone>,
}

impl Device for Scratched {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        match op {
            IoOp::Write { offset, buffer, .. } if self.bad.contains(&offset) => {
                self.failed += 1;
                self.done.push(IoDone { id, result: Err(IoError::Device), buffer: Some(buffer) });
            }
            other => self.inner.submit(id, other, now),
        }
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.done);
        self.inner.reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.inner.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.done.len()
    }
}

/// Puts records until so many segments of the main log have been begun, and says how many writes
/// have failed.
fn turn(store: &mut Store<Scratched>, keys: Range<u64>) -> u32 {
    for key in keys {
        assert!(
            matches!(store.put(key, 0, length(key)), Answer::Stored | Answer::Refused(_)),
            "{key}"
        );
    }
    let later = store.driver.now() + std::time::Duration::from_secs(2);
    store.driver.run_until(later);
    store.driver.run_until_idle();
    store.driver.device().failed
}

#[test]
fn a_slot_that_fails_in_two_turns_is_left_out_from_then_on() {
    let geometry = Geometry::of(settings().size);
    let slot = geometry.slot(Segment { log: LogName::Main, sequence: 2 });
    let bad = geometry.offset(slot, 0)..geometry.offset(slot + 1, 0);
    let device = Scratched { inner: Memory::default(), bad, failed: 0, done: Vec::new() };
    let mut store = Store::webcosm(&settings(), device);
    let failed: Vec<_> =
        (0..8).map(|round| turn(&mut store, round * 500..round * 500 + 500)).collect();
    assert!(failed[0] > 0 && failed[7] < 20, "{failed:?}");
    assert_eq!(failed[3], failed[7], "{failed:?}");
    let newest = (3_900..4_000)
        .filter(|&key| length(key) < 3_000 && store.holds(key, 0, length(key)))
        .count();
    assert!(newest > 40, "{newest}");
    let mut device = store.driver.into_device();
    device.inner.close_all();
    let mut store = Store::webcosm(&settings(), device);
    assert_eq!(store.observer.status.get(), StoreStatus::Serving);
    let after = turn(&mut store, 10_000..11_000);
    assert_eq!(after, failed[7], "it is remembered");
}
