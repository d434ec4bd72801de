//! The plans, which define the ufs storage schemes, and the locations of files. A mapping selects
//! the directory of a file: one directory for all files, one of 16 × 256 directories, or one
//! directory per origin server.

use crate::{SchemeSettings, UfsMapping};
use foxy_base::random::split_mix;
use foxy_device::StorePath;
use foxy_store::contract::Site;

/// Number of first-level directories, as in Squid.
const FIRST_LEVEL: u32 = 16;
/// Number of directories in each first-level directory, as in Squid.
const SECOND_LEVEL: u32 = 256;
/// The directory of a store that has only one directory.
const SINGLE: &str = "files";
/// The directory that contains one directory per origin server.
const SITES: &str = "sites";

impl UfsMapping {
    /// Returns the folder of a file, relative to the store's folder.
    pub(crate) fn folder(self, number: u32) -> StorePath {
        self.directory(number).path()
    }

    const fn directory(self, number: u32) -> Directory {
        match self {
            Self::RoundRobin => {
                Directory::Levels(number % FIRST_LEVEL, number / FIRST_LEVEL % SECOND_LEVEL)
            }
            Self::Consecutive => Directory::Levels(
                number / SECOND_LEVEL / SECOND_LEVEL % FIRST_LEVEL,
                number / SECOND_LEVEL % SECOND_LEVEL,
            ),
        }
    }
}

/// The rule that selects the directory of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// All files are in one directory.
    Single,
    /// The file number selects a directory in two levels.
    Levels(UfsMapping),
    /// Each origin server has a directory, which is never removed.
    Sites,
    /// A hash of the origin server selects a directory in two levels (the storage scheme SQUIDL of
    /// Maltzahn, Richardson and Grunwald, USENIX 1999).
    HashedSites,
}

/// A directory that contains files of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directory {
    Single,
    /// The numbers of the first-level and the second-level directory.
    Levels(u32, u32),
    /// The directory of an origin server.
    Site(u64),
}

/// A directory that contains directories of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    /// A first-level directory.
    Level(u32),
    /// The directory that contains the directories of all origin servers.
    Sites,
}

/// An entry of the store's folder: a directory with directories, or one with files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopEntry {
    Branch(Branch),
    Leaf(Directory),
}

/// The directory and the file number, which is also the name, of a record's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileLocation {
    pub(super) directory: Directory,
    pub(super) number: u32,
}

impl FileLocation {
    pub(super) fn path(self) -> StorePath {
        StorePath::new(format!("{}/{:08X}", self.directory.path().as_str(), self.number))
    }
}

impl Mapping {
    /// Returns the part of a file's location that does not follow from its file number: the number
    /// of its origin server's directory. It is 0 if the mapping has no such directories.
    pub(super) fn place(self, site: Site) -> u64 {
        match self {
            Self::Single | Self::Levels(_) => 0,
            Self::Sites => site.0,
            Self::HashedSites => {
                split_mix(&mut site.0.clone()) % u64::from(FIRST_LEVEL * SECOND_LEVEL)
            }
        }
    }

    pub(super) fn location(self, number: u32, place: u64) -> FileLocation {
        let directory = match self {
            Self::Single => Directory::Single,
            Self::Levels(levels) => levels.directory(number),
            Self::Sites => Directory::Site(place),
            Self::HashedSites => {
                let place = u32::try_from(place).unwrap_or(0) % (FIRST_LEVEL * SECOND_LEVEL);
                Directory::Levels(place / SECOND_LEVEL, place % SECOND_LEVEL)
            }
        };
        FileLocation { directory, number }
    }

    /// Returns the value of [`Self::place`] for a file that was found on disk. Returns `None` if
    /// this mapping never puts a file there.
    pub(super) fn place_of(self, location: FileLocation) -> Option<u64> {
        match (self, location.directory) {
            (Self::Single, Directory::Single) => Some(0),
            (Self::Levels(levels), directory) if levels.directory(location.number) == directory => {
                Some(0)
            }
            (Self::Sites, Directory::Site(site)) => Some(site),
            (Self::HashedSites, Directory::Levels(first, second)) => {
                Some(u64::from(first * SECOND_LEVEL + second))
            }
            _ => None,
        }
    }
}

impl Directory {
    pub(super) fn path(self) -> StorePath {
        match self {
            Self::Single => StorePath::new(SINGLE),
            Self::Levels(first, second) => StorePath::new(format!("{first:02X}/{second:02X}")),
            Self::Site(site) => StorePath::new(format!("{SITES}/{site:016X}")),
        }
    }

    /// Returns the paths to create for this directory: first its parent directory, if any.
    pub(super) fn chain(self) -> Vec<StorePath> {
        let (parent, own) = (self.path().parent(), self.path());
        if parent == StorePath::root() { vec![own] } else { vec![parent, own] }
    }
}

impl Branch {
    pub(super) fn path(self) -> StorePath {
        match self {
            Self::Level(first) => StorePath::new(format!("{first:02X}")),
            Self::Sites => StorePath::new(SITES),
        }
    }

    pub(super) fn leaf(self, name: &str) -> Option<Directory> {
        match self {
            Self::Level(first) => {
                level(name, SECOND_LEVEL).map(|second| Directory::Levels(first, second))
            }
            Self::Sites => hexadecimal(name, 16).map(Directory::Site),
        }
    }
}

/// Returns the kind of an entry of the store's folder, judged by its name. Returns `None` if the
/// entry belongs to another program.
pub(super) fn top_entry(name: &str) -> Option<TopEntry> {
    match name {
        SINGLE => Some(TopEntry::Leaf(Directory::Single)),
        SITES => Some(TopEntry::Branch(Branch::Sites)),
        _ => level(name, FIRST_LEVEL).map(|first| TopEntry::Branch(Branch::Level(first))),
    }
}

/// Returns the file number that a file name contains, or `None` if it is not the name of a record's
/// file.
pub(super) fn number(name: &str) -> Option<u32> {
    u32::try_from(hexadecimal(name, 8)?).ok()
}

fn level(name: &str, count: u32) -> Option<u32> {
    u32::try_from(hexadecimal(name, 2)?).ok().filter(|&level| level < count)
}

fn hexadecimal(text: &str, digits: usize) -> Option<u64> {
    let ours = text.len() == digits
        && text.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    if ours { u64::from_str_radix(text, 16).ok() } else { None }
}

/// The definition of a ufs storage scheme.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UfsPlan {
    mapping: Mapping,
    max_operations: fn(&SchemeSettings) -> usize,
}

impl UfsPlan {
    const fn new(mapping: Mapping) -> Self {
        Self { mapping, max_operations: |_| usize::MAX }
    }

    /// Returns the mapping of this plan. For a mapping with two levels of directories,
    /// [`SchemeSettings::ufs_mapping`] selects the rule.
    pub(super) const fn mapping(self, settings: &SchemeSettings) -> Mapping {
        match self.mapping {
            Mapping::Levels(_) => Mapping::Levels(settings.ufs_mapping),
            mapping => mapping,
        }
    }

    /// Returns the number of disk operations in flight at which the store opens no more files. It
    /// then refuses `get` and `put` requests as busy.
    pub(super) fn max_operations(self, settings: &SchemeSettings) -> usize {
        (self.max_operations)(settings)
    }
}

/// The storage scheme that keeps all files in one directory.
pub(crate) const SINGLE_DIRECTORY: UfsPlan = UfsPlan::new(Mapping::Single);
/// The storage scheme of Squid's ufs: two levels of directories.
pub(crate) const UFS: UfsPlan = UfsPlan::new(Mapping::Levels(UfsMapping::Consecutive));
/// The storage scheme with one directory per origin server.
pub(crate) const MULTIPLE_DIRS: UfsPlan = UfsPlan::new(Mapping::Sites);
/// Maltzahn's SQUIDL: two levels of directories. All files of an origin server share a directory.
pub(crate) const SQUIDL: UfsPlan = UfsPlan::new(Mapping::HashedSites);
/// Squid's aufs, which performs its disk operations in a pool of threads.
pub(crate) const AUFS: UfsPlan = UfsPlan { max_operations: |settings| settings.aufs_queue, ..UFS };
/// Squid's diskd, which performs its disk operations in a separate process.
pub(crate) const DISKD: UfsPlan = UfsPlan { max_operations: |settings| settings.diskd_q1, ..UFS };

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPINGS: [Mapping; 5] = [
        Mapping::Single,
        Mapping::Levels(UfsMapping::RoundRobin),
        Mapping::Levels(UfsMapping::Consecutive),
        Mapping::Sites,
        Mapping::HashedSites,
    ];

    #[test]
    fn squid_1_1_spreads_neighbours_and_its_successors_keep_them_together() {
        let check = |mapping, number, expected: &str| {
            assert_eq!(Mapping::Levels(mapping).location(number, 0).path().as_str(), expected);
        };
        check(UfsMapping::RoundRobin, 0, "00/00/00000000");
        check(UfsMapping::RoundRobin, 0x1234, "04/23/00001234");
        check(UfsMapping::RoundRobin, 16 * 256, "00/00/00001000");
        check(UfsMapping::Consecutive, 255, "00/00/000000FF");
        check(UfsMapping::Consecutive, 0x1234, "00/12/00001234");
        check(UfsMapping::Consecutive, 0x12_3456, "02/34/00123456");
    }

    #[test]
    fn records_of_one_server_share_a_directory() {
        let path = |mapping: Mapping, site| mapping.location(7, mapping.place(Site(site))).path();
        assert_eq!(path(Mapping::Single, 1), path(Mapping::Single, 2));
        assert_eq!(path(Mapping::Single, 1).as_str(), "files/00000007");
        assert_eq!(path(Mapping::Sites, 0xAB).as_str(), "sites/00000000000000AB/00000007");
        assert_eq!(path(Mapping::HashedSites, 1), path(Mapping::HashedSites, 1));
        assert_ne!(path(Mapping::HashedSites, 1).parent(), path(Mapping::HashedSites, 2).parent());
    }

    #[test]
    fn written_files_are_found_by_walking_the_directories() {
        for mapping in MAPPINGS {
            let place = mapping.place(Site(0xFEDC_BA98_7654_3210));
            let location = mapping.location(0x00AB_CDEF, place);
            let path = location.path();
            let names: Vec<_> = path.as_str().split('/').collect();
            let directory = match (top_entry(names[0]), names.len()) {
                (Some(TopEntry::Leaf(directory)), 2) => Some(directory),
                (Some(TopEntry::Branch(branch)), 3) => {
                    assert_eq!(branch.path().as_str(), names[0]);
                    branch.leaf(names[1])
                }
                _ => None,
            };
            assert_eq!(directory, Some(location.directory), "{mapping:?}");
            assert_eq!(names.last().and_then(|name| number(name)), Some(location.number));
            assert_eq!(mapping.place_of(location), Some(place));
            assert_eq!(location.directory.chain().last(), Some(&path.parent()));
        }
    }

    #[test]
    fn names_of_others_and_files_of_other_mappings_are_told_apart() {
        for foreign in ["00abcdef", "ABCDEF", "00ABCDEF.tmp", "00ABCDE\u{e9}", "+0ABCDEF"] {
            assert_eq!(number(foreign), None, "{foreign}");
        }
        assert_eq!(
            (
                top_entry("0F").is_some(),
                top_entry("10").is_some(),
                top_entry("lost+found").is_some()
            ),
            (true, false, false)
        );
        for (at, mapping) in MAPPINGS.iter().enumerate() {
            let location = mapping.location(0x1234, mapping.place(Site(3)));
            for (other, another) in MAPPINGS.iter().enumerate() {
                let belongs = another.place_of(location).is_some();
                let alike = *another == Mapping::HashedSites
                    && matches!(location.directory, Directory::Levels(..));
                assert_eq!(belongs, at == other || alike, "{mapping:?} {another:?}");
            }
        }
    }
}
