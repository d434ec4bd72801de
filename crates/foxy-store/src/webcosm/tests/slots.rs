//! Tests that a store no longer uses a slot (place in the file for a segment) after two failed
//! writes, also after a restart.

use super::{length, settings};
use crate::contract::Answer;
use crate::status::StoreStatus;
use crate::testing::{Intercept, Intercepted, Store};
use crate::webcosm::format::geometry::{Geometry, LogName, Segment};
use foxy_device::{Device, IoDone, IoError, IoId, IoOp, Memory};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates a device on which writes to the bytes in `bad` fail. Counts the failed writes in
/// `failed`.
fn scratched(
    bad: Range<u64>,
    failed: Arc<AtomicU32>,
) -> impl FnMut(IoId, IoOp) -> Intercept + Send {
    move |id, op| match op {
        IoOp::Write { offset, buffer, .. } if bad.contains(&offset) => {
            failed.fetch_add(1, Ordering::Relaxed);
            Intercept::End(IoDone { id, result: Err(IoError::Device), buffer: Some(buffer) })
        }
        other => Intercept::Pass(other),
    }
}

/// Puts one record for each key number in `keys`.
fn turn<D: Device>(store: &mut Store<D>, keys: Range<u64>) {
    for key in keys {
        assert!(
            matches!(store.put(key, 0, length(key)), Answer::Stored | Answer::Refused(_)),
            "{key}"
        );
    }
    let later = store.driver.now() + std::time::Duration::from_secs(2);
    store.driver.run_until(later);
    store.driver.run_until_idle();
}

#[test]
fn a_slot_that_fails_in_two_turns_is_left_out_from_then_on() {
    let geometry = Geometry::of(settings().size);
    let slot = geometry.slot(Segment { log: LogName::Main, sequence: 2 });
    let bad = geometry.offset(slot, 0)..geometry.offset(slot + 1, 0);
    let failures = Arc::new(AtomicU32::new(0));
    let count = || failures.load(Ordering::Relaxed);
    let device = Intercepted::new(Memory::default(), scratched(bad, Arc::clone(&failures)));
    let mut store = Store::webcosm(&settings(), device);
    let failed: Vec<_> = (0..8)
        .map(|round| {
            turn(&mut store, round * 500..round * 500 + 500);
            count()
        })
        .collect();
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
    turn(&mut store, 10_000..11_000);
    assert_eq!(count(), failed[7], "it is remembered");
}
