//! Tests rings (log files of fixed size): writers that overwrite old blocks, torn blocks, several
//! writers at once, and searches by time.

use super::reader::{Follower, Ring, scan};
use super::record::encode;
use super::writer::RingWriter;
use super::*;
use crate::transaction::{Kept, Text, Transaction};
use std::ops::RangeInclusive;

fn transaction(end: u64) -> Transaction<'static> {
    let mut transaction = Transaction {
        end,
        elapsed: Some(80),
        status: 200,
        bytes: 900,
        body: None,
        origin_status: Some(200),
        origin_ttfb: Some(70),
        origin_connect: Some(0),
        origin_start: Some(3),
        kept: Kept::Sample,
        weight: 64,
        seen: 70,
        lost: 1,
        ..Transaction::default()
    };
    transaction.texts[Text::Url as usize] = format!("http://a.test/{end}").into();
    transaction.texts[Text::Agent as usize] = "é".repeat(400).into();
    transaction
}

fn records(ends: std::ops::Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    ends.for_each(|end| encode(&transaction(end), &mut out));
    out
}

fn writer(file: &File) -> RingWriter {
    RingWriter::open(file.try_clone().expect("a handle"), MIN_SIZE).expect("opened")
}

fn ends(file: &File, times: RangeInclusive<u64>) -> Vec<u64> {
    let ring = Ring::open(file.try_clone().expect("a handle")).expect("read").expect("a ring");
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for head in ring.blocks(&times).expect("blocks") {
        let block = ring.read(head, &mut bytes).expect("a block");
        ends.extend(block.records().map(|transaction| transaction.end));
    }
    ends
}

const ALWAYS: RangeInclusive<u64> = 0..=u64::MAX;

#[test]
fn a_record_comes_back_with_long_texts_cut() {
    let file = tempfile::tempfile().expect("a file");
    writer(&file).append(&records(7..8)).expect("written");
    let ring = Ring::open(file).expect("read").expect("a ring");
    let mut bytes = Vec::new();
    let head = ring.blocks(&ALWAYS).expect("blocks")[0];
    let block = ring.read(head, &mut bytes).expect("a block");
    let mut expected = transaction(7);
    expected.texts[Text::Agent as usize] = "é".repeat(256).into();
    assert_eq!(block.records().collect::<Vec<_>>(), [expected]);
}

#[test]
fn the_ring_keeps_the_newest_records_also_after_a_restart() {
    let file = tempfile::tempfile().expect("a file");
    for round in 0..3 {
        writer(&file).append(&records(round * 400..(round + 1) * 400)).expect("written");
    }
    let found = ends(&file, ALWAYS);
    assert_eq!(found.last(), Some(&1199));
    assert!(found.len() > 200 && found.windows(2).all(|two| two[0] + 1 == two[1]), "{found:?}");
    assert_eq!(file.metadata().expect("facts").len(), MIN_SIZE);
}

#[test]
fn a_ring_of_another_size_begins_anew() {
    let file = tempfile::tempfile().expect("a file");
    writer(&file).append(&records(0..9)).expect("written");
    let other = file.try_clone().expect("a handle");
    RingWriter::open(other, 2 * MIN_SIZE).expect("opened").append(&records(5..6)).expect("written");
    assert_eq!(ends(&file, ALWAYS), [5]);
}

#[test]
fn a_torn_block_gives_the_records_before_the_tear() {
    let file = tempfile::tempfile().expect("a file");
    writer(&file).append(&records(0..9)).expect("written");
    let fourth = records(0..3).len() as u64;
    file.write_all_at(&[9], HEAD + BLOCK + BLOCK_HEAD as u64 + fourth + 40).expect("damaged");
    assert_eq!(ends(&file, ALWAYS), [0, 1, 2]);
    file.write_all_at(&[9], HEAD + BLOCK + 4).expect("damaged");
    assert_eq!(ends(&file, ALWAYS), Vec::<u64>::new());
}

/// Returns the end times that a scan finds, and the number of records that it misses.
fn scanned(file: &File) -> (Vec<u64>, u64) {
    let ring = Ring::open(file.try_clone().expect("a handle")).expect("read").expect("a ring");
    let add = |ends: &mut Vec<u64>, transaction: &Transaction<'_>| ends.push(transaction.end);
    let (ends, destroyed) = scan(&ring, &ALWAYS, 2, Vec::new, add).expect("read");
    (ends.concat(), destroyed)
}

#[test]
fn a_scan_passes_over_damaged_records_and_counts_them() {
    let file = tempfile::tempfile().expect("a file");
    for round in 0..3 {
        writer(&file).append(&records(round * 400..(round + 1) * 400)).expect("written");
    }
    let (found, destroyed) = scanned(&file);
    assert_eq!((found.last(), destroyed), (Some(&1199), 0), "an intact ring");
    let file = tempfile::tempfile().expect("a file");
    writer(&file).append(&records(1..10)).expect("written");
    let first = HEAD + BLOCK + BLOCK_HEAD as u64;
    let damage = |at: u64, bytes: &[u8]| file.write_all_at(bytes, at).expect("damaged");
    damage(first + records(1..4).len() as u64 + 40, &[9]);
    assert_eq!(scanned(&file), (vec![1, 2, 3, 5, 6, 7, 8, 9], 1));
    damage(first + records(1..4).len() as u64, &[0xff; 8]);
    damage(first + records(1..9).len() as u64 + 90, &[9]);
    assert_eq!(scanned(&file), (vec![1, 2, 3, 5, 6, 7, 8], 2), "also the last record");
    damage(HEAD + BLOCK + 4, &[9]);
    assert_eq!(scanned(&file), (vec![1, 2, 3, 5, 6, 7, 8], 1), "the head hides the last record");
    damage(first, &[9; 30_000]);
    assert_eq!(scanned(&file), (vec![], 1));
}

#[test]
fn an_emptied_ring_begins_anew_and_a_cut_ring_is_reported() {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = writer(&file);
    writer.append(&records(0..9)).expect("written");
    file.set_len(0).expect("emptied");
    writer.append(&records(9..200)).expect("written");
    assert_eq!(ends(&file, ALWAYS).last(), Some(&199));
    file.set_len(HEAD + BLOCK).expect("cut");
    let ring = Ring::open(file).expect("read").expect("a ring");
    let error = ring.blocks(&ALWAYS).expect_err("cut");
    assert!(error.to_string().contains("the file is damaged"), "{error}");
}

#[test]
fn two_processes_write_without_harm() {
    let file = tempfile::tempfile().expect("a file");
    let (mut old, mut new) = (writer(&file), writer(&file));
    for round in 0..5 {
        old.append(&records(round..round + 1)).expect("written");
        new.append(&records(100 + round..101 + round)).expect("written");
    }
    let mut found = ends(&file, ALWAYS);
    found.sort_unstable();
    assert_eq!(found, [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]);
}

#[test]
fn blocks_outside_the_time_are_not_read() {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = writer(&file);
    writer.append(&records(0..150)).expect("written");
    let found = ends(&file, 120..=121);
    assert!(found.contains(&120) && !found.contains(&1), "{found:?}");
    assert!(ends(&file, 500..=600).is_empty());
}

#[test]
fn a_follower_gets_each_record_once() {
    let file = tempfile::tempfile().expect("a file");
    let mut writer = writer(&file);
    let ring = Ring::open(file).expect("read").expect("a ring");
    let (mut follower, mut found) = (Follower::default(), Vec::new());
    for round in 0..10 {
        writer.append(&records(round * 30..(round + 1) * 30)).expect("written");
        follower.poll(&ring, 45, |transaction| found.push(transaction.end)).expect("read");
    }
    assert_eq!(found, (45..300).collect::<Vec<_>>());
}

#[test]
fn another_file_is_no_ring() {
    let file = tempfile::tempfile().expect("a file");
    assert!(Ring::open(file.try_clone().expect("a handle")).expect("read").is_none());
    file.write_all_at(b"1286536308.779 180 192.0.2.1 TCP_MISS/200", 0).expect("written");
    assert!(Ring::open(file).expect("read").is_none());
}
