//! Settings that say which stores there are and which of them takes what; their place among the
//! others is in `table`.

use super::kind::{Area, Kind, Preset, Setting};
use super::rows::size;

/// The stores (R67).
pub const STORE: Setting = Setting {
    key: "store",
    flag: Some("store"),
    area: Area::Store,
    kind: Kind::Stores(|w| &mut w.store),
    default: Preset::Computed(
        "$XDG_CACHE_HOME/foxy, else $HOME/.cache/foxy, else /var/cache/foxy; none beside `cache-dir`",
    ),
    doc: "Folders that hold the cache on disk, one store in each. \
          A folder is made when it does not exist; a store file in it that is not foxy's is left alone, and foxy does not start. \
          Instead of the file of `webcosm` it can have a link to a block device (docs/operation.md).\n\n\
          A folder can be followed by options of its own, as in `/disk1/foxy,scheme=coss,max-object=8K,size=1G`: \
          `scheme` and `size` go before the settings of that name, and only objects of at least `min-object` and at most \
          `max-object` bytes are stored there. So small objects can go to one store and large ones to another.",
};

/// Stores as a Squid configuration names them (R72).
pub const CACHE_DIR: Setting = Setting {
    key: "cache-dir",
    flag: Some("cache-dir"),
    area: Area::Store,
    kind: Kind::CacheDirs(|w| &mut w.cache_dir),
    default: Preset::Fixed(&[]),
    doc: "Further stores, each as the line `cache_dir` of a Squid configuration names it. \
          Types are `ufs`, `aufs`, `diskd`, `coss`, `rock` (kept by the scheme `stream-packetizer`) and `null`. \
          The size is in megabytes. The first three take the numbers of directories, which must be 16 and 256. \
          Options are `min-size` and `max-size` in bytes, and for `diskd` `Q1` and `Q2`; others are refused. \
          Give foxy folders of its own: what Squid has stored is not read.",
};

/// Which store takes a record (R68).
pub const STORE_SELECTION: Setting = Setting {
    key: "store-selection",
    flag: Some("store-selection"),
    area: Area::Store,
    kind: Kind::Choice {
        slot: |w| &mut w.store_selection,
        words: &[
            ("key", "the one its key belongs to"),
            ("round-robin", "each in turn, as Squid's store_dir_select_algorithm round-robin"),
            ("least-load", "the one with the fewest requests waiting, as Squid's least-load"),
        ],
    },
    default: Preset::Fixed(&["key"]),
    doc: "Which of several stores takes a new object, among those that take its size. \
          Where one is stored already, it is replaced there. \
          Unless it is `key` with stores that all take the same sizes, foxy remembers where about a million keys are, which takes up to \
          17 MiB of memory; for others each store is asked in turn, and a new one is stored only after all other stores have \
          confirmed that they do not have it. Empty a store that comes back after it was left out for a while, and all stores before you go from another selection to `key`: \
          what was replaced meanwhile could be found there again.",
};

/// What the default engine should write in a day.
pub const WRITE_BUDGET: Setting = Setting {
    key: "write-budget",
    flag: Some("write-budget"),
    area: Area::Store,
    kind: size(|w| &mut w.write_budget, 0, 1 << 50),
    default: Preset::Nothing("everything is written"),
    doc: "Bytes that each store of the scheme `webcosm` should write in a day, to spare a disk that wears out. \
          What is not written is saved up, for a day at most. Once the budget is spent and the store has been full, objects new to it that are \
          large beside the others wait in memory, and are written when they are asked for again; a stop loses those that were not. \
          All else is written even so, so this is what foxy strives for, not a limit. \
          What waits takes a fiftieth of the store, and for all stores together at most a quarter of `memory`, beside it. \
          With 0 the budget is always spent.",
};
