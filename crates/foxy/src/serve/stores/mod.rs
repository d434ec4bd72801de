//! Opens all stores: the folder, device and shard (thread) of each store. If a store cannot be
//! used, foxy does not start.

mod device;
pub mod health;
pub mod kept_clock;
pub mod out_of_use;
mod place;
mod room;
pub mod set;
pub mod trial;

use crate::failure::Failure;
use crate::serve::purge::list;
use crate::serve::welcome::OpenStore;
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use crate::terminal::{self, Level};
use device::OpenDevice;
use foxy_base::{ByteSize, Instant, Random, clock};
use foxy_device::{LockedFile, Root, release_freed_memory};
use foxy_schemes::SchemeSettings;
use foxy_schemes::{UfsMapping, UfsReclaim};
use foxy_store::{
    Beginning, Newcomers, Observer, OpenStoreError, Recovery, Shard, ShardSettings, SizeWish,
    StoreSettings, StoreStatus, WriteBudget,
};
use place::StorePlace;
use room::SizeChoice;
use set::Member;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval between checks whether a store is open.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// Longest time for which start-up waits for stores to rebuild their index. After this time foxy
/// serves during the rebuild, and records that are not yet in the index are misses.
const REBUILDING_PATIENCE: Duration = Duration::from_secs(2);

pub struct RunningStore {
    /// The running store. Drop closes the store.
    pub shard: Shard,
    pub facts: OpenStore,
    /// Size in bytes of the largest response that the store accepts.
    pub object_limit: u64,
    sizes: RangeInclusive<u64>,
    size_choice: SizeChoice,
    /// The locked file that contains the superblock. Declared after the shard, so that it is
    /// unlocked only after the shard has ended.
    held: Option<Arc<LockedFile>>,
    root: Root,
}

impl RunningStore {
    /// Returns how the store was opened, such as new or with its old content. Returns `None` for
    /// the scheme `null`, which stores nothing.
    pub fn beginning(&self) -> Option<Beginning> {
        self.shard.handle().observer().beginning.get()
    }

    pub fn file(&self) -> Option<Weak<LockedFile>> {
        self.held.as_ref().map(Arc::downgrade)
    }

    pub fn member(&self) -> Member {
        Member { store: Arc::new(self.shard.handle()), sizes: self.sizes.clone() }
    }

    /// Warns if the store lost its content, so that the operator can explain the misses that
    /// follow.
    fn report_lost_content(&self) {
        let text = match self.beginning() {
            Some(Beginning::Anew(reason)) => format!(
                "starts empty: {reason}; its old content is lost, and foxy fetches it again when \
                 clients request it"
            ),
            Some(Beginning::Cut { found, expected }) => format!(
                "the file was truncated from {expected} to {found} bytes; the content after that \
                 is lost, the rest is kept"
            ),
            Some(Beginning::New | Beginning::Kept) | None => return,
        };
        let folder = self.facts.folder.display();
        terminal::report(Level::Warning, &format!("foxy: store {folder}: {text}"));
    }

    /// Locks the store's file. If the store has just been created, its file was not locked before.
    fn hold_file(&mut self) -> Result<(), Failure> {
        let Some(file) = self.facts.scheme.row().control else { return Ok(()) };
        let held = self.root.lock_file(file, self.held.take().and_then(Arc::into_inner));
        self.held = held.map_err(|error| Failure::Unusable(error.to_string()))?.map(Arc::new);
        Ok(())
    }

    /// Waits until the store can serve, then records its size and locks its file. For a store that
    /// rebuilds its index, waits only until the time `patience`. Fails if the store is unusable.
    fn wait_until_usable(&mut self, patience: Instant) -> Result<(), Failure> {
        let handle = self.shard.handle();
        let folder = &self.facts.folder;
        loop {
            match handle.observer().status.get() {
                StoreStatus::Opening => std::thread::sleep(LOOK_INTERVAL),
                StoreStatus::Rebuilding if clock::monotonic() < patience => {
                    std::thread::sleep(LOOK_INTERVAL)
                }
                StoreStatus::Rebuilding | StoreStatus::Serving => {
                    self.facts.size = ByteSize(handle.observer().statistics.size_bytes.get());
                    return self.hold_file();
                }
                StoreStatus::Unusable(OpenStoreError::NoSpace)
                    if matches!(self.size_choice, SizeChoice::Exactly(_)) =>
                {
                    let available = ByteSize(self.root.free_bytes().unwrap_or(0));
                    return Err(room::file_too_large(folder, self.size_choice)
                        .unwrap_or_else(|| room::no_room(folder, self.size_choice, available)));
                }
                StoreStatus::Unusable(error) => {
                    let file =
                        self.facts.scheme.row().control.filter(|_| error.is_about_the_file());
                    let path = file.map_or_else(|| folder.clone(), |file| folder.join(file));
                    return Err(Failure::Unusable(format!("store {}: {error}", path.display())));
                }
                StoreStatus::Panicked | StoreStatus::Closed => {
                    return Err(Failure::Failed(format!(
                        "store {}: the thread of the store ended while it opened the store",
                        folder.display()
                    )));
                }
            }
        }
    }
}

/// Opens each store, and waits until all can be used. `locked` has folders that this process has
/// already locked. A store with the scheme `null` is left out.
pub fn open(
    settings: &Settings,
    locked: &[Root],
    random: &mut Random,
) -> Result<Vec<RunningStore>, Failure> {
    let stores_something =
        |store: &&StoreChoice| !store.scheme.unwrap_or(settings.disk.scheme).row().stores_nothing();
    let places = settings.disk.stores().filter(stores_something);
    let places: Vec<_> =
        places.map(|store| StorePlace::lock(settings, store, locked)).collect::<Result<_, _>>()?;
    let sizes = place::sizes(&places)?;
    let mut stores: Vec<_> = places
        .into_iter()
        .zip(sizes)
        .map(|(place, size)| start(settings, place, size, random.next_u64()))
        .collect::<Result<_, _>>()?;
    let patience = clock::monotonic() + REBUILDING_PATIENCE;
    for store in &mut stores {
        store.wait_until_usable(patience)?;
        store.report_lost_content();
    }
    Ok(stores)
}

fn percent(setting: usize) -> u8 {
    u8::try_from(setting).unwrap_or(100)
}

fn start(
    settings: &Settings,
    place: StorePlace<'_>,
    size: ByteSize,
    seed: u64,
) -> Result<RunningStore, Failure> {
    let StorePlace { store, scheme, root, held, size: size_choice } = place;
    let folder = store.folder.as_path();
    let ByteSize(wanted) = settings.disk.object_limit.unwrap_or_else(|| object_limit(size));
    let object_limit = wanted.min(scheme.row().largest_object(size.0));
    let mailbox_bytes = waiting_bytes(settings.memory.size.0);
    let scheme_settings = SchemeSettings {
        policy: settings.disk.policy,
        ufs_mapping: match settings.disk.ufs_mapping {
            "round-robin" if scheme.row().grows() => UfsMapping::RoundRobin,
            _ => UfsMapping::Consecutive,
        },
        ufs_reclaim: match settings.disk.ufs_reclaim {
            "every-second" => UfsReclaim::EverySecond,
            _ => UfsReclaim::AtOnce,
        },
        high_watermark: percent(settings.disk.high_watermark),
        low_watermark: percent(settings.disk.low_watermark),
        aufs_queue: settings.disk.aufs_queue,
        diskd_q1: store.q1.unwrap_or(settings.disk.diskd_q1),
        ..SchemeSettings::from(StoreSettings {
            object_limit,
            recovery: if settings.disk.recovery == "clean-stop" {
                Recovery::AfterCleanStop
            } else {
                Recovery::AfterCrash
            },
            write_budget: write_budget(settings, size),
            waiting_bytes: mailbox_bytes,
            size_wish: if matches!(size_choice, SizeChoice::Exactly(_)) {
                SizeWish::Exactly
            } else {
                SizeWish::AtMost
            },
            begun_before: folder.join(list::NAME).is_file(),
            seed,
            ..StoreSettings::with_size(size.0)
        })
    };
    scheme_settings
        .validate()
        .map_err(|error| Failure::Unusable(format!("store {}: {error}", folder.display())))?;
    let opened = OpenDevice::open(&root, settings, store)?;
    let observer = Observer::default();
    let shard_settings = ShardSettings {
        mailbox_bytes,
        give_back: Some(release_freed_memory as fn() -> Duration),
        ..ShardSettings::new(clock::monotonic)
    };
    let made = scheme.make(&scheme_settings, observer.clone());
    let shard = Shard::start(made, opened.device, observer, shard_settings)
        .map_err(|error| Failure::Failed(format!("cannot start the store's thread: {error}")))?;
    Ok(RunningStore {
        shard,
        facts: OpenStore { folder: folder.to_owned(), size, scheme, device: opened.name },
        object_limit,
        sizes: store.sizes(),
        size_choice,
        held: held.map(Arc::new),
        root,
    })
}

/// Returns the default limit of object sizes in bytes: an eighth of the store, so that one object
/// does not evict all others. The limit is at least 64 MiB, but never more than half of the store.
fn object_limit(store: ByteSize) -> ByteSize {
    const PART: u64 = 8;
    const LEAST: ByteSize = ByteSize(64 << 20);
    ByteSize(store.0 / PART).max(LEAST).min(ByteSize(store.0 / 2))
}

fn write_budget(settings: &Settings, store: ByteSize) -> Option<WriteBudget> {
    const PART_OF_STORE: u64 = 50;
    const PART_OF_MEMORY: u64 = 4;
    let of_memory =
        settings.memory.size.0 / PART_OF_MEMORY / (settings.disk.stores().count() as u64).max(1);
    let memory = usize::try_from(of_memory.min(store.0 / PART_OF_STORE)).unwrap_or(usize::MAX);
    let budget =
        |ByteSize(bytes_a_day)| WriteBudget { bytes_a_day, memory, newcomers: Newcomers::Heavy };
    settings.disk.write_budget.map(budget)
}

/// Returns the number of bytes that may wait for the store's thread and for the disk. This is a
/// quarter of `memory` (in bytes), within the bounds below.
fn waiting_bytes(memory: u64) -> usize {
    const LEAST: u64 = 2 << 20;
    const MOST: u64 = 16 << 20;
    usize::try_from((memory / 4).clamp(LEAST, MOST)).unwrap_or(usize::MAX)
}

/// Returns the smallest object limit of all stores, in bytes. The limit must be known before foxy
/// chooses a store for an object.
pub fn least_object_limit(settings: &Settings, stores: &[RunningStore]) -> u64 {
    let without_store = || settings.disk.object_limit.map_or(u64::MAX, |limit| limit.0);
    stores.iter().map(|store| store.object_limit).min().unwrap_or_else(without_store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_limit_is_an_eighth_of_a_large_store() {
        for (store, limit) in [(16, 8), (64, 32), (512, 64), (1 << 10, 128), (80 << 10, 10 << 10)] {
            assert_eq!(object_limit(ByteSize(store << 20)), ByteSize(limit << 20));
        }
    }
}
