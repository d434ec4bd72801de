//! The ghost of S3-FIFO: hashes of entries that went, oldest forgotten first. No more bytes than
//! the main queue may hold stand behind it, and it has no more places than the cache has entries,
//! so its memory is bounded.

use hashbrown::HashTable;
use std::collections::VecDeque;

#[derive(Clone, Copy)]
struct Gone {
    key_hash: u64,
    size: u64,
    is_kept: bool,
}

/// The queue.
pub(super) struct Ghost {
    queue: VecDeque<Gone>,
    /// The number of the queue's first.
    first: u64,
    /// Hash and number of those that are kept.
    numbers: HashTable<(u64, u64)>,
    bytes: u64,
    limit: u64,
}

impl Ghost {
    /// An empty ghost of at most that many bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { queue: VecDeque::new(), first: 0, numbers: HashTable::new(), bytes: 0, limit }
    }

    /// Remembers an entry that went; forgets the oldest beyond the bytes of the limit and beyond
    /// `entries`.
    pub(super) fn push(&mut self, key_hash: u64, size: u64, entries: usize) {
        self.take(key_hash);
        self.bytes += size;
        let number = self.first + self.queue.len() as u64;
        self.numbers.insert_unique(key_hash, (key_hash, number), |&(hash, _)| hash);
        self.queue.push_back(Gone { key_hash, size, is_kept: true });
        while self.bytes > self.limit || self.queue.len() > entries {
            self.pop();
        }
    }

    /// Whether that entry is remembered; it is forgotten.
    pub(super) fn take(&mut self, key_hash: u64) -> bool {
        let Ok(found) = self.numbers.find_entry(key_hash, |&(hash, _)| hash == key_hash) else {
            return false;
        };
        let ((_, number), _) = found.remove();
        let place = usize::try_from(number - self.first).expect("a place in a queue in memory");
        let gone = &mut self.queue[place];
        gone.is_kept = false;
        self.bytes -= gone.size;
        true
    }

    fn pop(&mut self) {
        let Some(&Gone { key_hash, is_kept, .. }) = self.queue.front() else { return };
        if is_kept {
            self.take(key_hash);
        }
        self.queue.pop_front();
        self.first += 1;
    }

    /// Memory taken in bytes.
    pub(super) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Gone>()
            + self.numbers.capacity() * (size_of::<(u64, u64)>() + 1)
    }
}
