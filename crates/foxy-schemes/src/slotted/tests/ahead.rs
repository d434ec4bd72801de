//! Tests prefetching: a read also fetches the next records of the same origin server. The tests
//! check which records are prefetched, how `get` requests use these records, and when the records
//! are dropped.

use super::*;

/// Returns the settings of a store that prefetches up to 8 KiB per read.
fn ahead() -> SchemeSettings {
    SchemeSettings { prefetch: 8 << 10, ..settings() }
}

/// Returns a device with a closed store. Records 0 to 5 of one origin server are side by side on
/// disk. A record of another server follows them.
fn written_side_by_side() -> Memory {
    let mut store = Store::open(LAZY_READS_LOC, Memory::default(), &ahead());
    for key in 0..6 {
        store.put(key, 8, 1);
    }
    store.put(6, 8, 2);
    assert_eq!(store.driver.close(), Answer::Closed);
    store.driver.into_device().fork()
}

/// Opens the store of `written_side_by_side`. Returns the store and its numbers of file creations,
/// writes and reads so far.
fn reading_ahead() -> (Store<Memory>, [u64; 3]) {
    let store = Store::open(LAZY_READS_LOC, written_side_by_side(), &ahead());
    let mut before = [0; 3];
    store.counts(&mut before);
    (store, before)
}

/// Returns how many records were prefetched, how many of them a get used, and how many were dropped
/// unused.
fn prefetch_counts<D>(store: &Store<D>) -> [u64; 3] {
    let statistics = &store.observer.statistics;
    [&statistics.prefetched, &statistics.prefetch_useful, &statistics.prefetch_wasted]
        .map(|cell| cell.get())
}

#[test]
fn following_records_of_a_site_are_prefetched_and_answered_without_a_read() {
    let (mut store, mut before) = reading_ahead();
    assert!(store.has(0));
    assert_eq!((store.counts(&mut before)[2], prefetch_counts(&store)), (1, [2, 0, 0]));
    assert!(store.has(2) && store.has(1));
    assert_eq!((store.counts(&mut before)[2], prefetch_counts(&store)), (0, [2, 2, 0]));
    assert!(store.has(5) && store.has(6), "the last of its site, and one of another");
    assert_eq!((store.counts(&mut before)[2], prefetch_counts(&store)), (2, [2, 2, 0]));
}

#[test]
fn prefetched_records_are_dropped_when_their_key_changes() {
    let (mut store, _) = reading_ahead();
    assert!(store.has(0));
    store.put(1, 3, 1);
    assert_eq!(store.driver.remove(Key([2; 16])), Answer::Removed);
    assert_eq!(prefetch_counts(&store), [2, 0, 2]);
    assert!(store.has(1) && !store.has(2));
}

#[test]
fn a_damaged_neighbour_is_dropped_and_the_record_is_answered() {
    let mut device = written_side_by_side();
    let second = (8 * SLOT + foxy_store::record::HEADER) as u64;
    assert!(device.rot(&StorePath::new("lazy-reads-loc.d/0"), second, 1));
    let mut store = Store::open(LAZY_READS_LOC, device, &ahead());
    assert!(store.has(0));
    assert_eq!(prefetch_counts(&store), [1, 0, 0]);
    assert!(!store.has(1) && store.has(2));
}

#[test]
fn a_record_is_read_alone_when_it_cannot_be_read_with_its_neighbours() {
    let spoil = |op| match op {
        IoOp::Read { file, buffer, .. } if buffer.len() == 24 * SLOT => {
            IoOp::Read { file, offset: 1 << 40, buffer }
        }
        op => op,
    };
    let device = Spoilt { inner: written_side_by_side(), spoil };
    let mut store = Store::open(LAZY_READS_LOC, device, &ahead());
    assert!((0..7).all(|key| store.has(key)));
    assert!(prefetch_counts(&store)[0] > 0, "two are too many, one is not");
}

#[test]
fn gets_of_records_being_prefetched_wait_for_that_read() {
    let (mut store, mut before) = reading_ahead();
    let asked: Vec<_> = (0..4).map(|key| store.driver.ask(Ask::Get(Key([key; 16])))).collect();
    let later = store.driver.now() + Duration::from_secs(5);
    store.driver.run_until(later);
    let answers = store.driver.take_answers();
    let found = |call| {
        answers.iter().any(|(other, answer)| other == call && matches!(answer, Answer::Found(_)))
    };
    assert!(asked.iter().all(found));
    assert_eq!(
        (store.counts(&mut before)[2], prefetch_counts(&store)),
        (2, [4, 2, 0]),
        "0 to 2, and 3 to 5"
    );
}
