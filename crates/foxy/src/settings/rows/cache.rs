//! Settings of the chapters "The cache on disk" and "The cache in memory".

use super::super::kind::{Kind, Preset, Setting};
use super::super::squid::CacheDir;
use super::super::store_choice::{STORE_BYTES, StoreChoice};
use foxy_base::ByteSize;
use foxy_rules::coding::{Coding, MediaRange};
use foxy_schemes::PolicyName;
use foxy_schemes::SchemeName;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

settings! {
    struct DiskCache, written as WrittenDiskCache in disk, chapter "The cache on disk";

    /// Folders of the on-disk cache, one store in each folder. foxy creates a missing folder. A
    /// `webcosm` store can use a block device in place of a file (docs/operation.md). Options may
    /// follow a folder, as in `/disk1/foxy,scheme=coss,max-object=8K,size=1G`. `scheme` and `size`
    /// override the settings of these names; `min-object` and `max-object` limit the sizes of
    /// objects in this store.
    store: defaulted Vec<StoreChoice> = "store" flag "store", Stores,
        Computed("$XDG_CACHE_HOME/foxy, else $HOME/.cache/foxy, else /var/cache/foxy; no \
                  default if `cache-dir` is set");

    /// More stores, each written as a `cache_dir` line of a Squid configuration. Types are `ufs`,
    /// `aufs`, `diskd`, `coss`, `rock` (the scheme `stream-packetizer`) and `null`. The size is in
    /// megabytes. For the first three types, the numbers of directories on both levels (`16 256`)
    /// follow the size. Options are `min-size` and `max-size` in bytes, and for `diskd` also `Q1`
    /// and `Q2`. foxy does not read objects that Squid stored.
    cache_dir: defaulted Vec<CacheDir> = "cache-dir" flag "cache-dir", CacheDirs, Fixed();

    /// Rule that chooses a store for a new object, among the stores that accept its size. A new
    /// version of a stored object always goes to the store of the old version. With `key` and
    /// stores of equal sizes, the cache key alone determines the store. Otherwise foxy remembers
    /// the stores of about a million keys, in up to 17 MiB of memory. For a key that it does not
    /// remember, foxy searches every store. It stores an object under such a key only after the
    /// other stores have confirmed that they lack it. To avoid outdated objects, empty a store that you use again after an absence, and
    /// empty all stores before you change to `key`.
    store_selection: given &'static str = "store-selection" flag "store-selection", choice(&[
        ("key", "the store that a hash of the key selects"),
        ("round-robin", "each store in turn, as round-robin in Squid"),
        ("least-load", "the store with the fewest waiting requests, as least-load in Squid"),
    ]), Fixed("key");

    /// Size of each store on disk. foxy does not start if the disk lacks the space for a new or
    /// larger store. After a change of size, schemes with a file for each object keep their
    /// objects. Other schemes except `webcosm` start empty. A `webcosm` store loses its probation
    /// log (large new objects). A larger `webcosm` store keeps all other objects. A smaller
    /// `webcosm` store keeps the objects that it wrote since its write position last returned to
    /// the start of its file. If these objects do not fit, it starts empty. The same happens after a change by more
    /// than a factor of eight since its creation, or a growth beyond 1, 2, 4 … TiB.
    size: optional ByteSize = "size" flag "size", size(*STORE_BYTES.start(), *STORE_BYTES.end()),
        Computed("the present size; for a new store 10 % of the free disk space, at most 10 GiB");

    /// Layout of objects on disk.
    scheme: given SchemeName = "scheme" flag "scheme", Scheme, Fixed("webcosm");

    /// Rule that chooses the object to evict when the disk is full. The setting applies to
    /// `stream-packetizer` and to the schemes with one file per object; other schemes have their
    /// own rule. foxy does not start with a policy that no store uses.
    policy: defaulted PolicyName = "policy" flag "policy", Policy,
    Nothing("stores that need a policy use lru");

    /// How foxy reads and writes the disk.
    device: given &'static str = "device" flag "device", choice(&[
        (
            "auto",
            "blocking for ufs and similar schemes, threads for aufs, helper for diskd; for \
             other schemes uring, or threads if the system forbids io_uring",
        ),
        ("uring", "Linux's io_uring; foxy does not start if the system forbids io_uring"),
        ("threads", "a pool of threads"),
        ("blocking", "the store's own thread, which waits for each operation"),
        ("helper", "a separate process"),
    ]), Fixed("auto");

    /// Number of bytes that each `webcosm` store should write per day, to reduce wear of the disk.
    /// foxy saves up to one day of unused budget. If the budget is spent and the store was full at
    /// least once, large new objects wait in memory until a client requests them again. Large means
    /// about twice the mean size of the store's records, or more. If foxy stops, waiting objects
    /// are lost. foxy writes all other objects, so the budget is not a strict limit. Waiting
    /// objects use memory in addition to `memory`: at most a fiftieth of each store's size, and in
    /// all stores together a quarter of `memory`. A budget of 0 is always spent.
    write_budget: optional ByteSize = "write-budget" flag "write-budget",
        size(0, 1 << 50), Nothing("foxy writes every object");

    /// Objects that the schemes with one file per object recover after a crash. `webcosm` and
    /// `stream-packetizer` always recover their objects; other schemes never do.
    recovery: given &'static str = "recovery" flag "recovery", choice(&[
        ("crash", "all objects that reached the disk; each removal then needs a sync of the disk"),
        ("clean-stop", "no object after a crash, all objects after a stop; serving never syncs"),
    ]), Fixed("crash");

    /// Percentage of the store's size at which the schemes other than `webcosm` begin to evict
    /// objects, as `cache_swap_high` of Squid.
    high_watermark: given usize = "high-watermark", count(1, 100), Fixed("95");

    /// Percentage of the store's size at which eviction ends, as `cache_swap_low` of Squid. At most
    /// `high-watermark`.
    low_watermark: given usize = "low-watermark", count(1, 100), Fixed("90");

    /// When `ufs`, `aufs` and `diskd` evict objects.
    ufs_reclaim: given &'static str = "ufs.reclaim", choice(&[
        ("at-once", "when a new object would exceed the high watermark"),
        ("every-second", "once a second while the cache is above the low watermark. The fuller the cache, the more objects foxy evicts, as in Squid"),
    ]), Fixed("at-once");

    /// How `ufs`, `aufs` and `diskd` distribute files over folders. A change of this setting loses
    /// all stored objects.
    ufs_mapping: given &'static str = "ufs.mapping", choice(&[
        ("consecutive", "256 consecutive files share a folder, as in Squid since 1998"),
        ("round-robin", "consecutive files lie in different folders, as in Squid 1.1"),
    ]), Fixed("consecutive");

    /// Number of operations in progress at which `aufs` opens no more files. Further hits then
    /// become misses, and foxy stores no new responses.
    aufs_queue: given usize = "aufs.queue", count(1, OPERATIONS), Fixed("80");

    /// Threads that write to disk for `aufs`.
    aufs_writes: given &'static str = "aufs.writes", choice(&[
        ("queued", "a pool of threads"),
        ("waited", "the store's own thread, as in Squid 2.5"),
    ]), Fixed("queued");

    /// Number of operations in progress at which `diskd` opens no more files, as Q1 in Squid.
    diskd_q1: given usize = "diskd.q1", count(1, OPERATIONS), Fixed("64");

    /// Number of operations in progress at which the store waits for its helper process, as Q2 in
    /// Squid.
    diskd_q2: given usize = "diskd.q2", count(1, OPERATIONS), Fixed("72");

    /// Largest response that foxy stores. A response must also fit the store. `webcosm` accepts up
    /// to 25 MiB in a store of 64 MiB, and up to 763 MiB in a store of 1 GiB. In larger stores the
    /// limit is 73 to 82 % of the store.
    object_limit: optional ByteSize = "object-limit" flag "object-limit", size(KIB, TIB),
        Computed("an eighth of the smallest store, at least 64 MiB, at most half of the store");

    /// How long a response with status 404, 405, 410, 414 or 501 stays fresh if it states no
    /// lifetime (RFC 9111 §4.2.2), in whole seconds. With 0s foxy stores such a response only if it
    /// can be validated.
    negative_lifetime: given Duration = "negative-lifetime" flag "negative-lifetime",
        span_from_zero, Fixed("0s");

    /// Codings with which foxy compresses stored responses: `zstd`, `br` and `gzip`. If a client
    /// accepts several codings equally, foxy uses the first of them in this list
    /// ([reasons](decisions/compression.md)).
    compress: given Vec<Coding> = "compress" flag "compress", Codings, Fixed();

    /// Smallest body that foxy compresses.
    compress_min: given ByteSize = "compress-min" flag "compress-min", size(1, GIB), Fixed("1K");

    /// Media types that foxy compresses, such as `text/css`, `text/*` or `*+json`.
    compress_types: given Vec<MediaRange> = "compress-types" flag "compress-type", MediaTypes,
        Fixed("text/*", "*+json", "*+xml", "application/json", "application/javascript",
              "application/xml", "application/wasm");
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

    /// Size of the memory cache in front of the disk, for responses and for parts of large
    /// responses.
    size: given ByteSize = "memory" flag "memory", size(MIB, TIB),
        Computed("an eighth of the memory of the machine or its control group, at most 1 GiB");

    /// Largest response body that foxy keeps in memory. foxy also keeps parts of bodies above 1 MiB
    /// if clients request them repeatedly.
    object_limit: given ByteSize = "memory-object-limit", size(KIB, GIB), Fixed("1M");
}
