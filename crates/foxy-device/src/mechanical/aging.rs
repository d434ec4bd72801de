//! Schedules the delayed writes of the disk model. A changed block or page is written to the disk
//! when the change has reached a certain age.

use crate::memory::FileNumber;
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Changed data with a delayed write to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Aged {
    /// An inode or directory block, identified by its first sector.
    Block { volume: usize, block: u64 },
    /// The changed pages of a file that wait to be written together.
    File(FileNumber),
}

#[derive(Debug)]
pub(super) struct Aging {
    /// Changes in the order of the times at which they must be written. An item is stale if its
    /// change was already written. A stale item has another time in `due`, or no entry there.
    queue: VecDeque<(Instant, Aged)>,
    due: HashMap<Aged, Instant>,
    age: Duration,
}

impl Aging {
    pub(super) fn new(age: Duration) -> Self {
        Self { queue: VecDeque::new(), due: HashMap::new(), age }
    }

    /// Notes a change, which becomes due after `age`. A second change to the same block or file
    /// does not postpone the write.
    pub(super) fn add(&mut self, aged: Aged, now: Instant) {
        let due = now + self.age;
        self.due.entry(aged).or_insert_with(|| {
            self.queue.push_back((due, aged));
            due
        });
    }

    pub(super) fn remove(&mut self, aged: Aged) {
        self.due.remove(&aged);
        self.drop_stale();
    }

    pub(super) fn count(&self) -> usize {
        self.due.len()
    }

    pub(super) fn contains(&self, aged: Aged) -> bool {
        self.due.contains_key(&aged)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|&(due, _)| due)
    }

    pub(super) fn take_first(&mut self) -> Option<Aged> {
        let (_, aged) = self.queue.pop_front()?;
        self.due.remove(&aged);
        self.drop_stale();
        Some(aged)
    }

    /// Drops stale items (changes that were already written) from the front of the queue.
    fn drop_stale(&mut self) {
        while self.queue.front().is_some_and(|(due, aged)| self.due.get(aged) != Some(due)) {
            self.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_change_is_due_first_and_written_ones_are_not() {
        let mut aging = Aging::new(Duration::from_nanos(10));
        for (at, file) in [(1, 7), (2, 8), (3, 7), (4, 9)] {
            aging.add(Aged::File(file), Instant(at));
        }
        assert_eq!(aging.next_due(), Some(Instant(11)));
        aging.remove(Aged::File(7));
        aging.add(Aged::File(7), Instant(5));
        assert_eq!(aging.next_due(), Some(Instant(12)));
        let order: Vec<Aged> = std::iter::from_fn(|| aging.take_first()).collect();
        assert_eq!(order, [8, 9, 7].map(Aged::File));
    }
}
