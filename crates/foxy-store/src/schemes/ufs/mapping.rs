//! Where the file of a number lies (R18): sixteen directories of 256 directories each. Names only, no IO.

use foxy_device::StorePath;

/// Directories of the first level.
pub const FIRST_LEVEL: u32 = 16;
/// Directories in each of them.
pub const SECOND_LEVEL: u32 = 256;

/// How file numbers are spread over the directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UfsMapping {
    /// As Squid 1.1 did: the first level is the number modulo 16, neighbours lie in different directories.
    RoundRobin,
    /// As Squid does since 1998: 256 consecutive numbers share a directory.
    #[default]
    Consecutive,
}

impl UfsMapping {
    /// The directories of the first and second level.
    #[must_use]
    pub const fn directory(self, number: u32) -> (u32, u32) {
        match self {
            Self::RoundRobin => (number % FIRST_LEVEL, number / FIRST_LEVEL % SECOND_LEVEL),
            Self::Consecutive => {
                (number / SECOND_LEVEL / SECOND_LEVEL % FIRST_LEVEL, number / SECOND_LEVEL % SECOND_LEVEL)
            }
        }
    }

    /// Where the file lies.
    #[must_use]
    pub fn path(self, number: u32) -> StorePath {
        let (first, second) = self.directory(number);
        StorePath::new(format!("{first:02X}/{second:02X}/{number:08X}"))
    }

    /// Whether a file of that name in that directory is one of ours.
    #[must_use]
    pub fn number_of(self, first: u32, second: u32, name: &str) -> Option<u32> {
        let number = hexadecimal(name, 8)?;
        (self.directory(number) == (first, second)).then_some(number)
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::RoundRobin => Self::Consecutive,
            Self::Consecutive => Self::RoundRobin,
        }
    }
}

/// The path of a first-level directory.
#[must_use]
pub fn first_level(first: u32) -> StorePath {
    StorePath::new(format!("{first:02X}"))
}

/// The path of a second-level directory.
#[must_use]
pub fn second_level(first: u32, second: u32) -> StorePath {
    StorePath::new(format!("{first:02X}/{second:02X}"))
}

/// A directory's number from its name.
#[must_use]
pub fn directory_of(name: &str, count: u32) -> Option<u32> {
    hexadecimal(name, 2).filter(|&number| number < count)
}

fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let ours = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    if ours { u32::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squid_1_1_spreads_neighbours_and_its_successors_keep_them_together() {
        let check = |mapping: UfsMapping, number, expected: &str| {
            assert_eq!(mapping.path(number).as_str(), expected);
        };
        check(UfsMapping::RoundRobin, 0, "00/00/00000000");
        check(UfsMapping::RoundRobin, 0x1234, "04/23/00001234");
        check(UfsMapping::RoundRobin, 16 * 256, "00/00/00001000");
        check(UfsMapping::Consecutive, 255, "00/00/000000FF");
        check(UfsMapping::Consecutive, 0x1234, "00/12/00001234");
        check(UfsMapping::Consecutive, 0x12_3456, "02/34/00123456");
    }

    #[test]
    fn names_read_back_only_where_they_belong() {
        for mapping in [UfsMapping::RoundRobin, UfsMapping::Consecutive] {
            let (first, second) = mapping.directory(0x00AB_CDEF);
            assert_eq!(mapping.number_of(first, second, "00ABCDEF"), Some(0x00AB_CDEF));
            assert_eq!(mapping.number_of(first ^ 1, second, "00ABCDEF"), None);
            for foreign in ["00abcdef", "ABCDEF", "00ABCDEF.tmp", "00ABCDE\u{e9}", "+0ABCDEF"] {
                assert_eq!(mapping.number_of(first, second, foreign), None, "{foreign}");
            }
        }
        assert_eq!(directory_of("0F", FIRST_LEVEL), Some(15));
        assert_eq!(directory_of("10", FIRST_LEVEL), None);
    }
}
