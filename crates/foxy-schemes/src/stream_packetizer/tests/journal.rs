//! Tests a store whose forget journal is lost. The store must start empty, because it cannot know
//! which records were removed.

use super::{new, open, settings};
use crate::stream_packetizer::FILE_NAME;
use foxy_device::{Memory, StorePath};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::contract::Answer;
use foxy_store::layout::{Layout, PAGE};
use foxy_store::superblock::{Found, Superblock};
use foxy_store::testing::{Store, name};

/// Returns the bytes of the file, and the range of the active journal half in bytes.
fn half_that_counts(device: &Memory) -> (Vec<u8>, std::ops::Range<usize>) {
    let bytes = device.content(&StorePath::new(FILE_NAME)).expect("a store");
    let Ok(Found::Ours(superblock)) = Superblock::judge(&bytes[..PAGE], &bytes[PAGE..2 * PAGE])
    else {
        panic!("no superblock");
    };
    let half = Layout::of(superblock.size).journal[superblock.journal_half as usize];
    let from = usize::try_from(half.offset()).expect("small");
    (bytes, from..from + half.bytes())
}

fn reopened(device: Memory, expected: Beginning) -> Store {
    let store = open(&settings(), device);
    assert_eq!(store.observer.beginning.get(), Some(expected));
    assert_eq!(store.counter("begun_anew"), u64::from(expected != Beginning::Kept));
    store
}

#[test]
fn a_journal_without_a_whole_block_forgets_everything_and_says_so() {
    // Round 0 tests a new store that was killed, and round 1 a closed store. Round 2 tests a closed
    // store that was opened again and then killed.
    for lives in 0..3 {
        let mut store = new();
        assert_eq!(store.observer.beginning.get(), Some(Beginning::New));
        (0..20).for_each(|key| assert_eq!(store.put(key, 1, 900), Answer::Stored));
        store.flush();
        let mut device = if lives == 0 { store.kill() } else { store.close() };
        for _ in 1..lives {
            let mut store = reopened(device, Beginning::Kept);
            assert_eq!(store.driver.remove(name(7)), Answer::Removed);
            device = store.kill();
        }
        let (bytes, half) = half_that_counts(&device);
        for noise in [0, 0x5a] {
            let mut device = device.fork();
            for at in half.clone() {
                let mask = bytes[at] ^ noise;
                assert!(mask == 0 || device.rot(&StorePath::new(FILE_NAME), at as u64, mask));
            }
            let mut store = reopened(device, Beginning::Anew(AnewReason::JournalLost));
            assert!((0..20).all(|key| !store.holds(key, 1, 900)));
        }
        assert!(reopened(device, Beginning::Kept).holds(3, 1, 900));
    }
}
