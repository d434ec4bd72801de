//! Tests ufs: its disk operations for hits, puts and removals, and their order. The tests of
//! `foxy-torture` cover the behaviour that all storage schemes share.

use super::*;
use crate::{UfsMapping, UfsReclaim};
use bytes::Bytes;
use foxy_device::DirectoryEntry;
use foxy_store::contract::{Record, StoreReply};

/// A ufs store without a device. The test itself answers the disk operations.
struct Hand {
    ufs: Ufs,
    log: Vec<String>,
    replies: Vec<StoreReply>,
}

impl Hand {
    fn new(change: impl FnOnce(&mut SchemeSettings)) -> Self {
        let mut settings = SchemeSettings::with_size(1 << 20);
        change(&mut settings);
        Self {
            ufs: Ufs::new(UFS, &settings, Observer::default()),
            log: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Answers all disk operations with success. The answer to a listing is `folder`.
    fn carry_out(&mut self, mut out: Outbox, folder: &[DirectoryEntry]) {
        while !out.operations.is_empty() {
            let mut next = Outbox::default();
            for (id, op) in out.operations.drain(..) {
                let (text, result, buffer) = answer(op, folder);
                self.log.push(text);
                self.ufs.on_io_done(IoDone { id, result, buffer }, Instant::ZERO, &mut next);
            }
            self.replies.append(&mut out.replies);
            out = next;
        }
        self.replies.append(&mut out.replies);
    }

    fn start(&mut self, folder: &[DirectoryEntry]) {
        let mut out = Outbox::default();
        self.ufs.start(Instant::ZERO, &mut out);
        self.carry_out(out, folder);
    }

    /// Sends a request. Returns its disk operations and its answer.
    fn ask(&mut self, request: StoreRequest) -> (Vec<String>, Answer) {
        self.log.clear();
        let mut out = Outbox::default();
        self.ufs.on_request(request, Instant::ZERO, &mut out);
        self.carry_out(out, &[]);
        (std::mem::take(&mut self.log), self.replies.pop().expect("an answer").answer)
    }

    fn put(&mut self, key: u8) -> (Vec<String>, Answer) {
        let record =
            Record { head: Bytes::from_static(b"head"), body: Bytes::from(vec![key; 1000]) };
        let hint = foxy_store::contract::PlacementHint::default();
        self.ask(StoreRequest::Put {
            ticket: Ticket(u64::from(key)),
            key: Key([key; 16]),
            record,
            hint,
        })
    }

    fn remove(&mut self, key: u8) -> (Vec<String>, Answer) {
        self.ask(StoreRequest::Remove { ticket: Ticket(9), key: Key([key; 16]) })
    }
}

fn answer(
    op: IoOp,
    folder: &[DirectoryEntry],
) -> (String, Result<IoOutput, IoError>, Option<foxy_device::IoBuffer>) {
    match op {
        IoOp::Open { path, .. } | IoOp::OpenBlockDevice { path, .. } => {
            let is_record = !path.as_str().starts_with("foxy");
            let result = if is_record { Ok(IoOutput::Done) } else { Err(IoError::NotFound) };
            (format!("open {}", path.as_str()), result, None)
        }
        IoOp::Create { path, .. } => {
            (format!("create {}", path.as_str()), Ok(IoOutput::Done), None)
        }
        IoOp::Close { .. } => ("close".into(), Ok(IoOutput::Done), None),
        IoOp::Read { buffer, .. } => {
            ("read".into(), Ok(IoOutput::Moved { count: buffer.len() }), Some(buffer))
        }
        IoOp::Write { buffer, .. } => {
            let count = buffer.len();
            (format!("write {count}"), Ok(IoOutput::Moved { count }), Some(buffer))
        }
        IoOp::Sync { .. } => ("sync".into(), Ok(IoOutput::Done), None),
        IoOp::Remove { path } => (format!("remove {}", path.as_str()), Ok(IoOutput::Done), None),
        IoOp::MakeDir { path } => {
            (format!("directory {}", path.as_str()), Ok(IoOutput::Done), None)
        }
        IoOp::List { path } => {
            (format!("list {}", path.as_str()), Ok(IoOutput::Listing(folder.to_vec())), None)
        }
        IoOp::Trim { .. } => ("trim".into(), Ok(IoOutput::Done), None),
    }
}

fn file(name: &str) -> DirectoryEntry {
    DirectoryEntry { name: name.into(), is_directory: false, size: 10 }
}

#[test]
fn a_fill_of_a_new_key_creates_writes_and_closes_without_a_sync() {
    let mut hand = Hand::new(|_| {});
    hand.start(&[]);
    let (operations, answer) = hand.put(1);
    assert_eq!(answer, Answer::Stored);
    assert_eq!(operations, ["create 00/00/00000000", "write 1536", "close"]);
}

#[test]
fn a_file_is_written_and_read_in_pieces_if_a_setting_says_so() {
    let mut hand = Hand::new(|settings| settings.ufs_piece = 1024);
    hand.start(&[]);
    let (operations, answer) = hand.put(1);
    assert_eq!(answer, Answer::Stored);
    assert_eq!(operations, ["create 00/00/00000000", "write 1024", "write 512", "close"]);
    let get = StoreRequest::Get { ticket: Ticket(2), key: Key([1; 16]) };
    let (operations, _) = hand.ask(get);
    assert_eq!(operations[..4], ["open 00/00/00000000", "read", "read", "close"]);
}

#[test]
fn a_replacement_is_synced_before_its_answer_and_unlinks_the_old_file() {
    let mut hand = Hand::new(|_| {});
    hand.start(&[]);
    hand.put(1);
    let (operations, answer) = hand.put(1);
    assert_eq!(answer, Answer::Stored);
    let written = [
        "create 00/00/00000001",
        "write 1536",
        "close",
        "remove 00/00/00000000",
        "write 4096",
        "sync",
    ];
    assert_eq!(operations, written);
    assert_eq!(hand.put(2).0[0], "create 00/00/00000000", "the lowest free number");
}

#[test]
fn a_removal_is_synced_before_its_answer_and_one_of_nothing_costs_nothing() {
    let mut hand = Hand::new(|_| {});
    hand.start(&[]);
    hand.put(1);
    assert_eq!(hand.remove(7), (vec![], Answer::Removed));
    let (operations, answer) = hand.remove(1);
    assert_eq!(answer, Answer::Removed);
    assert_eq!(operations, ["remove 00/00/00000000", "write 4096", "sync"]);
}

#[test]
fn the_mapping_decides_where_files_lie() {
    let check = |ufs_mapping, expected: &str| {
        let mut hand = Hand::new(|settings| settings.ufs_mapping = ufs_mapping);
        hand.start(&[]);
        hand.put(1);
        assert_eq!(hand.put(2).0[0], expected);
    };
    check(UfsMapping::Consecutive, "create 00/00/00000001");
    check(UfsMapping::RoundRobin, "create 01/00/00000001");
}

#[test]
fn a_folder_with_another_programs_store_is_left_alone() {
    let mut hand = Hand::new(|_| {});
    hand.start(&[
        DirectoryEntry { name: "00".into(), is_directory: true, size: 0 },
        file("swap.state"),
    ]);
    assert_eq!(
        hand.ufs.observer.status.get(),
        StoreStatus::Unusable(OpenStoreError::ForeignFolders)
    );
    assert_eq!(hand.put(1), (vec![], Answer::Refused(RefusedReason::StoresNothing)));
    let changes = |text: &&String| text.starts_with("create") || text.starts_with("remove");
    assert_eq!(hand.log.iter().find(changes), None);
}

#[test]
fn foreign_files_are_counted() {
    let mut hand = Hand::new(|_| {});
    hand.start(&[file("notes.txt"), file("00")]);
    assert_eq!(hand.ufs.observer.status.get(), StoreStatus::Serving);
    assert_eq!(hand.ufs.observer.statistics.foreign_files.get(), 2);
}

#[test]
fn objects_above_the_threshold_are_refused() {
    let mut hand = Hand::new(|settings| settings.store.object_limit = 999);
    hand.start(&[]);
    assert_eq!(hand.put(1), (vec![], Answer::Refused(RefusedReason::TooLarge)));
}

#[test]
fn squids_maintenance_removes_some_every_second_down_to_the_low_watermark() {
    let mut hand = Hand::new(|settings| {
        settings.ufs_reclaim = UfsReclaim::EverySecond;
        settings.store.size = 8 << 20;
        (settings.low_watermark, settings.high_watermark) = (1, 100);
    });
    hand.start(&[]);
    let (files, low) = (200, hand.ufs.capacity() / 100);
    assert!((0..files).all(|key| hand.put(key).1 == Answer::Stored));
    let mut second = hand.ufs.deadline().expect("it is above the low watermark");
    let mut removed = Vec::new();
    while hand.ufs.deadline() == Some(second) {
        hand.log.clear();
        let mut out = Outbox::default();
        hand.ufs.on_deadline(second, &mut out);
        hand.carry_out(out, &[]);
        removed.push(hand.log.iter().filter(|text| text.starts_with("remove")).count());
        second = second + std::time::Duration::from_secs(1);
    }
    assert_eq!(removed, [46, 39, 34, 29, 24, 8]);
    assert!(hand.ufs.index.live_bytes() < low && hand.ufs.index.live_bytes() > low - 4096 - 1);
}

#[test]
fn under_squids_maintenance_a_fill_between_two_seconds_keeps_to_the_size() {
    let mut hand = Hand::new(|settings| settings.ufs_reclaim = UfsReclaim::EverySecond);
    hand.start(&[]);
    for key in 0..=u8::MAX {
        assert_eq!(hand.put(key).1, Answer::Stored);
        assert!(hand.ufs.index.used_bytes() <= hand.ufs.capacity(), "key {key}");
    }
    assert!(
        hand.ufs.index.used_bytes() > hand.ufs.capacity() / 100 * 95,
        "nothing goes before it must or a second is over"
    );
}

fn clean_stop(settings: &mut SchemeSettings) {
    settings.store.recovery = foxy_store::Recovery::AfterCleanStop;
}

#[test]
fn without_a_ledger_nothing_is_synced_while_serving() {
    let mut hand = Hand::new(clean_stop);
    hand.start(&[]);
    hand.put(1);
    let (operations, answer) = hand.put(1);
    assert_eq!(answer, Answer::Stored);
    assert_eq!(
        operations,
        ["create 00/00/00000001", "write 1536", "close", "remove 00/00/00000000"]
    );
    assert_eq!(hand.remove(1), (vec!["remove 00/00/00000001".into()], Answer::Removed));
    assert_eq!(hand.ufs.deadline(), None, "nothing waits to be committed");
}

#[test]
fn without_a_ledger_closing_writes_and_syncs_the_snapshot() {
    let mut hand = Hand::new(clean_stop);
    hand.start(&[]);
    hand.put(1);
    let (operations, answer) = hand.ask(StoreRequest::Close { ticket: Ticket(9) });
    assert_eq!(answer, Answer::Closed);
    assert_eq!(operations, ["create foxy-ufs-swap.state", "write 72", "sync"]);
}

#[test]
fn without_a_ledger_the_store_is_claimed_before_and_swept_while_serving() {
    let mut hand = Hand::new(clean_stop);
    let mut out = Outbox::default();
    hand.ufs.start(Instant::ZERO, &mut out);
    let mut claim = Vec::new();
    while hand.ufs.observer.status.get() != StoreStatus::Serving {
        let (id, op) = out.operations.pop().expect("one at a time");
        let (text, result, buffer) = answer(op, &[]);
        claim.push(text);
        hand.ufs.on_io_done(IoDone { id, result, buffer }, Instant::ZERO, &mut out);
    }
    let expected = ["create foxy-ufs-ledger", "sync", "write 4096", "sync", "write 4096", "sync"];
    assert_eq!(claim[2..], expected);
    let (record, hint) = (Record::default(), foxy_store::contract::PlacementHint::default());
    let put = StoreRequest::Put { ticket: Ticket(1), key: Key([1; 16]), record, hint };
    hand.ufs.on_request(put, Instant::ZERO, &mut out);
    assert!(out.replies.is_empty(), "it waits until it is known what lies on the disk");
    hand.carry_out(out, &[file("notes.txt")]);
    assert_eq!(hand.replies.pop().map(|reply| reply.answer), Some(Answer::Stored));
    assert_eq!(hand.ufs.observer.statistics.foreign_files.get(), 1);
}

#[test]
fn nothing_is_opened_at_the_limit_of_operations_in_flight() {
    let mut hand = Hand::new(|settings| settings.aufs_queue = 2);
    hand.ufs = Ufs::new(AUFS, &hand.ufs.settings, Observer::default());
    hand.start(&[]);
    assert_eq!(
        [hand.put(1).1, hand.put(2).1, hand.put(3).1],
        [Answer::Stored, Answer::Stored, Answer::Stored]
    );
    let mut out = Outbox::default();
    for key in 1..=3 {
        let get = StoreRequest::Get { ticket: Ticket(u64::from(key)), key: Key([key; 16]) };
        hand.ufs.on_request(get, Instant::ZERO, &mut out);
    }
    let busy = StoreReply { ticket: Ticket(3), answer: Answer::Absent(AbsentReason::Busy) };
    assert_eq!((out.operations.len(), out.replies), (2, vec![busy]));
    assert_eq!(hand.put(4), (vec![], Answer::Refused(RefusedReason::Busy)));
}
