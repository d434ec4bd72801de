//! The write buffer of a log: records that wait in memory to be written, in the order of their
//! arrival. A get finds these records. A record that is replaced or removed while it waits is never
//! written.

use crate::contract::{Key, Record};
use crate::worth::MAX_USES;
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};

/// The list `order` of the buffer may have twice as many entries as the buffer has records, plus
/// this number. If it is longer, the buffer removes outdated entries, whose records were replaced
/// or removed.
const MAX_OUTDATED_TURNS: usize = 64;

/// A record to be written to disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedRecord {
    pub key: Key,
    pub record: Record,
    /// The number of uses (requests) with which the record starts on disk.
    pub uses: u8,
}

#[derive(Debug)]
struct Waiting {
    turn: u64,
    record: Record,
    uses: u8,
}

#[derive(Debug)]
struct Turn {
    number: u64,
    key: Key,
    since: Instant,
}

/// The waiting records, by key and in the order of arrival.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    records: HashMap<Key, Waiting>,
    order: VecDeque<Turn>,
    turns: u64,
    bytes: usize,
}

impl WriteBuffer {
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the arrival time of the record that has waited longest.
    pub fn oldest(&self) -> Option<Instant> {
        self.order.front().map(|turn| turn.since)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.records.contains_key(&key)
    }

    pub fn length(&self, key: Key) -> Option<usize> {
        self.records.get(&key).map(|waiting| waiting.record.len())
    }

    /// Returns a record and counts one use (request) of it.
    pub fn get(&mut self, key: Key) -> Option<&Record> {
        let waiting = self.records.get_mut(&key)?;
        waiting.uses = (waiting.uses + 1).min(MAX_USES);
        Some(&waiting.record)
    }

    /// Adds a record at the end of the queue. An earlier record of the same key is dropped.
    pub fn insert(&mut self, record: BufferedRecord, now: Instant) {
        self.remove(record.key);
        let turn = self.add(record, now);
        self.order.push_back(turn);
    }

    /// Puts a record back in front of all others, because its batch had no space for it. `since` is
    /// its arrival time.
    pub fn give_back(&mut self, record: BufferedRecord, since: Instant) {
        let turn = self.add(record, since);
        self.order.push_front(turn);
    }

    fn add(&mut self, record: BufferedRecord, since: Instant) -> Turn {
        let BufferedRecord { key, record, uses } = record;
        self.turns += 1;
        self.bytes += record.len();
        self.records.insert(key, Waiting { turn: self.turns, record, uses });
        Turn { number: self.turns, key, since }
    }

    /// Removes a record from the buffer. Returns whether the buffer contained it.
    pub fn remove(&mut self, key: Key) -> bool {
        self.take_one(key).is_some()
    }

    /// Removes one record from the buffer, even if other records have waited longer.
    pub fn take_one(&mut self, key: Key) -> Option<BufferedRecord> {
        let Waiting { record, uses, .. } = self.records.remove(&key)?;
        self.bytes -= record.len();
        self.drop_outdated_turns();
        Some(BufferedRecord { key, record, uses })
    }

    /// Removes the records that have waited longest, until their bytes add up to at least `bytes`.
    /// Returns each record with its arrival time.
    pub fn take(&mut self, bytes: usize) -> Vec<(BufferedRecord, Instant)> {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while sum < bytes {
            let Some(Turn { number, key, since }) = self.order.pop_front() else { break };
            if self.records.get(&key).is_some_and(|waiting| waiting.turn == number) {
                let Waiting { record, uses, .. } = self.records.remove(&key).expect("just seen");
                self.bytes -= record.len();
                sum += record.len();
                taken.push((BufferedRecord { key, record, uses }, since));
            }
        }
        self.drop_outdated_turns();
        taken
    }

    fn drop_outdated_turns(&mut self) {
        let records = &self.records;
        let is_current =
            |turn: &Turn| records.get(&turn.key).is_some_and(|waiting| waiting.turn == turn.number);
        while self.order.front().is_some_and(|first| !is_current(first)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * records.len() + MAX_OUTDATED_TURNS {
            self.order.retain(is_current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffered(key: u8, length: usize) -> BufferedRecord {
        let record = Record { body: vec![1; length].into(), ..Record::default() };
        BufferedRecord { key: Key([key; 16]), record, uses: 0 }
    }

    #[test]
    fn records_leave_in_turn_and_replaced_ones_never() {
        let mut buffer = WriteBuffer::default();
        let key = |n| Key([n; 16]);
        for (n, seconds) in [(1, 1), (2, 2), (3, 3), (1, 4)] {
            buffer.insert(buffered(n, 10 * usize::from(n)), Instant(seconds));
        }
        assert_eq!((buffer.len(), buffer.bytes(), buffer.oldest()), (3, 60, Some(Instant(2))));
        assert!(buffer.remove(key(2)) && !buffer.remove(key(2)));
        assert!(buffer.get(key(1)).is_some() && buffer.get(key(2)).is_none());
        let taken: Vec<_> = buffer
            .take(31)
            .into_iter()
            .map(|(buffered, _)| (buffered.key, buffered.uses))
            .collect();
        assert_eq!(taken, [(key(3), 0), (key(1), 1)]);
        assert!(buffer.is_empty() && buffer.bytes() == 0 && buffer.oldest().is_none());
    }

    #[test]
    fn lost_turns_are_not_kept_for_ever_behind_one_that_stays() {
        let mut buffer = WriteBuffer::default();
        buffer.insert(buffered(0, 10), Instant(0));
        (1..1000).for_each(|seconds| buffer.insert(buffered(1, 10), Instant(seconds)));
        assert!(buffer.order.len() < 100 && buffer.len() == 2);
        let taken = buffer.take(20).into_iter().map(|(buffered, since)| (buffered.key.0[0], since));
        assert_eq!(taken.collect::<Vec<_>>(), [(0, Instant(0)), (1, Instant(999))]);
    }

    #[test]
    fn given_back_records_come_first() {
        let mut buffer = WriteBuffer::default();
        for n in 1..=4 {
            buffer.insert(buffered(n, 10), Instant(u64::from(n)));
        }
        let mut taken = buffer.take(30);
        taken
            .split_off(1)
            .into_iter()
            .rev()
            .for_each(|(buffered, since)| buffer.give_back(buffered, since));
        assert_eq!(buffer.oldest(), Some(Instant(2)), "it has waited since it came");
        let next: Vec<_> =
            buffer.take(100).into_iter().map(|(buffered, _)| buffered.key.0[0]).collect();
        assert_eq!(next, [2, 3, 4]);
    }
}
