//! The stores: opens each folder, its device and its shard, and refuses to start with one that
//! cannot be used.

use super::listeners::patiently;
use super::room::{self, Claim, NoRoom, Wish};
use super::store_set::Member;
use super::welcome::OpenStore;
use super::{block_device, disk, purge_list};
use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use crate::terminal::{self, Level};
use foxy_base::{ByteSize, Instant, Random, clock};
use foxy_device::{BlockDevice, HeldFile, Root, RootError, allocator};
use foxy_schemes::ufs::UfsMapping;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::superblock::{Found, Superblock};
use foxy_store::{
    Beginning, Newcomers, Observer, OpenStoreError, Recovery, Shard, ShardSettings, SizeWish,
    StoreSettings, StoreStatus, WriteBudget,
};
use std::fs::File;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often a store that opens is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long clients are kept waiting at start-up for an index to be rebuilt. After that they are
/// served while it goes on, with misses where it is not done yet.
const REBUILDING_PATIENCE: Duration = Duration::from_secs(2);

/// A running store and what the start-up message says of it.
pub struct RunningStore {
    /// The shard; dropping it closes the store.
    pub shard: Shard,
    /// What it is.
    pub facts: OpenStore,
    /// The largest response that it takes, in bytes.
    pub object_limit: u64,
    sizes: RangeInclusive<u64>,
    wish: Wish,
    /// The file that begins with its superblock, let go when the shard has ended, as the folder is.
    held: Option<Arc<HeldFile>>,
    root: Root,
}

impl RunningStore {
    /// How it came to be open; a scheme that stores nothing does not say.
    pub fn beginning(&self) -> Option<Beginning> {
        self.shard.handle().observer().beginning.get()
    }

    /// Its file, to look at as long as it is in use.
    pub fn file(&self) -> Option<Weak<HeldFile>> {
        self.held.as_ref().map(Arc::downgrade)
    }

    /// The store as one of the set of all.
    pub fn member(&self) -> Member {
        Member { store: Arc::new(self.shard.handle()), sizes: self.sizes.clone() }
    }
}

/// Opens every store and waits until each has said whether it can be used. The scheme that stores
/// nothing needs no folder. `locked` are folders that this process has locked already.
///
/// # Errors
/// The first store that cannot be used, with what would be right.
pub fn open(
    settings: &Settings,
    locked: &[Root],
    random: &mut Random,
) -> Result<Vec<RunningStore>, Failure> {
    let kept =
        |store: &&StoreChoice| store.scheme.unwrap_or(settings.disk.scheme) != SchemeName::Null;
    let places: Result<Vec<_>, _> =
        settings.disk.stores().filter(kept).map(|store| place(settings, store, locked)).collect();
    let places = places?;
    let sizes = sizes(&places)?;
    let stores = places.into_iter().zip(sizes);
    let stores: Result<Vec<_>, _> =
        stores.map(|(place, size)| start(settings, place, size, random.next_u64())).collect();
    let mut stores = stores?;
    let patience = clock::monotonic() + REBUILDING_PATIENCE;
    for store in &mut stores {
        wait_until_usable(store, patience)?;
        say_how_it_began(store);
    }
    Ok(stores)
}

/// A store's locked folder, and what is to come into it.
struct StorePlace<'a> {
    store: &'a StoreChoice,
    scheme: SchemeName,
    root: Root,
    /// Its file, where there is one already.
    held: Option<HeldFile>,
    wish: Wish,
}

fn place<'a>(
    settings: &Settings,
    store: &'a StoreChoice,
    locked: &[Root],
) -> Result<StorePlace<'a>, Failure> {
    let folder = store.folder.as_path();
    let scheme = store.scheme.unwrap_or(settings.disk.scheme);
    if let Some(advice) = block_device::instead_of_folder(folder) {
        return Err(advice);
    }
    let in_use =
        |error: &RootError| matches!(error, RootError::InUse(_) | RootError::DeviceInUse(_));
    let refuse = |error: RootError| Failure::Unusable(error.to_string());
    let root = match locked.iter().find(|root| root.path() == folder) {
        Some(root) => root.clone(),
        None => patiently(in_use, || Root::open(folder)).map_err(refuse)?,
    };
    // A process that was just killed may have the file a moment longer than the folder.
    let hold = |file| patiently(in_use, || block_device::hold(&root, scheme, file));
    let held = scheme.row().control.map_or(Ok(None), hold).map_err(refuse)?;
    let device = held.as_ref().and_then(HeldFile::block_device);
    let asked = store.size.or(settings.disk.size);
    let existing = existing_size(folder, scheme, device);
    let wish = match (asked, existing, device) {
        (None, None, Some(device)) => Wish::Device(block_device::whole(device, scheme)),
        _ => Wish::of(asked, existing, scheme.row().grows()),
    };
    Ok(StorePlace { store, scheme, root, held, wish })
}

/// How large each store becomes, by what its disk has room for.
fn sizes(places: &[StorePlace<'_>]) -> Result<Vec<ByteSize>, Failure> {
    let claim = |place: &StorePlace<'_>| match place.held.as_ref().and_then(HeldFile::block_device)
    {
        Some(device) => Claim { wish: place.wish, file_system: device.number, free: device.bytes },
        None => Claim {
            wish: place.wish,
            file_system: place.root.file_system().unwrap_or(0),
            free: place.root.free_bytes().unwrap_or(u64::MAX),
        },
    };
    let claims: Vec<_> = places.iter().map(claim).collect();
    let taken = |store: usize, enough| {
        let StorePlace { root, scheme, .. } = &places[store];
        root.taken_bytes(|name| scheme.row().owns(name), enough)
    };
    room::sizes(&claims, taken).map_err(|NoRoom { store, available }| {
        let StorePlace { root, wish, .. } = &places[store];
        room::refusal(root.path(), *wish, available)
    })
}

fn start(
    settings: &Settings,
    place: StorePlace<'_>,
    size: ByteSize,
    seed: u64,
) -> Result<RunningStore, Failure> {
    let StorePlace { store, scheme: name, root, held, wish } = place;
    let folder = store.folder.as_path();
    let refuse = |reason: &dyn std::fmt::Display| {
        Failure::Unusable(format!("store {}: {reason}", folder.display()))
    };
    let ByteSize(wanted) = settings.disk.object_limit.unwrap_or_else(|| object_limit(size));
    let object_limit = wanted.min(name.row().largest_object(size.0));
    let store_settings = SchemeSettings {
        policy: settings.disk.policy,
        ufs_mapping: match settings.disk.ufs_mapping {
            "round-robin" if name.row().grows() => UfsMapping::RoundRobin,
            _ => UfsMapping::Consecutive,
        },
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
            waiting_bytes: waiting_bytes(settings.memory.size.0),
            size_wish: if matches!(wish, Wish::Exactly(_)) {
                SizeWish::Exactly
            } else {
                SizeWish::AtMost
            },
            begun_before: folder.join(purge_list::NAME).is_file(),
            seed,
            ..StoreSettings::with_size(size.0)
        })
    };
    store_settings.validate().map_err(|error| refuse(&error))?;
    let opened = disk::open(&root, settings, store)?;
    let observer = Observer::default();
    let scheme = name.make(&store_settings, observer.clone());
    let mailbox_bytes = waiting_bytes(settings.memory.size.0);
    let give_back = Some(allocator::give_back as fn() -> Duration);
    let shard_settings =
        ShardSettings { mailbox_bytes, give_back, ..ShardSettings::new(clock::monotonic) };
    let shard = Shard::start(scheme, opened.device, observer, shard_settings);
    let shard = shard
        .map_err(|error| Failure::Failed(format!("cannot start the store's thread: {error}")))?;
    let facts = OpenStore { folder: folder.to_owned(), size, scheme: name, device: opened.name };
    Ok(RunningStore {
        shard,
        facts,
        object_limit,
        sizes: store.sizes(),
        wish,
        held: held.map(Arc::new),
        root,
    })
}

/// The largest response that a store of that size takes when no setting says: a part of it, so that
/// one does not throw out all others, but what is an ordinary file even where it is small, as long
/// as that leaves half of the store to others.
fn object_limit(store: ByteSize) -> ByteSize {
    const PART: u64 = 8;
    const LEAST: ByteSize = ByteSize(64 << 20);
    ByteSize(store.0 / PART).max(LEAST).min(ByteSize(store.0 / 2))
}

/// What a store of that size should write, if anything was said of it.
fn write_budget(settings: &Settings, store: ByteSize) -> Option<WriteBudget> {
    const PART: u64 = 50;
    const PART_OF_MEMORY: u64 = 4;
    let of_memory =
        settings.memory.size.0 / PART_OF_MEMORY / (settings.disk.stores().count() as u64).max(1);
    let memory = usize::try_from(of_memory.min(store.0 / PART)).unwrap_or(usize::MAX);
    let budget =
        |ByteSize(bytes_a_day)| WriteBudget { bytes_a_day, memory, newcomers: Newcomers::Heavy };
    settings.disk.write_budget.map(budget)
}

/// Bytes that may wait for a store, in its mailbox and on their way to disk: little where memory
/// is.
fn waiting_bytes(memory: u64) -> usize {
    const LEAST: u64 = 2 << 20;
    const MOST: u64 = 16 << 20;
    usize::try_from((memory / 4).clamp(LEAST, MOST)).unwrap_or(usize::MAX)
}

/// The size a store on disk was made with: asking for another would begin it anew. What is neither
/// a file nor the device that is held is not opened, as that could wait for ever.
fn existing_size(
    folder: &Path,
    scheme: SchemeName,
    device: Option<BlockDevice>,
) -> Option<ByteSize> {
    const PAGE: usize = foxy_store::layout::PAGE;
    let mut pages = [0; 2 * PAGE];
    let path = folder.join(scheme.row().control?);
    if device.is_none() {
        path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    }
    File::open(path).ok()?.read_exact(&mut pages).ok()?;
    match Superblock::judge(&pages[..PAGE], &pages[PAGE..]) {
        Ok(Found::Ours(superblock)) if superblock.requested > 0 => {
            Some(ByteSize(superblock.requested))
        }
        _ => None,
    }
}

/// A store that gave up what it held costs misses, and says why.
fn say_how_it_began(store: &RunningStore) {
    let what = match store.beginning() {
        Some(Beginning::Anew(reason)) => {
            format!(
                "begun anew: {reason}; what it held is forgotten, and fetched when it is asked for again"
            )
        }
        Some(Beginning::Cut { found, expected }) => {
            format!(
                "its file was cut from {expected} to {found} bytes; what was behind is lost, the rest is kept"
            )
        }
        Some(Beginning::New | Beginning::Kept) | None => return,
    };
    let folder = store.facts.folder.display();
    terminal::report(Level::Warning, &format!("foxy: store {folder}: {what}"));
}

/// The store may have made its file.
fn hold_what_was_made(store: &mut RunningStore) -> Result<(), Failure> {
    let Some(file) = store.facts.scheme.row().control else { return Ok(()) };
    let held = store.root.hold(file, store.held.take().and_then(Arc::into_inner));
    store.held = held.map_err(|error| Failure::Unusable(error.to_string()))?.map(Arc::new);
    Ok(())
}

/// Waits for a store, and takes note of the size it turned out to have.
fn wait_until_usable(store: &mut RunningStore, patience: Instant) -> Result<(), Failure> {
    let handle = store.shard.handle();
    loop {
        match handle.observer().status.get() {
            StoreStatus::Opening => std::thread::sleep(LOOK_EVERY),
            StoreStatus::Rebuilding if clock::monotonic() < patience => {
                std::thread::sleep(LOOK_EVERY)
            }
            StoreStatus::Rebuilding | StoreStatus::Serving => {
                store.facts.size = ByteSize(handle.observer().statistics.size_bytes.get());
                return hold_what_was_made(store);
            }
            StoreStatus::Unusable(OpenStoreError::NoSpace)
                if matches!(store.wish, Wish::Exactly(_)) =>
            {
                let available = ByteSize(store.root.free_bytes().unwrap_or(0));
                let limited = room::too_large_a_file(store.root.path(), store.wish);
                return Err(limited
                    .unwrap_or_else(|| room::refusal(store.root.path(), store.wish, available)));
            }
            StoreStatus::Unusable(error) => {
                let file = store.facts.scheme.row().control.filter(|_| error.is_about_the_file());
                let path = file.map_or_else(
                    || store.facts.folder.clone(),
                    |file| store.facts.folder.join(file),
                );
                return Err(Failure::Unusable(format!("store {}: {error}", path.display())));
            }
            StoreStatus::Panicked | StoreStatus::Closed => {
                let folder = store.facts.folder.display();
                return Err(Failure::Failed(format!(
                    "store {folder}: its thread ended while it was opened"
                )));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_takes_responses_up_to_an_eighth_of_it_but_small_ones_take_ordinary_files() {
        for (store, limit) in [(16, 8), (64, 32), (512, 64), (1 << 10, 128), (80 << 10, 10 << 10)] {
            assert_eq!(object_limit(ByteSize(store << 20)), ByteSize(limit << 20));
        }
    }
}
