//! The names of the storage schemes. The table [`crate::SCHEMES`] describes the schemes. A new
//! scheme needs its own files, a name here, and a row in that table.

use crate::{SCHEMES, SchemeRow, SchemeSettings};
use foxy_store::{Observer, Scheme};
use std::fmt;
use std::str::FromStr;

/// The name of a storage scheme in settings and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemeName {
    /// The storage scheme `Ufs` on a pool of threads, like Squid's aufs. It refuses requests that
    /// open files while the threads' queue is long.
    Aufs,
    /// One file for each record size, which contains the records of this size.
    Buddy,
    /// One file that is a ring of 1 MiB stripes, like Squid's coss. A new stripe overwrites the
    /// oldest.
    Coss,
    /// The storage scheme `Ufs` with a separate process for disk operations, like Squid's diskd. It
    /// refuses requests that open files while that process is busy.
    Diskd,
    /// The storage scheme `Packetizer`, but reads wait until several can start in the order of
    /// their disk places.
    LazyReads,
    /// The storage scheme `LazyReads`, but records of one origin server are written side by side.
    LazyReadsLoc,
    /// One file per record and one directory per origin server.
    MultipleDirs,
    /// The scheme stores nothing.
    Null,
    /// The storage scheme `Stream`, but contiguous records are collected and written as whole 8 KiB
    /// pages.
    Packetizer,
    /// One file per record. All files are in one directory.
    SingleDirectory,
    /// The storage scheme `Ufs`, but with all files of an origin server in one directory.
    Squidl,
    /// Small records share large files, which Squid-M maps into memory. Larger records have their
    /// own files, like `Ufs`.
    Squidm,
    /// The storage scheme `Squidm`, but with small records grouped by origin server. A small record
    /// lies within one page if a page has space for it.
    Squidmla,
    /// One file in which each record takes the next free slots (512 bytes each).
    Stream,
    /// The storage scheme `Packetizer`, but records of one origin server are written side by side.
    StreamLoc,
    /// One file, in which a page buffer collects records. Unlike `Packetizer`, the store recovers
    /// after a crash.
    StreamPacketizer,
    /// One file per record in two levels of directories, like Squid.
    Ufs,
    /// Foxy's own engine and the default storage scheme: a log of segments, to which records are
    /// appended.
    Webcosm,
}

impl SchemeName {
    /// Returns the row of this storage scheme in the table.
    pub fn row(self) -> &'static SchemeRow {
        SCHEMES
            .iter()
            .find(|row| row.name == self)
            .expect("every name has a row; a test holds this")
    }

    /// Creates a storage scheme. The scheme opens no file before [`Scheme::start`].
    pub fn make(self, settings: &SchemeSettings, observer: Observer) -> Box<dyn Scheme + Send> {
        observer.statistics.size_bytes.set(settings.store.size);
        self.row().make(settings, observer)
    }
}

impl fmt::Display for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().text)
    }
}

/// The error for a text that names no storage scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScheme(pub String);

impl fmt::Display for UnknownScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = SCHEMES.iter().map(|row| row.text).collect();
        write!(f, "there is no scheme {:?}; use one of: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownScheme {}

impl FromStr for SchemeName {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let row = SCHEMES.iter().find(|row| row.text == text);
        row.map(|row| row.name).ok_or_else(|| UnknownScheme(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_device::{Memory, StorePath};
    use foxy_store::testing::Store;
    use foxy_store::{OpenStoreError, StoreStatus};

    #[test]
    fn every_name_reads_back_as_itself() {
        for row in SCHEMES {
            assert_eq!(row.text.parse(), Ok(row.name));
            assert_eq!(row.name.to_string(), row.text);
        }
    }

    #[test]
    fn every_scheme_is_in_the_manual() {
        let manual = include_str!("../../../docs/store.md");
        for row in SCHEMES {
            assert!(
                manual.contains(&format!("`{}`", row.text)),
                "docs/store.md lacks {}",
                row.text
            );
        }
    }

    #[test]
    fn a_scheme_owns_its_entries_in_the_folder() {
        let check = |scheme: SchemeName, name, expected| {
            assert_eq!(scheme.row().owns(name), expected, "{scheme}: {name}");
        };
        check(SchemeName::StreamPacketizer, "stream-packetizer.foxy", true);
        check(SchemeName::StreamPacketizer, "buddy.d", false);
        check(SchemeName::Buddy, "buddy.foxy", true);
        check(SchemeName::Buddy, "buddy.d", true);
        check(SchemeName::Aufs, "0F", true);
        check(SchemeName::Aufs, "foxy-ufs-swap.state", true);
        check(SchemeName::Ufs, "diary", false);
        check(SchemeName::Null, "null.foxy", false);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "coffee".parse::<SchemeName>().expect_err("no such scheme");
        assert!(error.to_string().contains("null"), "{error}");
    }

    #[test]
    fn only_webcosm_takes_a_block_device() {
        for scheme in [SchemeName::StreamPacketizer, SchemeName::Coss, SchemeName::Ufs] {
            let mut device = Memory::default();
            let control = StorePath::new(scheme.row().control.expect("a file"));
            device.add_block_device(control, 4 << 20);
            let settings = SchemeSettings::with_size(4 << 20);
            let store = Store::open(|observer| scheme.make(&settings, observer), device);
            let status = store.observer.status.get();
            assert_eq!(status, StoreStatus::Unusable(OpenStoreError::NotAFile), "{scheme}");
        }
    }
}
