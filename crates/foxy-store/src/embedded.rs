//! The store as a library: open a directory, then put, get and remove records. [`Store`] uses the
//! default storage scheme (webcosm) and the fastest disk access that the system offers.

use crate::contract::{Answer, Key, PlacementHint, Record, RefusedReason};
use crate::observe::Observer;
use crate::settings::{SettingsError, StoreSettings};
use crate::shard::{Reply, Shard, ShardSettings};
use crate::status::{OpenStoreError, StoreStatus};
use crate::webcosm::Webcosm;
use foxy_base::{clock, random};
use foxy_device::{DeviceSettings, Root, RootError, open_device};
use std::fmt;
use std::future::IntoFuture;
use std::path::Path;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

/// A store in a directory. Dropping the store closes it and waits until all records are on disk.
///
/// A store may evict a record to free space. It never returns a record that was replaced or
/// removed. A crash of the machine or process may lose the puts of about the last second.
///
/// ```
/// use foxy_store::{Key, Record, Store};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let store = Store::open(folder, 64 << 20)?;
/// let key = Key::of(b"https://www.example.org/");
/// let record = Record { head: "text/plain".into(), body: "hello".into() };
/// store.put(key, record.clone()).wait()?;
/// assert_eq!(store.get(key).wait(), Some(record));
/// store.remove(key).wait()?;
/// assert_eq!(store.get(key).wait(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Store {
    shard: Shard,
    /// Locks the directory against other processes until the store's thread has ended.
    _root: Root,
}

impl Store {
    /// Opens the store in the directory `path`, or creates a store there. The store uses at most
    /// `size` bytes of disk space. An existing store keeps its records, unless its superblock or
    /// journal is damaged. If `size` differs from the last opening, the store keeps the records
    /// that fit, or none after a large change.
    ///
    /// # Errors
    /// Returns [`OpenError`]. The directory and its lock file may then have been created. A file
    /// that is not a store of this version is unchanged.
    pub fn open(path: impl AsRef<Path>, size: u64) -> Result<Self, OpenError> {
        let root = Root::open(path.as_ref()).map_err(OpenError::Folder)?;
        let settings = StoreSettings { seed: random::entropy(), ..StoreSettings::with_size(size) };
        settings.validate().map_err(OpenError::Size)?;
        let (device, _) =
            open_device(&root, DeviceSettings::default()).map_err(OpenError::System)?;
        let observer = Observer::default();
        let scheme = Webcosm::boxed(&settings, observer.clone());
        let shard =
            Shard::start(scheme, device, observer.clone(), ShardSettings::new(clock::monotonic));
        let store = Self { shard: shard.map_err(OpenError::System)?, _root: root };
        loop {
            match observer.status.get() {
                StoreStatus::Opening | StoreStatus::Rebuilding => {
                    thread::sleep(Duration::from_millis(1))
                }
                StoreStatus::Serving => return Ok(store),
                StoreStatus::Unusable(reason) => return Err(OpenError::Unusable(reason)),
                StoreStatus::Closed | StoreStatus::Panicked => return Err(OpenError::Failed),
            }
        }
    }

    /// Returns the record of `key`, or `None` if the store has none, cannot read it, or has too
    /// many waiting requests.
    pub fn get(&self, key: Key) -> PendingAnswer<Option<Record>> {
        pending(
            |reply| self.shard.handle().get(key, reply),
            |answer| match answer {
                Some(Answer::Found(record)) => Some(record),
                _ => None,
            },
        )
    }

    /// Stores a record, or replaces the record of `key`. After an error, `key` has no record or its
    /// earlier record. After a failed write and a crash, it may have the new record.
    pub fn put(&self, key: Key, record: Record) -> PendingAnswer<Result<(), RefusedReason>> {
        let hint = PlacementHint { size: record.len() as u64, ..PlacementHint::default() };
        pending(|reply| self.shard.handle().put(key, record, hint, reply), done)
    }

    /// Removes the record of `key`. After a success, the record stays removed, even after a crash.
    pub fn remove(&self, key: Key) -> PendingAnswer<Result<(), RefusedReason>> {
        pending(|reply| self.shard.handle().remove(key, reply), done)
    }
}

fn done(answer: Option<Answer>) -> Result<(), RefusedReason> {
    match answer {
        Some(Answer::Stored | Answer::Removed) => Ok(()),
        Some(Answer::Refused(reason)) => Err(reason),
        _ => Err(RefusedReason::Closed),
    }
}

/// A request in progress. Dropping this value does not cancel the request.
#[must_use = "call `wait`, or await the answer"]
pub struct PendingAnswer<T> {
    answer: oneshot::Receiver<Answer>,
    read: fn(Option<Answer>) -> T,
}

fn pending<T>(request: impl FnOnce(Reply), read: fn(Option<Answer>) -> T) -> PendingAnswer<T> {
    let (sender, answer) = oneshot::channel();
    request(Box::new(move |answer| drop(sender.send(answer))));
    PendingAnswer { answer, read }
}

impl<T> PendingAnswer<T> {
    /// Blocks the thread until the answer arrives.
    pub fn wait(self) -> T {
        (self.read)(self.answer.recv().ok())
    }
}

impl<T: 'static> IntoFuture for PendingAnswer<T> {
    type Output = T;
    type IntoFuture = Pin<Box<dyn Future<Output = T> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { answer, read } = self;
        Box::pin(async move { read(answer.await.ok()) })
    }
}

/// The reason why a store cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The directory cannot be created or locked, for example because another process uses it.
    Folder(RootError),
    /// The requested size is below the minimum.
    Size(SettingsError),
    /// The operating system refused to create a thread or an io_uring.
    System(std::io::Error),
    /// The directory contains files that are not a store of this version, or the disk failed.
    Unusable(OpenStoreError),
    /// The store's thread ended before the store was open.
    Failed,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(error) => error.fmt(f),
            Self::Size(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
            Self::Unusable(error) => error.fmt(f),
            Self::Failed => f.write_str("the store's thread ended while it opened the store"),
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webcosm::FILE_NAME;

    #[test]
    fn a_lent_store_is_read_after_its_close_until_another_process_overwrites_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), 64 << 20).expect("opened");
        let key = Key::of(b"a");
        let record = Record { head: "head".into(), body: vec![7; 100_000].into() };
        store.put(key, record.clone()).wait().expect("stored");
        let handle = store.shard.handle();
        handle.lend();
        drop(store);
        let get = || {
            let found = |answer| match answer {
                Some(Answer::Found(record)) => Some(record),
                _ => None,
            };
            pending(|reply| handle.get(key, reply), found).wait()
        };
        assert_eq!(get(), Some(record));
        std::fs::write(folder.path().join(FILE_NAME), vec![0; 64 << 20]).expect("written");
        assert_eq!(get(), None);
    }
}
