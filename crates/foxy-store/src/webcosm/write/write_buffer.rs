//! Records that wait in memory to be written, in the order in which they came. They are visible
//! from here; one that is replaced or removed while it waits never reaches the disk.

use crate::contract::{Key, Record};
use crate::worth::MOST_USES;
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};

/// Turns of records that wait no more, beside as many as there are records, that are kept until the
/// first in turn leaves.
const LOST_TURNS: usize = 64;

/// A record that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Its key.
    pub key: Key,
    /// Its content.
    pub record: Record,
    /// The uses it is to be written with.
    pub uses: u8,
}

#[derive(Debug)]
struct Waiting {
    turn: u64,
    record: Record,
    uses: u8,
}

/// What waits to be written.
#[derive(Debug, Default)]
pub struct Stage {
    records: HashMap<Key, Waiting>,
    order: VecDeque<(u64, Key, Instant)>,
    turns: u64,
    bytes: usize,
}

impl Stage {
    /// Bytes that wait.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// When the first in turn came.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        self.order.front().map(|&(.., since)| since)
    }

    /// Whether a record waits.
    #[must_use]
    pub fn contains(&self, key: Key) -> bool {
        self.records.contains_key(&key)
    }

    /// Bytes of a record that waits.
    #[must_use]
    pub fn length(&self, key: Key) -> Option<usize> {
        self.records.get(&key).map(|waiting| waiting.record.len())
    }

    /// A record that waits, asked for once more.
    pub fn get(&mut self, key: Key) -> Option<&Record> {
        let waiting = self.records.get_mut(&key)?;
        waiting.uses = (waiting.uses + 1).min(MOST_USES);
        Some(&waiting.record)
    }

    /// Lets a record wait; one of the same key is replaced and its turn lost.
    pub fn insert(&mut self, Staged { key, record, uses }: Staged, now: Instant) {
        self.remove(key);
        self.turns += 1;
        self.bytes += record.len();
        self.records.insert(key, Waiting { turn: self.turns, record, uses });
        self.order.push_back((self.turns, key, now));
    }

    /// Takes a record back. Says whether it waited.
    pub fn remove(&mut self, key: Key) -> bool {
        self.take_one(key).is_some()
    }

    /// Takes a record before its turn.
    pub fn take_one(&mut self, key: Key) -> Option<Staged> {
        let Waiting { record, uses, .. } = self.records.remove(&key)?;
        self.bytes -= record.len();
        self.drop_lost_turns();
        Some(Staged { key, record, uses })
    }

    /// Takes the next in turn until they have that many bytes, each with when it came.
    pub fn take(&mut self, bytes: usize) -> Vec<(Staged, Instant)> {
        let (mut taken, mut sum) = (Vec::new(), 0);
        while sum < bytes {
            let Some((turn, key, since)) = self.order.pop_front() else { break };
            if self.records.get(&key).is_some_and(|waiting| waiting.turn == turn) {
                let Waiting { record, uses, .. } = self.records.remove(&key).expect("just seen");
                self.bytes -= record.len();
                sum += record.len();
                taken.push((Staged { key, record, uses }, since));
            }
        }
        self.drop_lost_turns();
        taken
    }

    /// Gives back one that was taken, in front of all others.
    pub fn give_back(&mut self, Staged { key, record, uses }: Staged, since: Instant) {
        self.turns += 1;
        self.bytes += record.len();
        self.records.insert(key, Waiting { turn: self.turns, record, uses });
        self.order.push_front((self.turns, key, since));
    }

    fn drop_lost_turns(&mut self) {
        let records = &self.records;
        let waits = |(turn, key, _): &(u64, Key, Instant)| {
            records.get(key).is_some_and(|waiting| waiting.turn == *turn)
        };
        while self.order.front().is_some_and(|first| !waits(first)) {
            self.order.pop_front();
        }
        if self.order.len() > 2 * records.len() + LOST_TURNS {
            self.order.retain(waits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged(key: u8, length: usize) -> Staged {
        let record = Record { body: vec![1; length].into(), ..Record::default() };
        Staged { key: Key([key; 16]), record, uses: 0 }
    }

    #[test]
    fn records_leave_in_turn_and_replaced_ones_never() {
        let mut stage = Stage::default();
        let key = |n| Key([n; 16]);
        for (n, seconds) in [(1, 1), (2, 2), (3, 3), (1, 4)] {
            stage.insert(staged(n, 10 * usize::from(n)), Instant(seconds));
        }
        assert_eq!((stage.len(), stage.bytes(), stage.oldest()), (3, 60, Some(Instant(2))));
        assert!(stage.remove(key(2)) && !stage.remove(key(2)));
        assert!(stage.get(key(1)).is_some() && stage.get(key(2)).is_none());
        let taken: Vec<_> =
            stage.take(31).into_iter().map(|(staged, _)| (staged.key, staged.uses)).collect();
        assert_eq!(taken, [(key(3), 0), (key(1), 1)]);
        assert!(stage.is_empty() && stage.bytes() == 0 && stage.oldest().is_none());
    }

    #[test]
    fn lost_turns_are_not_kept_for_ever_behind_one_that_stays() {
        let mut stage = Stage::default();
        stage.insert(staged(0, 10), Instant(0));
        (1..1000).for_each(|seconds| stage.insert(staged(1, 10), Instant(seconds)));
        assert!(stage.order.len() < 100 && stage.len() == 2);
        let taken = stage.take(20).into_iter().map(|(staged, since)| (staged.key.0[0], since));
        assert_eq!(taken.collect::<Vec<_>>(), [(0, Instant(0)), (1, Instant(999))]);
    }

    #[test]
    fn what_is_given_back_comes_first_again() {
        let mut stage = Stage::default();
        for n in 1..=4 {
            stage.insert(staged(n, 10), Instant(u64::from(n)));
        }
        let mut taken = stage.take(30);
        taken
            .split_off(1)
            .into_iter()
            .rev()
            .for_each(|(staged, since)| stage.give_back(staged, since));
        assert_eq!(stage.oldest(), Some(Instant(2)), "it has waited since it came");
        let next: Vec<_> = stage.take(100).into_iter().map(|(staged, _)| staged.key.0[0]).collect();
        assert_eq!(next, [2, 3, 4]);
    }
}
