//! The stores: opens each folder, its device and its shard, and refuses to start with one that cannot be used.

use super::disk;
use super::patiently;
use super::store_set::Member;
use super::welcome::OpenStore;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::resolve::new_store_size;
use crate::settings::store_choice::StoreChoice;
use foxy_base::{ByteSize, Instant, Random, clock};
use foxy_device::{Root, RootError};
use foxy_store::superblock::{Found, Superblock};
use foxy_store::{Observer, Recovery, SchemeName, Shard, ShardSettings, StoreSettings, StoreStatus};
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a store that opens is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long clients are kept waiting at start-up for an index to be rebuilt. After that they are served while it goes
/// on, with misses where it is not done yet.
const REBUILDING_PATIENCE: Duration = Duration::from_secs(2);

/// A running store and what the start-up message says of it.
pub struct RunningStore {
    /// The shard; dropping it closes the store.
    pub shard: Shard,
    /// What it is.
    pub facts: OpenStore,
    sizes: RangeInclusive<u64>,
    /// The folder's lock, let go when the shard has ended.
    _root: Root,
}

impl RunningStore {
    /// The store as one of the set of all.
    pub fn member(&self) -> Member {
        Member { store: Arc::new(self.shard.handle()), sizes: self.sizes.clone() }
    }
}

/// Opens every store and waits until each has said whether it can be used. The scheme that stores nothing needs no
/// folder.
///
/// # Errors
/// The first store that cannot be used, with what would be right.
pub fn open(settings: &Settings, random: &mut Random) -> Result<Vec<RunningStore>, Failure> {
    let kept = |store: &&StoreChoice| store.scheme.unwrap_or(settings.scheme) != SchemeName::Null;
    let stores = settings.store.iter().filter(kept);
    let stores: Result<Vec<_>, _> = stores.map(|store| start(settings, store, random.next_u64())).collect();
    let stores = stores?;
    let patience = clock::monotonic() + REBUILDING_PATIENCE;
    for store in &stores {
        wait_until_usable(store, patience)?;
    }
    Ok(stores)
}

fn start(settings: &Settings, store: &StoreChoice, seed: u64) -> Result<RunningStore, Failure> {
    let folder = store.folder.as_path();
    let name = store.scheme.unwrap_or(settings.scheme);
    let root = patiently(|error| matches!(error, RootError::InUse(_)), || Root::open(folder));
    let root = root.map_err(|error| Failure::Unusable(error.to_string()))?;
    let size = store
        .size
        .or(settings.size)
        .or_else(|| existing_size(folder, name))
        .unwrap_or_else(|| default_size(&root));
    let refuse =
        |reason: &dyn std::fmt::Display| Failure::Unusable(format!("store {}: {reason}", folder.display()));
    let store_settings = StoreSettings {
        object_limit: settings.object_limit.0,
        policy: settings.policy,
        recovery: if settings.recovery == "clean-stop" {
            Recovery::AfterCleanStop
        } else {
            Recovery::AfterCrash
        },
        aufs_queue: settings.aufs_queue,
        diskd_q1: store.q1.unwrap_or(settings.diskd_q1),
        waiting_bytes: waiting_bytes(settings.memory.0),
        seed,
        ..StoreSettings::with_size(size.0)
    };
    store_settings.validate().map_err(|error| refuse(&error))?;
    let opened = disk::open(&root, settings, store)?;
    let observer = Observer::default();
    let scheme = name.make(&store_settings, observer.clone());
    let mailbox_bytes = waiting_bytes(settings.memory.0);
    let shard_settings = ShardSettings { mailbox_bytes, ..ShardSettings::new(clock::monotonic) };
    let shard = Shard::start(scheme, opened.device, observer, shard_settings);
    let shard =
        shard.map_err(|error| Failure::Failed(format!("cannot start the store's thread: {error}")))?;
    let facts = OpenStore { folder: folder.to_owned(), size, scheme: name, device: opened.name };
    Ok(RunningStore { shard, facts, sizes: store.sizes(), _root: root })
}

/// Bytes that may wait for a store, in its mailbox and on their way to disk: little where memory is.
fn waiting_bytes(memory: u64) -> usize {
    const LEAST: u64 = 2 << 20;
    const MOST: u64 = 16 << 20;
    usize::try_from((memory / 4).clamp(LEAST, MOST)).unwrap_or(usize::MAX)
}

/// The size a store on disk was made with: asking for another would begin it anew.
fn existing_size(folder: &Path, scheme: SchemeName) -> Option<ByteSize> {
    const PAGE: usize = foxy_store::layout::PAGE;
    let mut pages = [0; 2 * PAGE];
    let path = folder.join(scheme.row().control?);
    File::open(path).ok()?.read_exact(&mut pages).ok()?;
    match Superblock::judge(&pages[..PAGE], &pages[PAGE..]) {
        Ok(Found::Ours(superblock)) if superblock.requested > 0 => Some(ByteSize(superblock.requested)),
        _ => None,
    }
}

fn default_size(root: &Root) -> ByteSize {
    new_store_size(ByteSize(root.free_bytes().unwrap_or(0)))
}

fn wait_until_usable(store: &RunningStore, patience: Instant) -> Result<(), Failure> {
    let handle = store.shard.handle();
    loop {
        match handle.observer().status.get() {
            StoreStatus::Opening => std::thread::sleep(LOOK_EVERY),
            StoreStatus::Rebuilding if clock::monotonic() < patience => std::thread::sleep(LOOK_EVERY),
            StoreStatus::Rebuilding | StoreStatus::Serving => return Ok(()),
            StoreStatus::Unusable(error) => {
                let folder = store.facts.folder.display();
                return Err(Failure::Unusable(format!("store {folder}: {error}")));
            }
            StoreStatus::Panicked | StoreStatus::Closed => {
                let folder = store.facts.folder.display();
                return Err(Failure::Failed(format!("store {folder}: its thread ended while it was opened")));
            }
        }
    }
}
