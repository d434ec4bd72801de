//! The table of storage schemes to test, each with its settings and limits. A new scheme needs one
//! row.

use crate::canary::{Flaw, Slots, Unsynced};
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_schemes::{UfsMapping, UfsReclaim};
use foxy_store::settings::{MINIMUM_SIZE, Newcomers, Recovery, WriteBudget};
use foxy_store::{Observer, Scheme, StoreSettings};
use std::time::Duration;

/// The limits of disk and memory that a storage scheme must keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest total size of all files on the device, in bytes.
    pub disk_bytes: u64,
    /// Largest number of disk operations in flight.
    pub operations: u64,
    /// Largest total size of the buffers of operations in flight, in bytes.
    pub buffer_bytes: u64,
}

/// A storage scheme with its limits.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Name of the storage scheme in scripts.
    pub name: &'static str,
    /// Makes a storage scheme in the state of a newly started process. The first argument is the
    /// seed of the scheme's random generator, and selects some of its settings. Through the second
    /// argument, the scheme reports its counters and status.
    pub scheme: fn(u64, Observer) -> Box<dyn Scheme>,
    /// Size of the store in bytes. Random schedules derive record sizes from it.
    pub capacity: u64,
    /// Limits of the storage scheme.
    pub limits: Limits,
}

/// The storage schemes of `foxy-schemes`.
pub const SCHEMES: &[Subject] = &[
    plain("buddy", |seed, observer| SchemeName::Buddy.make(&settings(seed), observer)),
    plain("buddy-own-files", |seed, observer| {
        let settings = SchemeSettings { buddy_threshold: 20, ..settings(seed) };
        SchemeName::Buddy.make(&settings, observer)
    }),
    plain("coss", |seed, observer| SchemeName::Coss.make(&settings(seed), observer)),
    plain("lazy-reads", |seed, observer| SchemeName::LazyReads.make(&settings(seed), observer)),
    plain("lazy-reads-loc", |seed, observer| {
        SchemeName::LazyReadsLoc.make(&settings(seed), observer)
    }),
    plain("lazy-reads-loc-prefetch", |seed, observer| {
        SchemeName::LazyReadsLoc.make(&ahead(seed), observer)
    }),
    plain("squidmla-prefetch", |seed, observer| SchemeName::Squidmla.make(&ahead(seed), observer)),
    plain("packetizer", |seed, observer| SchemeName::Packetizer.make(&settings(seed), observer)),
    plain("squidm", |seed, observer| SchemeName::Squidm.make(&settings(seed), observer)),
    plain("squidmla", |seed, observer| SchemeName::Squidmla.make(&settings(seed), observer)),
    plain("stream", |seed, observer| SchemeName::Stream.make(&settings(seed), observer)),
    plain("stream-loc", |seed, observer| SchemeName::StreamLoc.make(&settings(seed), observer)),
    Subject {
        name: "stream-packetizer",
        scheme: |seed, observer| SchemeName::StreamPacketizer.make(&settings(seed), observer),
        capacity: SIZE,
        limits: LIMITS,
    },
    Subject {
        name: "ufs",
        scheme: |seed, observer| SchemeName::Ufs.make(&settings(seed), observer),
        capacity: SIZE,
        limits: LIMITS,
    },
    Subject {
        name: "ufs-round-robin",
        scheme: |seed, observer| {
            let (ufs_mapping, ufs_reclaim) = (UfsMapping::RoundRobin, UfsReclaim::EverySecond);
            let settings = SchemeSettings { ufs_mapping, ufs_reclaim, ..settings(seed) };
            SchemeName::Ufs.make(&settings, observer)
        },
        capacity: SIZE,
        limits: LIMITS,
    },
    plain("single-directory", |seed, observer| {
        SchemeName::SingleDirectory.make(&settings(seed), observer)
    }),
    plain("multiple-dirs", |seed, observer| {
        SchemeName::MultipleDirs.make(&settings(seed), observer)
    }),
    plain("squidl", |seed, observer| SchemeName::Squidl.make(&settings(seed), observer)),
    plain("aufs", |seed, observer| SchemeName::Aufs.make(&narrow(seed), observer)),
    plain("diskd", |seed, observer| SchemeName::Diskd.make(&narrow(seed), observer)),
    plain("ufs-clean-stop", |seed, observer| SchemeName::Ufs.make(&clean_stop(seed), observer)),
    plain("single-directory-clean-stop", |seed, observer| {
        SchemeName::SingleDirectory.make(&clean_stop(seed), observer)
    }),
    plain("multiple-dirs-clean-stop", |seed, observer| {
        SchemeName::MultipleDirs.make(&clean_stop(seed), observer)
    }),
    plain("squidl-clean-stop", |seed, observer| {
        SchemeName::Squidl.make(&clean_stop(seed), observer)
    }),
    plain("aufs-clean-stop", |seed, observer| SchemeName::Aufs.make(&clean_stop(seed), observer)),
    plain("diskd-clean-stop", |seed, observer| SchemeName::Diskd.make(&clean_stop(seed), observer)),
    plain("ufs-either-recovery", |seed, observer| {
        let recovery = [Recovery::AfterCrash, Recovery::AfterCleanStop][(seed % 2) as usize];
        SchemeName::Ufs.make(
            &SchemeSettings {
                store: StoreSettings { recovery, ..settings(seed).store },
                ..settings(seed)
            },
            observer,
        )
    }),
    plain("webcosm", |seed, observer| SchemeName::Webcosm.make(&noting(seed), observer)),
    plain("webcosm-held", |seed, observer| SchemeName::Webcosm.make(&holding(seed), observer)),
    Subject {
        name: "webcosm-wide",
        scheme: |seed, observer| {
            let wide = SchemeSettings {
                store: StoreSettings { size: WIDE, record_limit: 400, ..holding(seed).store },
                ..holding(seed)
            };
            SchemeName::Webcosm.make(&wide, observer)
        },
        capacity: SIZE,
        limits: Limits { disk_bytes: WIDE, buffer_bytes: 2 << 20, ..LIMITS },
    },
    Subject {
        name: "null",
        scheme: |_, observer| SchemeName::Null.make(&settings(0), observer),
        capacity: SIZE,
        limits: Limits { disk_bytes: 0, operations: 0, buffer_bytes: 0 },
    },
];

/// Size of a tested store in bytes: the smallest permitted size, so that schedules fill it soon.
const SIZE: u64 = MINIMUM_SIZE;

/// Size in bytes of a store that schedules seldom fill.
const WIDE: u64 = 4 * SIZE;

const LIMITS: Limits = Limits { disk_bytes: SIZE, operations: 256, buffer_bytes: 512 << 10 };

/// Returns settings with limits so small that schedules reach all of them. `seed` also selects the
/// replacement policy.
fn settings(seed: u64) -> SchemeSettings {
    SchemeSettings {
        policy: POLICIES[(seed % POLICIES.len() as u64) as usize].name,
        ..SchemeSettings::from(StoreSettings {
            page_buffer: 16 << 10,
            waiting_bytes: 128 << 10,
            waiting_reads: 16,
            record_limit: 48,
            object_limit: 64 << 10,
            seed,
            ..StoreSettings::with_size(SIZE)
        })
    }
}

/// Returns `settings` with a checkpoint (a copy of the index on disk) every second.
fn noting(seed: u64) -> SchemeSettings {
    SchemeSettings {
        store: StoreSettings {
            checkpoint_interval: Duration::from_secs(1),
            ..settings(seed).store
        },
        ..settings(seed)
    }
}

/// Returns the settings of `noting` with a write budget, a limit on the bytes written per day. With
/// a budget of 0 bytes, the storage scheme at once keeps new records only in memory. With 256 KiB,
/// it does so after some writes. `seed` selects the budget.
fn holding(seed: u64) -> SchemeSettings {
    let bytes_a_day = [0, 256 << 10][(seed / 2 % 2) as usize];
    let budget = WriteBudget { bytes_a_day, memory: 48 << 10, newcomers: Newcomers::All };
    SchemeSettings {
        store: StoreSettings { write_budget: Some(budget), ..noting(seed).store },
        ..noting(seed)
    }
}

/// Returns `settings` with a limit of six parallel operations. So the storage schemes `aufs` and
/// `diskd` often refuse to open a file.
fn narrow(seed: u64) -> SchemeSettings {
    SchemeSettings { aufs_queue: 6, diskd_q1: 6, ..settings(seed) }
}

/// Returns `settings` with prefetching: each read also reads up to 4 KiB of the records that follow
/// on disk.
fn ahead(seed: u64) -> SchemeSettings {
    SchemeSettings { prefetch: 4 << 10, ..settings(seed) }
}

fn clean_stop(seed: u64) -> SchemeSettings {
    SchemeSettings {
        store: StoreSettings { recovery: Recovery::AfterCleanStop, ..narrow(seed).store },
        ..narrow(seed)
    }
}

/// The canaries: one storage scheme without a flaw, and the flawed schemes that the tests must
/// catch.
pub const CANARIES: &[Subject] = &[
    canary("canary-honest", |_, _| Box::new(Slots::new(Flaw::None))),
    canary("canary-skips-checksum", |_, _| Box::new(Slots::new(Flaw::SkipsChecksum))),
    canary("canary-removes-without-sync", |_, _| Box::new(Slots::new(Flaw::RemovesWithoutSync))),
    canary("canary-checks-half-the-key", |_, _| Box::new(Slots::new(Flaw::ChecksHalfTheKey))),
    canary("canary-serves-previous", |_, _| Box::new(Slots::new(Flaw::ServesPrevious))),
    canary("canary-loses-answers", |_, _| Box::new(Slots::new(Flaw::LosesAnswers))),
    canary("canary-looks-away", |_, _| Box::new(Slots::new(Flaw::LooksAway))),
    canary("canary-looks-back", |_, _| Box::new(Slots::new(Flaw::LooksBack))),
    canary("canary-looks-once", |_, _| Box::new(Slots::new(Flaw::LooksOnce))),
    Subject {
        name: "canary-stream-packetizer-without-sync",
        scheme: |seed, observer| {
            Box::new(Unsynced(SchemeName::StreamPacketizer.make(&settings(seed), observer)))
        },
        capacity: SIZE,
        limits: LIMITS,
    },
    Subject {
        name: "canary-ufs-without-sync",
        scheme: |seed, observer| {
            Box::new(Unsynced(SchemeName::Ufs.make(&settings(seed), observer)))
        },
        capacity: SIZE,
        limits: LIMITS,
    },
    plain("canary-webcosm-without-sync", |seed, observer| {
        Box::new(Unsynced(SchemeName::Webcosm.make(&settings(seed), observer)))
    }),
    plain("canary-ufs-clean-stop-without-sync", |seed, observer| {
        Box::new(Unsynced(SchemeName::Ufs.make(&clean_stop(seed), observer)))
    }),
];

/// Returns all storage schemes and all canaries (test schemes with a known flaw).
pub fn all() -> impl Iterator<Item = &'static Subject> {
    SCHEMES.iter().chain(CANARIES)
}

/// Returns the storage scheme or canary (test scheme with a known flaw) called `name`.
pub fn find(name: &str) -> Option<&'static Subject> {
    all().find(|subject| subject.name == name)
}

const fn plain(name: &'static str, scheme: fn(u64, Observer) -> Box<dyn Scheme>) -> Subject {
    Subject { name, scheme, capacity: SIZE, limits: LIMITS }
}

const fn canary(name: &'static str, scheme: fn(u64, Observer) -> Box<dyn Scheme>) -> Subject {
    let capacity = Slots::CAPACITY;
    let limits = Limits { disk_bytes: capacity, operations: 1, buffer_bytes: 24 << 10 };
    Subject { name, scheme, capacity, limits }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn every_scheme_has_a_subject_of_its_name() {
        for row in foxy_schemes::SCHEMES {
            assert!(find(row.text).is_some(), "add a row for {} to SCHEMES", row.text);
        }
    }
}
