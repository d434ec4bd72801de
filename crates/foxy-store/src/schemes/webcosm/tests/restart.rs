//! What a store knows, and how soon, once it is opened again.

use super::{length, new, open, settings};
use crate::contract::Answer;
use crate::engine::{Ask, Engine, Wake};
use crate::observe::Observer;
use crate::schemes::SchemeName;
use crate::schemes::testing::{content, name};
use crate::settings::StoreSettings;
use crate::status::StoreStatus;
use foxy_base::Instant;
use foxy_device::Memory;

#[test]
fn a_killed_store_answers_while_it_learns_of_its_records() {
    let settings = StoreSettings { record_limit: 1 << 20, ..StoreSettings::with_size(64 << 20) };
    let mut store = open(&settings, Memory::default());
    (0..30_000).for_each(|key| assert_eq!(store.put(key, 0, 600), Answer::Stored));
    store.flush();
    let known = store.counter("records");
    let observer = Observer::default();
    let scheme = SchemeName::Webcosm.make(&settings, observer.clone());
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
fn what_is_in_use_is_known_to_be_after_a_kill_and_after_a_close() {
    for closed in [true, false] {
        let mut store = new();
        (0..10).for_each(|key| assert_eq!(store.put(key, 0, 600), Answer::Stored));
        (100..400).for_each(|key| assert_eq!(store.put(key, 0, 2_000), Answer::Stored));
        store.flush();
        (0..2).for_each(|_| assert!((0..10).all(|key| store.holds(key, 0, 600))));
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
