//! Tests that the check of the purge log's chain recognises each kind of lost entry.

use super::*;
use crate::purges::entry::Process;
use foxy_base::WallTime;
use foxy_proxy::cache::purge::{Order, Scope, Strength};

fn process(name: &str) -> Process {
    Process { member: name.into(), run: 1 }
}

fn purge() -> Content {
    Content::Purge(vec![Order { scope: Scope::Tag(4), strength: Strength::Hard, at: WallTime(0) }])
}

/// A purge log whose first entry is a `Begin`, with purges of alternating writers. Each item has
/// the position and the bytes of an entry.
struct Log(Vec<(u64, Vec<u8>)>);

impl Log {
    fn new(chain: u64, first: u64, purges: u64) -> Self {
        let mut log = Self(Vec::new());
        log.push(chain, first, "a", 1, 0, Content::Begin);
        for number in 1..=purges {
            let writer = if number % 2 == 0 { "a" } else { "b" };
            let previous = Entry::hash(&log.0.last().expect("an entry").1);
            let counter = if writer == "a" { number / 2 + 1 } else { number.div_ceil(2) };
            log.push(chain, first + number, writer, counter, previous, purge());
        }
        log
    }

    fn push(
        &mut self,
        chain: u64,
        position: u64,
        by: &str,
        counter: u64,
        previous: u128,
        content: Content,
    ) {
        let writer = process(by);
        let entry = Entry { chain, position, writer, counter, previous, content };
        self.0.push((position, entry.encode()));
    }

    fn view(&self, after: u64) -> LogView {
        let entries = self.0.iter().filter(|(position, _)| *position > after).cloned().collect();
        LogView {
            first: self.0.first().map_or(0, |(position, _)| *position),
            tail: self.0.last().map_or(0, |(position, _)| *position),
            count: self.0.len() as u64,
            last: self.0.last().map(|(_, bytes)| bytes.clone()),
            entries,
            records: Vec::new(),
        }
    }

    fn chain_at(&self, position: u64) -> Chain {
        let found = self.0.iter().find(|(other, _)| *other == position).expect("an entry");
        Chain::after(&Entry::decode(&found.1).expect("an entry"), &found.1)
    }
}

fn advice(log: &Log, known: &Chain) -> Advice {
    advise(Some(known), &log.view(known.position))
}

#[test]
fn a_whole_log_is_followed_to_its_end() {
    let log = Log::new(7, 1, 5);
    let Advice::Follow(entries, chain) = advice(&log, &log.chain_at(2)) else { panic!("followed") };
    assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), [3, 4, 5, 6]);
    assert_eq!(chain.position, 6);
    assert_eq!(advice(&log, &chain), Advice::UpToDate);
    assert_eq!(advise(None, &Log(Vec::new()).view(0)), Advice::Empty);
    let Advice::Missed(end) = advise(None, &log.view(0)) else { panic!("a new member") };
    assert_eq!((end.number, end.position), (7, 6));
}

#[test]
fn each_loss_has_its_name() {
    let whole = Log::new(7, 1, 5);
    let known = whole.chain_at(3);
    let without = |position: u64| {
        let mut log = Log(whole.0.clone());
        log.0.retain(|(other, _)| *other != position);
        LogView { tail: 6, ..log.view(3) }
    };
    for removed in [2, 4, 6] {
        let advice = advise(Some(&known), &without(removed));
        assert_eq!(advice, Advice::Broken(Broken::Removed), "{removed}");
    }
    let shorter = Log(whole.0[..2].to_vec());
    assert_eq!(advice(&shorter, &known), Advice::Broken(Broken::LostTail));
    assert_eq!(advise(Some(&known), &LogView::default()), Advice::Broken(Broken::LostTail));
    // The log loses entry 3. Then another writer appends another entry 3.
    let mut forked = Log(whole.0[..2].to_vec());
    forked.push(7, 3, "c", 1, Entry::hash(&whole.0[1].1), purge());
    assert_eq!(advice(&forked, &known), Advice::Broken(Broken::WrongHash));
    let previous = Entry::hash(&forked.0[2].1);
    forked.push(7, 4, "c", 2, previous, purge());
    assert_eq!(advice(&forked, &known), Advice::Broken(Broken::WrongHash));
    let mut damaged = Log(whole.0.clone());
    damaged.0[3].1.truncate(20);
    assert_eq!(advice(&damaged, &known), Advice::Broken(Broken::Unreadable));
}

#[test]
fn a_lost_entry_of_a_writer_shows_in_its_next_entry() {
    let mut log = Log::new(7, 1, 0);
    log.push(7, 2, "c", 4, Entry::hash(&log.0[0].1), purge());
    let known = log.chain_at(2);
    log.push(7, 3, "c", 6, known.hash, purge());
    assert_eq!(advice(&log, &known), Advice::Broken(Broken::LostOfWriter));
}

#[test]
fn entries_before_a_broken_place_are_still_followed() {
    let mut log = Log::new(7, 1, 3);
    log.push(7, 5, "c", 1, 99, purge());
    let Advice::Follow(entries, chain) = advice(&log, &log.chain_at(2)) else { panic!("followed") };
    assert_eq!((entries.len(), chain.position), (2, 4));
    assert_eq!(advice(&log, &chain), Advice::Broken(Broken::WrongHash));
}

#[test]
fn a_new_chain_or_a_log_without_its_beginning_asks_for_validation() {
    let old = Log::new(7, 1, 5).chain_at(4);
    for log in [Log::new(8, 5, 0), Log::new(8, 9, 3), Log::new(8, 4, 0), Log::new(8, 2, 0)] {
        let first = log.0[0].0;
        assert_eq!(advice(&log, &old), Advice::Begin(log.chain_at(first)), "{first}");
    }
    let mut trimmed = Log::new(7, 1, 8);
    trimmed.0.drain(..6);
    let Advice::Missed(end) = advice(&trimmed, &old) else { panic!("missed") };
    assert_eq!(end.position, 9);
}
