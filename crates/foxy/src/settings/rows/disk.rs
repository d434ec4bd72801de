//! Settings of the chapter "The cache on disk".

use super::super::kind::{Area, Kind, Preset, Setting, choice, count, size, span_from_zero};
use super::super::squid::CacheDir;
use super::super::store_choice::StoreChoice;
use foxy_base::ByteSize;
use foxy_schemes::PolicyName;
use foxy_schemes::SchemeName;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

settings! {
    /// The cache on disk.
    struct DiskCache, written as WrittenDiskCache in disk, chapter Store;

    store: defaulted Vec<StoreChoice> {
        key: "store",
        flag: "store",
        kind: Kind::Stores;
        default: Preset::Computed(
        "$XDG_CACHE_HOME/foxy, else $HOME/.cache/foxy, else /var/cache/foxy; none beside \
        `cache-dir`",
    ),
        doc: "Folders that hold the cache on disk, one store in each. \
          A folder is made when it does not exist; a store file in it that is not foxy's is left alone, and foxy does not start. \
          Instead of the file of `webcosm` it can have a link to a block device (docs/operation.md).\n\n\
          A folder can be followed by options of its own, as in `/disk1/foxy,scheme=coss,max-object=8K,size=1G`: \
          `scheme` and `size` go before the settings of that name, and only objects of at least `min-object` and at most \
          `max-object` bytes are stored there. So small objects can go to one store and large \
          ones to another.",
    }

    cache_dir: defaulted Vec<CacheDir> {
        key: "cache-dir",
        flag: "cache-dir",
        kind: Kind::CacheDirs;
        default: Preset::Fixed(&[]),
        doc: "Further stores, each as the line `cache_dir` of a Squid configuration names it. \
          Types are `ufs`, `aufs`, `diskd`, `coss`, `rock` (kept by the scheme `stream-packetizer`) and `null`. \
          The size is in megabytes. The first three take the numbers of directories, which must be 16 and 256. \
          Options are `min-size` and `max-size` in bytes, and for `diskd` `Q1` and `Q2`; others are refused. \
          Give foxy folders of its own: what Squid has stored is not read.",
    }

    store_selection: given &'static str {
        key: "store-selection",
        flag: "store-selection",
        kind: choice, &[
            ("key", "the one its key belongs to"),
            ("round-robin", "each in turn, as Squid's store_dir_select_algorithm round-robin"),
            ("least-load", "the one with the fewest requests waiting, as Squid's least-load"),
        ];
        default: Preset::Fixed(&["key"]),
        doc: "Which of several stores takes a new object, among those that take its size. \
          Where one is stored already, it is replaced there. \
          Unless it is `key` with stores that all take the same sizes, foxy remembers where about a million keys are, which takes up to \
          17 MiB of memory; for others each store is asked in turn, and a new one is stored only after all other stores have \
          confirmed that they do not have it. Empty a store that comes back after it was left out for a while, and all stores before you go from another selection to `key`: \
          what was replaced meanwhile could be found there again.",
    }

    size: optional ByteSize {
        key: "size",
        flag: "size",
        kind: size, 16 * MIB, 64 * TIB;
        default: Preset::Computed(
            "the size the store has; for a new one 10 % of the free disk, at most 10 GiB",
        ),
        doc: "Bytes of disk each store may take. \
              Where the disk does not have them, what the store has taken there already counted in, foxy does not start, \
              unless a store of that size is there already. A `webcosm` store that is given another size keeps what it holds \
              as far as that fits; below about half of its earlier size, and beyond eight times more or less than at first, \
              it begins anew, empty.",
    }

    scheme: given SchemeName {
        key: "scheme",
        flag: "scheme",
        kind: Kind::Scheme;
        default: Preset::Fixed(&["webcosm"]),
        doc: "How objects are laid out on disk.",
    }

    policy: defaulted PolicyName {
        key: "policy",
        flag: "policy",
        kind: Kind::Policy;
        default: Preset::Fixed(&["lru"]),
        doc: "Which record goes when the disk is full. \
              The scheme `stream-packetizer` and those of one file an object ask it; the others have an order of their own, \
              and foxy does not start when a policy is given and no store has a scheme that asks \
              it.",
    }

    device: given &'static str {
        key: "device",
        flag: "device",
        kind: choice, &[
                (
                    "auto",
                    "what the scheme is meant for: ufs and its kin blocking, aufs threads, diskd \
                    a helper, all others io_uring where the system allows it, else threads",
                ),
                ("uring", "io_uring, or do not start"),
                ("threads", "a pool of threads that read and write"),
                ("blocking", "the store's own thread, which waits for every operation"),
                ("helper", "a process beside foxy"),
            ];
        default: Preset::Fixed(&["auto"]),
        doc: "How the disk is read and written.",
    }

    write_budget: optional ByteSize {
        key: "write-budget",
        flag: "write-budget",
        kind: size, 0, 1 << 50;
        default: Preset::Nothing("everything is written"),
        doc: "Bytes that each store of the scheme `webcosm` should write in a day, to spare a \
              disk that wears out. \
          What is not written is saved up, for a day at most. Once the budget is spent and the store has been full, objects new to it that are \
          large beside the others wait in memory, and are written when they are asked for again; a stop loses those that were not. \
          All else is written even so, so this is what foxy strives for, not a limit. \
          What waits takes a fiftieth of the store, and for all stores together at most a quarter of `memory`, beside it. \
          With 0 the budget is always spent.",
    }

    recovery: given &'static str {
        key: "recovery",
        flag: "recovery",
        kind: choice, &[
            (
                "crash",
                "all that was durable comes back after a crash; forgetting an object costs a sync",
            ),
            (
                "clean-stop",
                "only a store that was stopped comes back; nothing is synced while it serves",
            ),
        ];
        default: Preset::Fixed(&["crash"]),
        doc: "What the schemes that keep one file an object remember after a crash. \
          `stream-packetizer` always recovers from one, the others never.",
    }

    ufs_mapping: given &'static str {
        key: "ufs.mapping",
        kind: choice, &[
            (
                "consecutive",
                "256 files that follow each other share a folder, as in Squid since 1998",
            ),
            (
                "round-robin",
                "files that follow each other lie in different folders, as in Squid 1.1",
            ),
        ];
        default: Preset::Fixed(&["consecutive"]),
        doc: "How the schemes `ufs`, `aufs` and `diskd` spread their files over folders. \
          What was stored in the other way is not found any more.",
    }

    aufs_queue: given usize {
        key: "aufs.queue",
        kind: count, 1, 65_536;
        default: Preset::Fixed(&["80"]),
        doc: "Operations under way at which the scheme `aufs` opens no more files: hits become \
              misses, fills are not stored.",
    }

    aufs_writes: given &'static str {
        key: "aufs.writes",
        kind: choice, &[
            ("queued", "threads write"),
            ("waited", "the store's own thread writes, as in Squid 2.5"),
        ];
        default: Preset::Fixed(&["queued"]),
        doc: "Who writes for the scheme `aufs`.",
    }

    diskd_q1: given usize {
        key: "diskd.q1",
        kind: count, 1, 65_536;
        default: Preset::Fixed(&["64"]),
        doc: "Operations under way at which the scheme `diskd` opens no more files, as Squid's Q1.",
    }

    diskd_q2: given usize {
        key: "diskd.q2",
        kind: count, 1, 65_536;
        default: Preset::Fixed(&["72"]),
        doc: "Operations under way at which the store waits for the helper process, as Squid's Q2.",
    }

    object_limit: optional ByteSize {
        key: "object-limit",
        flag: "object-limit",
        kind: size, KIB, TIB;
        default: Preset::Computed(
            "an eighth of the smallest store, or 64 MiB where that is more, but at most half of \
            the store",
        ),
        doc: "Larger responses are relayed but not stored. A response must also fit the store: a \
              `webcosm` store of 64 MiB takes up to 25 MiB, and one of 1 GiB or more three \
              quarters of its size.",
    }

    negative_lifetime: given Duration {
        key: "negative-lifetime",
        flag: "negative-lifetime",
        kind: span_from_zero;
        default: Preset::Fixed(&["0s"]),
        doc: "How long a response with status 404, 405, 410, 414 or 501 answers from the cache \
              when it does not say so itself \
          (RFC 9111 §4.2.2), in whole seconds. 0s stores such a response only if it can be validated. \
          Other errors are never given a lifetime by guess.",
    }
}

impl DiskCache {
    /// The stores of `store` and of `cache-dir`.
    pub fn stores(&self) -> impl Iterator<Item = &StoreChoice> {
        self.store.iter().chain(self.cache_dir.iter().map(|line| &line.store))
    }
}
