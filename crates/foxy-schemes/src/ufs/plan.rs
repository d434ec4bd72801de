//! What the schemes that keep a file for each record differ in, as values.

use super::mapping::Mapping;
use crate::SchemeSettings;

/// What decides in which directory a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePlacement {
    /// There is one only (R17).
    SingleDirectory,
    /// Its number, in two levels, by [`SchemeSettings::ufs_mapping`] (R18).
    TwoLevels,
    /// Its origin server, each of which has one (R19).
    DirectoryASite,
    /// A hash of its origin server, in two levels (R37).
    HashedSites,
}

impl FilePlacement {
    pub(super) const fn mapping(self, settings: &SchemeSettings) -> Mapping {
        match self {
            Self::SingleDirectory => Mapping::Single,
            Self::TwoLevels => Mapping::Levels(settings.ufs_mapping),
            Self::DirectoryASite => Mapping::Sites,
            Self::HashedSites => Mapping::HashedSites,
        }
    }
}

/// Until how many operations under way a scheme opens files. Above that a get is answered as absent
/// and a put refused, both as busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// Until as many gets wait as any scheme lets wait.
    Freely,
    /// [`SchemeSettings::aufs_queue`] (R63).
    WithinAufsQueue,
    /// [`SchemeSettings::diskd_q1`] (R64).
    WithinDiskdQ1,
}

impl Opens {
    pub(super) const fn limit(self, settings: &SchemeSettings) -> usize {
        match self {
            Self::Freely => usize::MAX,
            Self::WithinAufsQueue => settings.aufs_queue,
            Self::WithinDiskdQ1 => settings.diskd_q1,
        }
    }
}

/// One of these schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UfsPlan {
    /// Where files lie.
    pub placement: FilePlacement,
    /// While how much is under way files are opened.
    pub opens: Opens,
}

impl UfsPlan {
    const fn placed(placement: FilePlacement) -> Self {
        Self { placement, opens: Opens::Freely }
    }
}

/// All files in one directory (R17).
pub const SINGLE_DIRECTORY: UfsPlan = UfsPlan::placed(FilePlacement::SingleDirectory);
/// Squid's ufs (R58).
pub const UFS: UfsPlan = UfsPlan::placed(FilePlacement::TwoLevels);
/// A directory for each origin server (R19).
pub const MULTIPLE_DIRS: UfsPlan = UfsPlan::placed(FilePlacement::DirectoryASite);
/// Two levels, where files of one origin server share a directory (R37).
pub const SQUIDL: UfsPlan = UfsPlan::placed(FilePlacement::HashedSites);
/// Squid's aufs, on a device of threads (R59, R63).
pub const AUFS: UfsPlan =
    UfsPlan { placement: FilePlacement::TwoLevels, opens: Opens::WithinAufsQueue };
/// Squid's diskd, on a device in a process of its own (R60, R64).
pub const DISKD: UfsPlan =
    UfsPlan { placement: FilePlacement::TwoLevels, opens: Opens::WithinDiskdQ1 };
