//! Tests which records a store finds after it was opened again, and how soon a get finds them.

use super::{length, new, open, settings};
use crate::contract::{Answer, RefusedReason};
use crate::observe::Observer;
use crate::settings::StoreSettings;
use crate::shard::engine::{Ask, Engine, Wake};
use crate::status::StoreStatus;
use crate::testing::{Intercept, Intercepted, Store, content, name};
use crate::webcosm::Webcosm;
use foxy_base::Instant;
use foxy_device::{IoId, IoOp, Memory};

fn unsyncing(_: IoId, op: IoOp) -> Intercept {
    if matches!(op, IoOp::Sync { .. }) { Intercept::Swallow } else { Intercept::Pass(op) }
}

#[test]
fn a_killed_store_serves_gets_and_refuses_puts_until_the_first_sync() {
    let mut store = new();
    (0..120).for_each(|key| assert_eq!(store.put(key, 0, length(key)), Answer::Stored));
    store.flush();
    let mut store = Store::webcosm(&settings(), Intercepted::new(store.kill(), unsyncing));
    assert_eq!(store.observer.status.get(), StoreStatus::Rebuilding);
    assert!((0..120).all(|key| store.holds(key, 0, length(key))));
    assert_eq!(store.put(500, 0, 300), Answer::Refused(RefusedReason::Recovering));
    assert_eq!(store.driver.remove(name(5)), Answer::Refused(RefusedReason::Recovering));
    assert!(store.holds(5, 0, length(5)));
}

#[test]
fn a_killed_store_answers_while_it_learns_of_its_records() {
    let settings = StoreSettings { record_limit: 1 << 20, ..StoreSettings::with_size(64 << 20) };
    let mut store = open(&settings, Memory::default());
    (0..30_000).for_each(|key| assert_eq!(store.put(key, 0, 600), Answer::Stored));
    store.flush();
    let known = store.counter("records");
    let observer = Observer::default();
    let scheme = Webcosm::boxed(&settings, observer.clone());
    let mut engine = Engine::new(scheme, store.kill(), observer.clone());
    let mut answers = Vec::new();
    engine.start(Instant::ZERO, &mut |(), answer| answers.push(answer));
    let found = Answer::Found(content(29_999, 0, 600));
    let mut turns_after = 0;
    loop {
        engine.turn(Instant::ZERO, &mut |(), answer| answers.push(answer));
        if observer.status.get() == StoreStatus::Serving {
            break;
        }
        turns_after += u32::from(answers.contains(&found));
        engine.wake(Wake::Request(Ask::Get(name(29_999)), ()), Instant::ZERO, &mut |(), answer| {
            answers.push(answer)
        });
    }
    assert!(turns_after > 3, "{turns_after}");
    assert_eq!(observer.statistics.recovered.get(), known);
}

#[test]
fn uses_survive_a_kill_and_a_close() {
    for closed in [true, false] {
        let mut store = new();
        (0..10).for_each(|key| assert_eq!(store.put(key, 0, 600), Answer::Stored));
        (100..400).for_each(|key| assert_eq!(store.put(key, 0, 2_000), Answer::Stored));
        store.flush();
        assert!((0..10).all(|key| store.holds(key, 0, 600)));
        if !closed {
            store.driver.run_until(store.driver.now() + 2 * settings().checkpoint_interval);
            store.driver.run_until_idle();
        }
        let mut store = open(&settings(), if closed { store.close() } else { store.kill() });
        let mut key = 1_000;
        while store.counter("evicted") == 0 {
            assert_eq!(store.put(key, 0, length(key)), Answer::Stored);
            key += 1;
        }
        let kept = (0..10).filter(|&key| store.holds(key, 0, 600)).count();
        let others = (100..110).filter(|&key| store.holds(key, 0, 2_000)).count();
        assert!(kept == 10 && others < 10, "{kept} {others}, closed: {closed}");
    }
}
