//! Settings of the chapters "The cache on disk" and "The cache in memory".

use super::super::kind::{Kind, Preset, Setting};
use super::super::squid::CacheDir;
use super::super::store_choice::{STORE_BYTES, StoreChoice};
use foxy_base::ByteSize;
use foxy_schemes::PolicyName;
use foxy_schemes::SchemeName;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

settings! {
    struct DiskCache, written as WrittenDiskCache in disk, chapter "The cache on disk";

    /// Folders that hold the cache on disk, one store in each. foxy makes a missing folder. It does
    /// not start if the folder has a store file that is not foxy's. A link to a block device can
    /// replace the file of `webcosm` (docs/operation.md). Options can follow a folder, as in
    /// `/disk1/foxy,scheme=coss,max-object=8K,size=1G`. `scheme` and `size` override the settings
    /// of that name. `min-object` and `max-object` bound the bytes of the objects stored there.
    store: defaulted Vec<StoreChoice> = "store" flag "store", Stores,
        Computed("$XDG_CACHE_HOME/foxy, else $HOME/.cache/foxy, else /var/cache/foxy; none beside \
                  `cache-dir`");

    /// Further stores, each a line `cache_dir` of a Squid configuration. Types are `ufs`, `aufs`,
    /// `diskd`, `coss`, `rock` (the scheme `stream-packetizer`) and `null`. The size is in
    /// megabytes. The first three types take the numbers of directories: 16 and 256. Options are
    /// `min-size` and `max-size` in bytes, and for `diskd` `Q1` and `Q2`. foxy does not read what
    /// Squid has stored.
    cache_dir: defaulted Vec<CacheDir> = "cache-dir" flag "cache-dir", CacheDirs, Fixed();

    /// Which store takes a new object, among the stores that take its size. A stored object is
    /// replaced where it lies. Except with `key` and stores of equal sizes, foxy remembers the
    /// stores of about a million keys in up to 17 MiB of memory. For other keys it asks each store,
    /// and stores an object only after the others have confirmed its absence. Empty a store that
    /// comes back after an absence, and all stores before a change to `key`; otherwise replaced
    /// objects could come back.
    store_selection: given &'static str = "store-selection" flag "store-selection", choice(&[
        ("key", "the store that the key hashes to"),
        ("round-robin", "each store in turn, as Squid's store_dir_select_algorithm"),
        ("least-load", "the store with the fewest waiting requests, as Squid's least-load"),
    ]), Fixed("key");

    /// Bytes of disk for each store. foxy does not start if the disk has less room, unless a store
    /// of that size is there already. A `webcosm` store of another size keeps what fits, but begins
    /// anew below about half of its earlier size, or beyond eight times more or less than at first.
    size: optional ByteSize = "size" flag "size", size(*STORE_BYTES.start(), *STORE_BYTES.end()),
        Computed("the store's present size; for a new store 10 % of the free disk, at most 10 GiB");

    /// Layout of objects on disk.
    scheme: given SchemeName = "scheme" flag "scheme", Scheme, Fixed("webcosm");

    /// Which record goes when the disk is full. `stream-packetizer` and the schemes of one file per
    /// object use it. Other schemes have an order of their own; foxy does not start with a policy
    /// that no store uses.
    policy: defaulted PolicyName = "policy" flag "policy", Policy, Fixed("lru");

    /// How foxy reads and writes the disk.
    device: given &'static str = "device" flag "device", choice(&[
        (
            "auto",
            "as the scheme needs: blocking for ufs and its kin, threads for aufs, helper for \
             diskd, else io_uring, or threads where the system forbids it",
        ),
        ("uring", "io_uring, or do not start"),
        ("threads", "a pool of threads"),
        ("blocking", "the store's own thread, which waits for every operation"),
        ("helper", "a separate process"),
    ]), Fixed("auto");

    /// Bytes that each `webcosm` store aims to write per day, to spare a disk that wears out.
    /// Unused budget is saved for at most a day. When it is spent and the store has been full,
    /// comparatively large new objects wait in memory until they are asked for again; a stop loses
    /// them. Everything else is still written: this is no limit. Waiting objects take a fiftieth of
    /// the store, and in all stores at most a quarter of `memory`, besides it. With 0 the budget is
    /// always spent.
    write_budget: optional ByteSize = "write-budget" flag "write-budget",
        size(0, 1 << 50), Nothing("everything is written");

    /// Recovery of the schemes of one file per object after a crash. `stream-packetizer` always
    /// recovers, other schemes never.
    recovery: given &'static str = "recovery" flag "recovery", choice(&[
        ("crash", "all durable objects come back; forgetting an object costs a sync"),
        ("clean-stop", "only a store that was stopped comes back; serving never syncs"),
    ]), Fixed("crash");

    /// How `ufs`, `aufs` and `diskd` spread files over folders. A change loses what was stored.
    ufs_mapping: given &'static str = "ufs.mapping", choice(&[
        ("consecutive", "256 consecutive files share a folder, as in Squid since 1998"),
        ("round-robin", "consecutive files lie in different folders, as in Squid 1.1"),
    ]), Fixed("consecutive");

    /// Operations under way at which `aufs` opens no more files: hits become misses, and fills are
    /// not stored.
    aufs_queue: given usize = "aufs.queue", count(1, OPERATIONS), Fixed("80");

    /// Which threads write for `aufs`.
    aufs_writes: given &'static str = "aufs.writes", choice(&[
        ("queued", "threads write"),
        ("waited", "the store's own thread writes, as in Squid 2.5"),
    ]), Fixed("queued");

    /// Operations under way at which `diskd` opens no more files, as Squid's Q1.
    diskd_q1: given usize = "diskd.q1", count(1, OPERATIONS), Fixed("64");

    /// Operations under way at which the store waits for its helper process, as Squid's Q2.
    diskd_q2: given usize = "diskd.q2", count(1, OPERATIONS), Fixed("72");

    /// Largest response that is stored; larger ones are only relayed. A response must also fit the
    /// store: `webcosm` takes up to 25 MiB in a store of 64 MiB, and three quarters of a store of 1
    /// GiB or more.
    object_limit: optional ByteSize = "object-limit" flag "object-limit", size(KIB, TIB),
        Computed("an eighth of the smallest store, at least 64 MiB, at most half of the store");

    /// How long a response with status 404, 405, 410, 414 or 501 is fresh when it does not say so
    /// itself (RFC 9111 §4.2.2), in whole seconds. With 0s such a response is stored only if it can
    /// be validated. Other errors never get a lifetime by guess.
    negative_lifetime: given Duration = "negative-lifetime" flag "negative-lifetime",
        span_from_zero, Fixed("0s");
}

/// Most operations that a limit of a queue can name.
pub const OPERATIONS: usize = 65_536;

impl DiskCache {
    /// The stores of `store` and of `cache-dir`.
    pub fn stores(&self) -> impl Iterator<Item = &StoreChoice> {
        self.store.iter().chain(self.cache_dir.iter().map(|line| &line.store))
    }
}

settings! {
    struct Memory, written as WrittenMemory in memory, chapter "The cache in memory";

    /// Bytes of responses, and of parts of large ones, kept in memory in front of the disk.
    size: given ByteSize = "memory" flag "memory", size(MIB, TIB),
        Computed("an eighth of the memory of the machine or control group, at most 1 GiB");

    /// Largest body kept in memory. Parts of bodies above 1 MiB are kept too if they are asked for
    /// repeatedly.
    object_limit: given ByteSize = "memory-object-limit", size(KIB, GIB), Fixed("1M");
}
