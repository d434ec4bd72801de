//! Purges as bytes: blocks that are appended to a file, each written twice, so that one damaged copy costs nothing.
//! A torn tail was never acknowledged; damage before it is a doubt about everything. What reads and writes the file is
//! not here.

use crate::purge::rule::{Order, Rule, Scope, Strength};
use foxy_base::WallTime;
use foxy_store::{Key, Site};
use std::fmt;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of one copy of a block.
const PAGE: usize = 4096;
/// Bytes a block takes, both copies.
pub const BLOCK_BYTES: usize = 2 * PAGE;
/// checksum 8, magic 8, era 8, latest 8, number 4, count 4
const HEADER: usize = 40;
/// scope 1, strength 1, length 2, nothing 4, moment 8, at 8, name 16, site 8
const ENTRY: usize = 48;
/// Rules that fit one block.
const BLOCK_RULES: usize = (PAGE - HEADER) / ENTRY;
const MAGIC: &[u8; 8] = b"foxypur1";

/// What a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Which series of purges it belongs to. Random; what was stored under another has outlived purges nobody knows.
    pub era: u64,
    /// The number of the last purge.
    pub latest: u64,
    /// The rules, in the order they were written.
    pub rules: Vec<Rule>,
}

/// Why a journal cannot be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreliable {
    /// It has no readable beginning.
    NoBeginning,
    /// A block before the last cannot be read.
    Damaged,
    /// A rule is of a kind this version does not know.
    Unknown,
}

impl fmt::Display for Unreliable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBeginning => "its beginning cannot be read",
            Self::Damaged => "a block in its middle cannot be read",
            Self::Unknown => "it has rules this version of foxy does not know",
        })
    }
}

/// Blocks `first…` of a journal with these rules; one block where there are none. Gives the number after the last.
pub fn append(out: &mut Vec<u8>, first: u32, era: u64, latest: u64, rules: &[Rule]) -> u32 {
    let mut number = first;
    let mut rest = rules;
    loop {
        let (part, more) = rest.split_at(rest.len().min(BLOCK_RULES));
        let page = block(number, era, latest, part);
        out.extend_from_slice(&page);
        out.extend_from_slice(&page);
        number += 1;
        rest = more;
        if rest.is_empty() {
            return number;
        }
    }
}

fn block(number: u32, era: u64, latest: u64, rules: &[Rule]) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    page[8..16].copy_from_slice(MAGIC);
    page[16..24].copy_from_slice(&era.to_le_bytes());
    page[24..32].copy_from_slice(&latest.to_le_bytes());
    page[32..36].copy_from_slice(&number.to_le_bytes());
    page[36..40].copy_from_slice(&u32::try_from(rules.len()).expect("at most BLOCK_RULES").to_le_bytes());
    for (rule, place) in rules.iter().zip(page[HEADER..].chunks_exact_mut(ENTRY)) {
        put(rule, place);
    }
    let checksum = checksum(&page);
    page[..8].copy_from_slice(&checksum.to_le_bytes());
    page
}

fn checksum(page: &[u8]) -> u64 {
    xxh3_64_with_seed(&page[8..], u64::from_le_bytes(*MAGIC))
}

fn put(rule: &Rule, out: &mut [u8]) {
    let (kind, length, name, site) = match rule.order.scope {
        Scope::Url { key, site } => (1, 0, key.0, site.0),
        Scope::Tag(tag) => (2, 0, tag.to_le_bytes(), 0),
        Scope::Prefix { length, hash, site } => (3, length, hash.to_le_bytes(), site.0),
        Scope::Site(site) => (4, 0, [0; 16], site.0),
        Scope::All => (5, 0, [0; 16], 0),
    };
    out[0] = kind;
    out[1] = match rule.order.strength {
        Strength::Soft => 1,
        Strength::Hard => 2,
    };
    out[2..4].copy_from_slice(&length.to_le_bytes());
    out[8..16].copy_from_slice(&rule.moment.to_le_bytes());
    out[16..24].copy_from_slice(&rule.order.at.0.to_le_bytes());
    out[24..40].copy_from_slice(&name);
    out[40..48].copy_from_slice(&site.to_le_bytes());
}

fn take(entry: &[u8]) -> Option<Rule> {
    let number = |from: usize| Some(u64::from_le_bytes(entry.get(from..from + 8)?.try_into().ok()?));
    let name: [u8; 16] = entry.get(24..40)?.try_into().ok()?;
    let site = Site(number(40)?);
    let scope = match entry.first()? {
        1 => Scope::Url { key: Key(name), site },
        2 => Scope::Tag(u128::from_le_bytes(name)),
        3 => {
            let length = u16::from_le_bytes(entry.get(2..4)?.try_into().ok()?);
            Scope::Prefix { length, hash: u128::from_le_bytes(name), site }
        }
        4 => Scope::Site(site),
        5 => Scope::All,
        _ => return None,
    };
    let strength = match entry.get(1)? {
        1 => Strength::Soft,
        2 => Strength::Hard,
        _ => return None,
    };
    Some(Rule { order: Order { scope, strength, at: WallTime(number(16)?) }, moment: number(8)? })
}

/// One sound copy of a block.
struct Sound<'a> {
    era: u64,
    latest: u64,
    entries: std::slice::ChunksExact<'a, u8>,
    count: usize,
}

fn sound(page: &[u8], number: u32) -> Option<Sound<'_>> {
    let field = |from: usize| Some(u64::from_le_bytes(page.get(from..from + 8)?.try_into().ok()?));
    let small = |from: usize| Some(u32::from_le_bytes(page.get(from..from + 4)?.try_into().ok()?));
    let whole = page.len() == PAGE && field(0)? == checksum(page) && page.get(8..16)? == MAGIC;
    let count = small(36)? as usize;
    (whole && small(32)? == number && count <= BLOCK_RULES).then_some(())?;
    Some(Sound { era: field(16)?, latest: field(24)?, entries: page[HEADER..].chunks_exact(ENTRY), count })
}

/// Reads a journal.
///
/// # Errors
/// [`Unreliable`]: an acknowledged purge may be missing.
pub fn read(bytes: &[u8]) -> Result<Journal, Unreliable> {
    let mut journal: Option<Journal> = None;
    let mut hole = false;
    for (number, pair) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
        let (one, other) = pair.split_at(pair.len().min(PAGE));
        let Some(block) = sound(one, number).or_else(|| sound(other, number)) else {
            hole = true;
            continue;
        };
        if hole {
            return Err(if journal.is_some() { Unreliable::Damaged } else { Unreliable::NoBeginning });
        }
        let found = journal.get_or_insert(Journal { era: block.era, latest: 0, rules: Vec::new() });
        if found.era != block.era {
            return Err(Unreliable::Damaged);
        }
        found.latest = found.latest.max(block.latest);
        for entry in block.entries.take(block.count) {
            found.rules.push(take(entry).ok_or(Unreliable::Unknown)?);
        }
    }
    journal.ok_or(Unreliable::NoBeginning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purge::rule::Named;

    fn rules(count: u64) -> Vec<Rule> {
        let names = [
            (Named::Url, "http://a.test/x"),
            (Named::Tag, "red"),
            (Named::Prefix, "http://a.test/"),
            (Named::Site, "http://a.test"),
        ];
        (1..=count)
            .map(|moment| {
                let (named, name) = names[usize::try_from(moment % 4).expect("small")];
                let scope = match moment % 5 {
                    0 => Scope::All,
                    _ => named.scopes(name).expect("a name")[0],
                };
                let strength = if moment % 3 == 0 { Strength::Hard } else { Strength::Soft };
                Rule { order: Order { scope, strength, at: WallTime(moment * 9) }, moment }
            })
            .collect()
    }

    /// A journal of a beginning and one block for each half of the rules.
    fn journal(rules: &[Rule]) -> Vec<u8> {
        let mut out = Vec::new();
        let next = append(&mut out, 0, 77, 0, &[]);
        let (first, second) = rules.split_at(rules.len() / 2);
        let next = append(&mut out, next, 77, first.len() as u64, first);
        append(&mut out, next, 77, rules.len() as u64, second);
        out
    }

    #[test]
    fn what_was_written_is_read_back() {
        for count in [0, 1, 2, 20, 400] {
            let rules = rules(count);
            assert_eq!(read(&journal(&rules)), Ok(Journal { era: 77, latest: count, rules }));
        }
    }

    #[test]
    fn one_damaged_copy_of_each_block_costs_nothing() {
        let rules = rules(300);
        let mut bytes = journal(&rules);
        for (block, at) in (0..bytes.len() / BLOCK_BYTES).zip([7, 4100, 40, 8191, 30, 2000]) {
            bytes[block * BLOCK_BYTES + at] ^= 0x10;
        }
        assert_eq!(read(&bytes).map(|journal| journal.rules), Ok(rules));
    }

    #[test]
    fn a_tail_torn_anywhere_loses_only_the_block_that_was_being_written() {
        let rules = rules(8);
        let bytes = journal(&rules);
        let whole = bytes.len() - BLOCK_BYTES;
        for length in whole..bytes.len() {
            let expected = if length < whole + PAGE { &rules[..4] } else { &rules[..] };
            let found = read(&bytes[..length]).expect("reliable");
            assert_eq!((found.rules.as_slice(), found.era), (expected, 77), "cut at {length}");
        }
        let mut zeros = bytes[..whole].to_vec();
        zeros.resize(bytes.len(), 0);
        assert_eq!(read(&zeros).map(|journal| journal.latest), Ok(4));
    }

    #[test]
    fn damage_before_the_tail_is_a_doubt_about_everything() {
        let mut bytes = journal(&rules(8));
        bytes[BLOCK_BYTES + 50] ^= 1;
        bytes[BLOCK_BYTES + PAGE + 60] ^= 1;
        assert_eq!(read(&bytes), Err(Unreliable::Damaged));
        let mut headless = journal(&rules(8));
        headless[..BLOCK_BYTES].fill(0);
        assert_eq!(read(&headless), Err(Unreliable::NoBeginning));
        assert_eq!(read(b""), Err(Unreliable::NoBeginning));
        assert_eq!(read(&vec![0x5a; 3 * BLOCK_BYTES]), Err(Unreliable::NoBeginning));
    }

    #[test]
    fn blocks_of_two_journals_do_not_make_one() {
        let mut bytes = Vec::new();
        let next = append(&mut bytes, 0, 77, 0, &[]);
        append(&mut bytes, next, 78, 1, &rules(1));
        assert_eq!(read(&bytes), Err(Unreliable::Damaged));
    }

    #[test]
    fn a_rule_of_an_unknown_kind_is_not_passed_over() {
        let mut bytes = journal(&rules(2));
        for copy in [0, PAGE] {
            let page = &mut bytes[BLOCK_BYTES + copy..BLOCK_BYTES + copy + PAGE];
            page[HEADER] = 99;
            let sum = checksum(page);
            page[..8].copy_from_slice(&sum.to_le_bytes());
        }
        assert_eq!(read(&bytes), Err(Unreliable::Unknown));
    }
}
