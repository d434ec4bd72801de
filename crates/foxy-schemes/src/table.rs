//! The table of storage schemes. A row contains a scheme's name, summary, control file (which
//! starts with the superblock), preferred device and constructor. A device performs the disk
//! operations of a store.

use crate::slotted::plan;
use crate::{PolicyName, SchemeName, SchemeSettings, slotted, stream_packetizer, ufs};
use foxy_store::layout::MAX_STORE_BYTES;
use foxy_store::{Observer, Scheme, null, webcosm};

/// The device for which a storage scheme was designed. Every scheme also works with the other
/// devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferredDevice {
    /// No preference: the store uses the fastest device of the machine.
    Any,
    /// A device that makes system calls, which block the store's thread.
    Blocking,
    /// A device that uses a pool of threads.
    Threads,
    /// A device that uses a separate process.
    Helper,
}

/// One row of the table of storage schemes.
pub struct SchemeRow {
    /// Identifies the storage scheme in code.
    pub name: SchemeName,
    /// Name of the storage scheme in settings and reports.
    pub text: &'static str,
    /// Short description of the storage scheme.
    pub summary: &'static str,
    /// The file in the store's folder that starts with the superblock. `None` if the storage scheme
    /// has no such file.
    pub control: Option<&'static str>,
    /// The device to use if the settings name no device.
    pub device: PreferredDevice,
    kind: Kind,
}

enum Kind {
    Null,
    Slotted(slotted::Plan),
    StreamPacketizer,
    Ufs(ufs::UfsPlan),
    Webcosm,
}

const fn slotted_row(
    name: SchemeName,
    summary: &'static str,
    control: &'static str,
    plan: slotted::Plan,
) -> SchemeRow {
    let (control, device) = (Some(control), PreferredDevice::Any);
    SchemeRow { name, text: plan.name, summary, control, device, kind: Kind::Slotted(plan) }
}

const fn ufs_row(
    name: SchemeName,
    text: &'static str,
    summary: &'static str,
    device: PreferredDevice,
    plan: ufs::UfsPlan,
) -> SchemeRow {
    let control = Some(ufs::LEDGER_NAME);
    SchemeRow { name, text, summary, control, device, kind: Kind::Ufs(plan) }
}

/// The table of all storage schemes.
pub const SCHEMES: &[SchemeRow] = &[
    ufs_row(
        SchemeName::Aufs,
        "aufs",
        "like ufs, with threads; opens no file while their queue is long, as Squid's aufs",
        PreferredDevice::Threads,
        ufs::AUFS,
    ),
    slotted_row(
        SchemeName::Buddy,
        "one file for each class of record sizes; keeps its content only after a clean stop",
        "buddy.foxy",
        plan::BUDDY,
    ),
    slotted_row(
        SchemeName::Coss,
        "1 MiB stripes, overwritten in turn, as Squid's coss; keeps its content only after a clean stop",
        "coss.foxy",
        plan::COSS,
    ),
    ufs_row(
        SchemeName::Diskd,
        "diskd",
        "like ufs, with a helper process and limits on its waiting operations, as Squid's diskd",
        PreferredDevice::Helper,
        ufs::DISKD,
    ),
    slotted_row(
        SchemeName::LazyReads,
        "like packetizer, but sorts reads in batches of ten",
        "lazy-reads.foxy",
        plan::LAZY_READS,
    ),
    slotted_row(
        SchemeName::LazyReadsLoc,
        "like lazy-reads, but groups writes by origin server",
        "lazy-reads-loc.foxy",
        plan::LAZY_READS_LOC,
    ),
    ufs_row(
        SchemeName::MultipleDirs,
        "multiple-dirs",
        "one file per record, one directory per origin server",
        PreferredDevice::Blocking,
        ufs::MULTIPLE_DIRS,
    ),
    SchemeRow {
        name: SchemeName::Null,
        text: "null",
        summary: "stores nothing; foxy caches only in memory",
        control: None,
        device: PreferredDevice::Any,
        kind: Kind::Null,
    },
    slotted_row(
        SchemeName::Packetizer,
        "like stream, but gathers records into whole pages",
        "packetizer.foxy",
        plan::PACKETIZER,
    ),
    ufs_row(
        SchemeName::SingleDirectory,
        "single-directory",
        "one file per record, all in one directory",
        PreferredDevice::Blocking,
        ufs::SINGLE_DIRECTORY,
    ),
    ufs_row(
        SchemeName::Squidl,
        "squidl",
        "like ufs, but with the files of an origin server in one directory",
        PreferredDevice::Blocking,
        ufs::SQUIDL,
    ),
    slotted_row(
        SchemeName::Squidm,
        "objects below 8 KiB in a mapped file, larger objects as ufs; keeps its content only after \
         a clean stop",
        "squidm.foxy",
        plan::SQUIDM,
    ),
    slotted_row(
        SchemeName::Squidmla,
        "like squidm, but groups small objects by origin server, within pages",
        "squidmla.foxy",
        plan::SQUIDMLA,
    ),
    slotted_row(
        SchemeName::Stream,
        "one file, written cyclically, one write per record; keeps its content only after a clean \
         stop",
        "stream.foxy",
        plan::STREAM,
    ),
    slotted_row(
        SchemeName::StreamLoc,
        "like packetizer, but groups writes by origin server",
        "stream-loc.foxy",
        plan::STREAM_LOC,
    ),
    SchemeRow {
        name: SchemeName::StreamPacketizer,
        text: "stream-packetizer",
        summary: "one preallocated file, written cyclically in large pieces",
        control: Some(stream_packetizer::FILE_NAME),
        device: PreferredDevice::Any,
        kind: Kind::StreamPacketizer,
    },
    ufs_row(
        SchemeName::Ufs,
        "ufs",
        "one file per record in 16 x 256 directories, as Squid's ufs",
        PreferredDevice::Blocking,
        ufs::UFS,
    ),
    SchemeRow {
        name: SchemeName::Webcosm,
        text: "webcosm",
        summary: "a log of segments, written in large pieces; about ten bytes of memory per \
                  record",
        control: Some(webcosm::FILE_NAME),
        device: PreferredDevice::Any,
        kind: Kind::Webcosm,
    },
];

impl SchemeRow {
    pub(crate) fn make(
        &self,
        settings: &SchemeSettings,
        observer: Observer,
    ) -> Box<dyn Scheme + Send> {
        match self.kind {
            Kind::Null => Box::new(null::Null::new(observer)),
            Kind::Slotted(plan) => Box::new(slotted::Slotted::new(plan, settings, observer)),
            Kind::StreamPacketizer => {
                Box::new(stream_packetizer::StreamPacketizer::new(settings, observer))
            }
            Kind::Ufs(plan) => Box::new(ufs::Ufs::new(plan, settings, observer)),
            Kind::Webcosm => webcosm::Webcosm::boxed(&settings.store, observer),
        }
    }

    /// Returns whether the store stays empty, so that the storage scheme needs no folder.
    pub fn stores_nothing(&self) -> bool {
        self.name == SchemeName::Null
    }

    /// Returns whether all records share the slots (512 bytes each) of one file. Only then can a
    /// report give the share of slots that contain live records.
    pub fn has_utilization(&self) -> bool {
        match self.kind {
            Kind::Slotted(plan) => plan.has_one_file(),
            Kind::StreamPacketizer => true,
            Kind::Null | Kind::Ufs(_) | Kind::Webcosm => false,
        }
    }

    /// Returns whether many records share a file, so that the storage scheme has a layout to show.
    pub fn has_layout(&self) -> bool {
        matches!(self.kind, Kind::Slotted(_) | Kind::StreamPacketizer | Kind::Webcosm)
    }

    /// Returns whether the storage scheme collects reads and starts them sorted by disk place.
    /// Other schemes start each read at once.
    pub fn batches_reads(&self) -> bool {
        matches!(&self.kind, Kind::Slotted(plan) if plan.reads == plan::ReadOrder::Batched)
    }

    /// Returns whether the storage scheme collects records in a buffer for each origin server.
    pub fn gathers_by_site(&self) -> bool {
        matches!(&self.kind, Kind::Slotted(plan) if plan.gathers_by_site())
    }

    /// Returns whether the storage scheme creates a file or folder of this name in the store's
    /// folder.
    pub fn owns(&self, name: &str) -> bool {
        match self.control {
            None => false,
            Some(ufs::LEDGER_NAME) => ufs::owns(name),
            Some(control) => name == control || name.strip_suffix(".d") == Some(self.text),
        }
    }

    /// Returns whether the storage scheme uses [`SchemeSettings::policy`]. Other schemes have a
    /// fixed order of eviction.
    pub fn takes_policy(&self) -> bool {
        self.grows() || self.name == SchemeName::StreamPacketizer
    }

    /// Returns the replacement policy that the storage scheme follows. `chosen` is the policy in the
    /// settings.
    pub fn policy(&self, chosen: PolicyName) -> PolicyName {
        match self.kind {
            Kind::StreamPacketizer | Kind::Ufs(_) => chosen,
            Kind::Null | Kind::Slotted(_) => PolicyName::Lru,
            Kind::Webcosm => PolicyName::Webcosm,
        }
    }

    /// Returns whether the store's disk space grows as it fills, with no preallocated file. The
    /// size in the settings of such a store can change without loss. After a change of the size,
    /// the other storage schemes except webcosm start with an empty store.
    pub fn grows(&self) -> bool {
        self.control == Some(ufs::LEDGER_NAME)
    }

    /// Returns whether the storage scheme can use a block device instead of a file.
    pub fn takes_block_devices(&self) -> bool {
        self.name == SchemeName::Webcosm
    }

    /// Returns the size in bytes of the largest object that fits in a store of `size` bytes.
    pub fn largest_object(&self, size: u64) -> u64 {
        match self.name {
            SchemeName::Null => 0,
            SchemeName::Webcosm => webcosm::largest_object(size),
            _ => size,
        }
    }

    /// Returns the largest store in bytes that the storage scheme supports.
    pub fn most_bytes(&self) -> u64 {
        match self.name {
            _ if self.grows() => u64::MAX,
            SchemeName::Webcosm => webcosm::MAX_STORE_BYTES,
            _ => MAX_STORE_BYTES,
        }
    }
}
