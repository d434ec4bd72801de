//! Where the file of a number lies: one directory for all, 16 directories of 256 each, or a
//! directory for each origin server (R17-R19, R37). Names only, no IO.

use crate::UfsMapping;
use foxy_base::random::split_mix;
use foxy_device::StorePath;
use foxy_store::contract::Site;

/// Directories of the first level.
const FIRST_LEVEL: u32 = 16;
/// Directories in each of them.
const SECOND_LEVEL: u32 = 256;
/// The directory that holds all files of a store that has only one.
const SINGLE: &str = "files";
/// The directory that holds those of the origin servers.
const SITES: &str = "sites";

impl UfsMapping {
    /// The folder of the file of that number, below the one that has all of them.
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

/// What decides in which directory a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    /// There is one only (R17).
    Single,
    /// Its number (R18).
    Levels(UfsMapping),
    /// Its origin server, each of which has one (R19). They are made, never removed.
    Sites,
    /// A hash of its origin server, in two levels (R37, Maltzahn's SQUIDL).
    HashedSites,
}

/// A directory that holds files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directory {
    /// The one for all.
    Single,
    /// First and second level.
    Levels(u32, u32),
    /// That of an origin server.
    Site(u64),
}

/// A directory that holds directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    /// One of the first level.
    Level(u32),
    /// The one of the origin servers'.
    Sites,
}

/// What a name in the store's folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    Branch(Branch),
    Leaf(Directory),
}

/// A file of ours: what [`Mapping::place`] says of its record, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) directory: Directory,
    pub(super) number: u32,
}

impl Spot {
    pub(super) fn path(self) -> StorePath {
        StorePath::new(format!("{}/{:08X}", self.directory.path().as_str(), self.number))
    }
}

impl Mapping {
    /// What must be known of a record, besides its number, to find its file.
    pub(super) fn place(self, site: Site) -> u64 {
        match self {
            Self::Single | Self::Levels(_) => 0,
            Self::Sites => site.0,
            Self::HashedSites => {
                split_mix(&mut site.0.clone()) % u64::from(FIRST_LEVEL * SECOND_LEVEL)
            }
        }
    }

    /// Where the file lies.
    pub(super) fn spot(self, number: u32, place: u64) -> Spot {
        let directory = match self {
            Self::Single => Directory::Single,
            Self::Levels(levels) => levels.directory(number),
            Self::Sites => Directory::Site(place),
            Self::HashedSites => {
                let place = u32::try_from(place).unwrap_or(0) % (FIRST_LEVEL * SECOND_LEVEL);
                Directory::Levels(place / SECOND_LEVEL, place % SECOND_LEVEL)
            }
        };
        Spot { directory, number }
    }

    /// The place of a file that was found, if it may lie there.
    pub(super) fn place_of(self, spot: Spot) -> Option<u64> {
        match (self, spot.directory) {
            (Self::Single, Directory::Single) => Some(0),
            (Self::Levels(levels), directory) if levels.directory(spot.number) == directory => {
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

    /// The directories that must be there for it to be made, itself last.
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

    /// The directory of that name in this one.
    pub(super) fn leaf(self, name: &str) -> Option<Directory> {
        match self {
            Self::Level(first) => {
                level(name, SECOND_LEVEL).map(|second| Directory::Levels(first, second))
            }
            Self::Sites => hexadecimal(name, 16).map(Directory::Site),
        }
    }
}

/// What a directory of that name in the store's folder is, if it is of ours.
pub(super) fn top(name: &str) -> Option<Top> {
    match name {
        SINGLE => Some(Top::Leaf(Directory::Single)),
        SITES => Some(Top::Branch(Branch::Sites)),
        _ => level(name, FIRST_LEVEL).map(|first| Top::Branch(Branch::Level(first))),
    }
}

/// The number of a file of that name.
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
            assert_eq!(Mapping::Levels(mapping).spot(number, 0).path().as_str(), expected);
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
        let path = |mapping: Mapping, site| mapping.spot(7, mapping.place(Site(site))).path();
        assert_eq!(path(Mapping::Single, 1), path(Mapping::Single, 2));
        assert_eq!(path(Mapping::Single, 1).as_str(), "files/00000007");
        assert_eq!(path(Mapping::Sites, 0xAB).as_str(), "sites/00000000000000AB/00000007");
        assert_eq!(path(Mapping::HashedSites, 1), path(Mapping::HashedSites, 1));
        assert_ne!(path(Mapping::HashedSites, 1).parent(), path(Mapping::HashedSites, 2).parent());
    }

    #[test]
    fn what_was_written_is_found_by_walking_the_directories() {
        for mapping in MAPPINGS {
            let place = mapping.place(Site(0xFEDC_BA98_7654_3210));
            let spot = mapping.spot(0x00AB_CDEF, place);
            let path = spot.path();
            let names: Vec<_> = path.as_str().split('/').collect();
            let directory = match (top(names[0]), names.len()) {
                (Some(Top::Leaf(directory)), 2) => Some(directory),
                (Some(Top::Branch(branch)), 3) => {
                    assert_eq!(branch.path().as_str(), names[0]);
                    branch.leaf(names[1])
                }
                _ => None,
            };
            assert_eq!(directory, Some(spot.directory), "{mapping:?}");
            assert_eq!(names.last().and_then(|name| number(name)), Some(spot.number));
            assert_eq!(mapping.place_of(spot), Some(place));
            assert_eq!(spot.directory.chain().last(), Some(&path.parent()));
        }
    }

    #[test]
    fn names_of_others_and_files_of_other_mappings_are_told_apart() {
        for foreign in ["00abcdef", "ABCDEF", "00ABCDEF.tmp", "00ABCDE\u{e9}", "+0ABCDEF"] {
            assert_eq!(number(foreign), None, "{foreign}");
        }
        assert_eq!(
            (top("0F").is_some(), top("10").is_some(), top("lost+found").is_some()),
            (true, false, false)
        );
        for (at, mapping) in MAPPINGS.iter().enumerate() {
            let spot = mapping.spot(0x1234, mapping.place(Site(3)));
            for (other, another) in MAPPINGS.iter().enumerate() {
                let belongs = another.place_of(spot).is_some();
                let alike = *another == Mapping::HashedSites
                    && matches!(spot.directory, Directory::Levels(..));
                assert_eq!(belongs, at == other || alike, "{mapping:?} {another:?}");
            }
        }
    }
}
