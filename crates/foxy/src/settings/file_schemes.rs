//! Settings that only the schemes of one file an object have; their place among the others is in
//! `table`.

use super::kind::{Area, Kind, Preset, Setting};
use super::rows::scheme_count;

/// What survives a crash (R39, R69).
pub const RECOVERY: Setting = Setting {
    key: "recovery",
    flag: Some("recovery"),
    area: Area::Store,
    kind: Kind::Choice {
        slot: |w| &mut w.recovery,
        words: &[
            (
                "crash",
                "all that was durable comes back after a crash; forgetting an object costs a sync",
            ),
            (
                "clean-stop",
                "only a store that was stopped comes back; nothing is synced while it serves",
            ),
        ],
    },
    default: Preset::Fixed(&["crash"]),
    doc: "What the schemes that keep one file an object remember after a crash. \
          `stream-packetizer` always recovers from one, the others never.",
};

/// How numbers become folders (R18).
pub const UFS_MAPPING: Setting = Setting {
    key: "ufs.mapping",
    flag: None,
    area: Area::Store,
    kind: Kind::Choice {
        slot: |w| &mut w.ufs_mapping,
        words: &[
            (
                "consecutive",
                "256 files that follow each other share a folder, as in Squid since 1998",
            ),
            (
                "round-robin",
                "files that follow each other lie in different folders, as in Squid 1.1",
            ),
        ],
    },
    default: Preset::Fixed(&["consecutive"]),
    doc: "How the schemes `ufs`, `aufs` and `diskd` spread their files over folders. \
          What was stored in the other way is not found any more.",
};

/// When the scheme `aufs` is busy (R63).
pub const AUFS_QUEUE: Setting = scheme_count(
    "aufs.queue",
    &["80"],
    |w| &mut w.aufs_queue,
    "Operations under way at which the scheme `aufs` opens no more files: hits become misses, fills are not stored.",
);

/// Whether the scheme `aufs` waits for writes (R63).
pub const AUFS_WRITES: Setting = Setting {
    key: "aufs.writes",
    flag: None,
    area: Area::Store,
    kind: Kind::Choice {
        slot: |w| &mut w.aufs_writes,
        words: &[
            ("queued", "threads write"),
            ("waited", "the store's own thread writes, as in Squid 2.5"),
        ],
    },
    default: Preset::Fixed(&["queued"]),
    doc: "Who writes for the scheme `aufs`.",
};

/// When the scheme `diskd` is busy: Q1 (R64).
pub const DISKD_Q1: Setting = scheme_count(
    "diskd.q1",
    &["64"],
    |w| &mut w.diskd_q1,
    "Operations under way at which the scheme `diskd` opens no more files, as Squid's Q1.",
);

/// When the scheme `diskd` blocks: Q2 (R64).
pub const DISKD_Q2: Setting = scheme_count(
    "diskd.q2",
    &["72"],
    |w| &mut w.diskd_q2,
    "Operations under way at which the store waits for the helper process, as Squid's Q2.",
);
