//! The table of schemes: name, summary, control file, device and constructor.

use crate::{SchemeName, SchemeSettings, slotted, stream_packetizer, ufs};
use foxy_store::layout::MAX_STORE_BYTES;
use foxy_store::{Observer, Scheme, null, webcosm};

/// The device that a scheme is meant for; every other device works too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferredDevice {
    /// The fastest device.
    Any,
    /// System calls that block the store's thread.
    Blocking,
    /// A pool of threads.
    Threads,
    /// A separate process.
    Helper,
}

/// One row of the table.
pub struct SchemeRow {
    /// Name as a value.
    pub name: SchemeName,
    /// Name as text.
    pub text: &'static str,
    /// Short description.
    pub summary: &'static str,
    /// The file in the store's folder that begins with the superblock, if the scheme has one.
    pub control: Option<&'static str>,
    /// The device when the user names none.
    pub device: PreferredDevice,
    pub(super) make: fn(&SchemeSettings, Observer) -> Box<dyn Scheme + Send>,
}

/// All schemes.
pub const SCHEMES: &[SchemeRow] = &[
    SchemeRow {
        name: SchemeName::Aufs,
        text: "aufs",
        summary: "ufs by threads: what is asked while their queue is long is not opened, as Squid's aufs",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Threads,
        make: |settings, observer| Box::new(ufs::Ufs::new(ufs::AUFS, settings, observer)),
    },
    SchemeRow {
        name: SchemeName::Buddy,
        text: "buddy",
        summary: "a file for each size of records; only a clean stop is recovered from",
        control: Some("buddy.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::BUDDY, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Coss,
        text: "coss",
        summary: "a ring of 1 MiB stripes, as Squid's coss; only a clean stop is recovered from",
        control: Some("coss.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::COSS, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Diskd,
        text: "diskd",
        summary: "ufs by a process beside the proxy, with limits on what it is asked at once, as Squid's diskd",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Helper,
        make: |settings, observer| Box::new(ufs::Ufs::new(ufs::DISKD, settings, observer)),
    },
    SchemeRow {
        name: SchemeName::LazyReads,
        text: "lazy-reads",
        summary: "packetizer, reads gathered by ten and sorted",
        control: Some("lazy-reads.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::LAZY_READS, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::LazyReadsLoc,
        text: "lazy-reads-loc",
        summary: "lazy-reads, writes gathered by origin server",
        control: Some("lazy-reads-loc.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::LAZY_READS_LOC, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::MultipleDirs,
        text: "multiple-dirs",
        summary: "one file a record, a directory for each origin server",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Blocking,
        make: |settings, observer| Box::new(ufs::Ufs::new(ufs::MULTIPLE_DIRS, settings, observer)),
    },
    SchemeRow {
        name: SchemeName::Null,
        text: "null",
        summary: "stores nothing; only the memory tier caches",
        control: None,
        device: PreferredDevice::Any,
        make: |_, observer| Box::new(null::Null::new(observer)),
    },
    SchemeRow {
        name: SchemeName::Packetizer,
        text: "packetizer",
        summary: "stream, contiguous records gathered into pages",
        control: Some("packetizer.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::PACKETIZER, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::SingleDirectory,
        text: "single-directory",
        summary: "one file a record, all in one directory",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Blocking,
        make: |settings, observer| {
            Box::new(ufs::Ufs::new(ufs::SINGLE_DIRECTORY, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Squidl,
        text: "squidl",
        summary: "ufs, the files of one origin server in one directory",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Blocking,
        make: |settings, observer| Box::new(ufs::Ufs::new(ufs::SQUIDL, settings, observer)),
    },
    SchemeRow {
        name: SchemeName::Squidm,
        text: "squidm",
        summary: "objects below 8 KiB in a mapped file, larger ones in files as ufs; only a clean stop is recovered from",
        control: Some("squidm.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::SQUIDM, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Squidmla,
        text: "squidmla",
        summary: "squidm, small objects gathered by origin server and kept within pages",
        control: Some("squidmla.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::SQUIDMLA, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Stream,
        text: "stream",
        summary: "one file, written cyclically, a write a record; only a clean stop is recovered from",
        control: Some("stream.foxy"),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(slotted::Slotted::new(slotted::STREAM, settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::StreamPacketizer,
        text: "stream-packetizer",
        summary: "one preallocated file, written cyclically in large pieces",
        control: Some(stream_packetizer::FILE_NAME),
        device: PreferredDevice::Any,
        make: |settings, observer| {
            Box::new(stream_packetizer::StreamPacketizer::new(settings, observer))
        },
    },
    SchemeRow {
        name: SchemeName::Ufs,
        text: "ufs",
        summary: "one file a record in 16 x 256 directories, as Squid does",
        control: Some(ufs::LEDGER_NAME),
        device: PreferredDevice::Blocking,
        make: |settings, observer| Box::new(ufs::Ufs::new(ufs::UFS, settings, observer)),
    },
    SchemeRow {
        name: SchemeName::Webcosm,
        text: "webcosm",
        summary: "a log of segments, about ten bytes of memory a record, written in large pieces",
        control: Some(webcosm::FILE_NAME),
        device: PreferredDevice::Any,
        make: |settings, observer| webcosm::Webcosm::boxed(&settings.store, observer),
    },
];

impl SchemeRow {
    /// Whether the scheme creates an entry of this name in the store's folder.
    pub fn owns(&self, name: &str) -> bool {
        match self.control {
            None => false,
            Some(ufs::LEDGER_NAME) => ufs::owns(name),
            Some(control) => name == control || name.strip_suffix(".d") == Some(self.text),
        }
    }

    /// Whether the scheme uses [`SchemeSettings::policy`]; the others have their own order.
    pub fn takes_policy(&self) -> bool {
        self.grows() || self.name == SchemeName::StreamPacketizer
    }

    /// Whether the store grows as it fills, so that any other size is as good. Of the other schemes
    /// only webcosm keeps fitting records when its size changes.
    pub fn grows(&self) -> bool {
        self.control == Some(ufs::LEDGER_NAME)
    }

    /// Whether the scheme can use a block device in place of its file.
    pub fn takes_block_devices(&self) -> bool {
        self.name == SchemeName::Webcosm
    }

    /// Bytes of the largest object in a store of `size` bytes.
    pub fn largest_object(&self, size: u64) -> u64 {
        match self.name {
            SchemeName::Null => 0,
            SchemeName::Webcosm => webcosm::largest_object(size),
            _ => size,
        }
    }

    /// Most bytes of disk that the scheme can use.
    pub fn most_bytes(&self) -> u64 {
        match self.name {
            _ if self.grows() => u64::MAX,
            SchemeName::Webcosm => webcosm::MAX_STORE_BYTES,
            _ => MAX_STORE_BYTES,
        }
    }
}
