//! The store of the floor (the smallest caching proxy): an index in memory, and one file of
//! answers. When the file is full, the store overwrites it from its beginning. Small answers can
//! stay in memory instead.

use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size in bytes of a write to the file. The store collects smaller answers up to this size.
const BATCH: u64 = 1 << 20;

/// Size in bytes from which an answer always goes to the file, because the kernel can send it from
/// there without a copy.
pub(super) const LARGE: u64 = 256 << 10;

/// The place of answers below 256 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallAnswers {
    /// Memory, without a limit.
    InMemory,
    InFile,
}

/// The place of a stored answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Memory(Bytes),
    File { offset: u64, length: u64 },
}

/// The stored answers of all workers.
#[derive(Debug)]
pub struct FloorStore {
    state: Mutex<StoreState>,
    log: LogFile,
    small: SmallAnswers,
}

#[derive(Debug)]
struct LogFile {
    file: File,
    size: u64,
}

#[derive(Debug, Default)]
struct StoreState {
    index: HashMap<Box<[u8]>, Stored>,
    /// The answers in the file, oldest first.
    order: VecDeque<(u64, Box<[u8]>)>,
    /// Answers that the file does not have yet.
    batch: Vec<u8>,
    /// Position of the batch: the number of bytes ever written before it.
    start: u64,
}

#[derive(Clone, Debug)]
enum Stored {
    Memory(Bytes),
    /// `position` is the number of bytes ever written before the answer. Its offset in the file is
    /// `position` modulo the size of the file.
    Log {
        position: u64,
        length: u64,
    },
}

impl FloorStore {
    /// Makes a store in a new file of `size` bytes in `folder`.
    ///
    /// # Errors
    ///
    /// Returns an error if `size` is less than 4 MiB, or if the file cannot be created.
    pub fn create(folder: &Path, size: u64, small: SmallAnswers) -> io::Result<Self> {
        let least = 4 * BATCH;
        if size < least {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a store needs at least {least} bytes"),
            ));
        }
        let size = size / BATCH * BATCH;
        let path = folder.join("floor");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(size)?;
        Ok(Self { state: Mutex::default(), log: LogFile { file, size }, small })
    }

    pub(super) const fn file(&self) -> &File {
        &self.log.file
    }

    pub(super) fn find(&self, path: &[u8]) -> Option<Location> {
        let state = self.state();
        match state.index.get(path)? {
            Stored::Memory(bytes) => Some(Location::Memory(bytes.clone())),
            &Stored::Log { position, length } if position >= state.start => {
                let begin = usize::try_from(position - state.start).ok()?;
                let end = begin + usize::try_from(length).ok()?;
                Some(Location::Memory(Bytes::copy_from_slice(state.batch.get(begin..end)?)))
            }
            &Stored::Log { position, length } => {
                Some(Location::File { offset: position % self.log.size, length })
            }
        }
    }

    /// Stores an answer. The store leaves out an answer that is larger than its file.
    pub(super) fn put(&self, path: &[u8], answer: Bytes) -> io::Result<()> {
        let (mut state, log, length) = (self.state(), &self.log, answer.len() as u64);
        if self.small == SmallAnswers::InMemory && length < LARGE {
            state.index.insert(path.into(), Stored::Memory(answer));
            return Ok(());
        }
        if length + 2 * BATCH > log.size {
            return Ok(());
        }
        if state.batch.len() as u64 + length > BATCH {
            log.flush(&mut state)?;
        }
        if state.start % log.size + length > log.size {
            state.start = state.start.next_multiple_of(log.size);
        }
        let position = state.start + state.batch.len() as u64;
        state.batch.extend_from_slice(&answer);
        state.index.insert(path.into(), Stored::Log { position, length });
        state.order.push_back((position, path.into()));
        log.evict(&mut state);
        if length > BATCH {
            log.flush(&mut state)?;
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogFile {
    fn flush(&self, state: &mut StoreState) -> io::Result<()> {
        self.file.write_all_at(&state.batch, state.start % self.size)?;
        state.start = (state.start + state.batch.len() as u64).next_multiple_of(BATCH);
        state.batch.clear();
        Ok(())
    }

    /// Forgets the answers that the next two writes overwrite. So a reader that has just found an
    /// answer can still read its bytes.
    fn evict(&self, state: &mut StoreState) {
        let end = state.start + state.batch.len() as u64 + 2 * BATCH;
        while let Some((position, _)) = state.order.front()
            && position + self.size < end
        {
            let Some((oldest, path)) = state.order.pop_front() else { return };
            let is_newest = matches!(state.index.get(&path), Some(Stored::Log { position, .. }) if *position == oldest);
            if is_newest {
                state.index.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(store: &FloorStore, path: &[u8]) -> Option<Vec<u8>> {
        match store.find(path)? {
            Location::Memory(bytes) => Some(bytes.to_vec()),
            Location::File { offset, length } => {
                let mut bytes = vec![0; usize::try_from(length).expect("small")];
                store.file().read_exact_at(&mut bytes, offset).expect("read");
                Some(bytes)
            }
        }
    }

    #[test]
    fn an_answer_is_found_from_the_batch_and_from_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            FloorStore::create(folder.path(), 8 << 20, SmallAnswers::InFile).expect("a store");
        let body = |number: u8| Bytes::from(vec![number; 400_000]);
        for number in 0..5 {
            store.put(&[number], body(number)).expect("stored");
        }
        for number in 0..5 {
            assert_eq!(content(&store, &[number]).as_deref(), Some(&body(number)[..]));
        }
        assert_eq!(content(&store, b"unknown"), None);
    }

    #[test]
    fn a_full_file_forgets_its_oldest_answers_and_returns_no_wrong_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            FloorStore::create(folder.path(), 8 << 20, SmallAnswers::InFile).expect("a store");
        let body = |number: u8| Bytes::from(vec![number; 300_000 + usize::from(number) * 10_000]);
        for number in 0..100 {
            store.put(&[number], body(number)).expect("stored");
            for earlier in 0..=number {
                let found = content(&store, &[earlier]);
                assert!(found.is_none_or(|found| found == body(earlier)), "{number} {earlier}");
            }
        }
        assert_eq!(content(&store, &[0]), None);
        assert_eq!(content(&store, &[99]).as_deref(), Some(&body(99)[..]));
    }

    #[test]
    fn a_new_answer_replaces_the_old_answer_of_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FloorStore::create(folder.path(), 8 << 20, SmallAnswers::InMemory);
        let store = store.expect("a store");
        store.put(b"/", Bytes::from_static(b"old")).expect("stored");
        store.put(b"/", Bytes::from_static(b"new")).expect("stored");
        assert_eq!(content(&store, b"/").as_deref(), Some(&b"new"[..]));
    }
}
