//! Encodes and decodes the purge journal, the file that makes purges survive a restart. Each block
//! is appended to the file twice, so that damage to one copy loses nothing. An incomplete block at
//! the end of the file belongs to purges that were never acknowledged, so the reader ignores it.
//! Damage before the end may have lost purges. In that case, the whole cache is unusable.

use crate::cache::purge::rule::{Order, Rule, Scope, Strength};
use foxy_base::WallTime;
use foxy_store::{Key, Site};
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Size in bytes of one copy of a block.
const PAGE_BYTES: usize = 4096;
/// Size in bytes of a block with both copies.
pub const BLOCK_BYTES: usize = 2 * PAGE_BYTES;
/// Size in bytes of a block's header. The fields of the header in order, with their sizes in bytes:
/// checksum 8, magic 8, era 8, latest 8, block number 4, count of rules 4, set 8, place 8. `latest`
/// is the number of the last purge. [`Series`] describes `era`, `set` and `place`.
const HEADER_BYTES: usize = 56;
/// Size in bytes of an encoded rule. The fields of [`Rule`] in order, with their sizes in bytes:
/// scope 1, strength 1, length 2, unused 4, moment 8, at 8, name 16, site 8.
const ENTRY_BYTES: usize = 48;
/// Size in bytes of an encoded purge.
pub const ORDER_BYTES: usize = ENTRY_BYTES;
const MAX_BLOCK_RULES: usize = (PAGE_BYTES - HEADER_BYTES) / ENTRY_BYTES;
const MAGIC: &[u8; 8] = b"foxypur2";
/// The part of the magic number that every version of the format shares.
const ANY_VERSION: &[u8] = b"foxypur";

/// The identity of a journal. Every block contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Random number that foxy draws when it creates a journal. Each stored response contains the
    /// `era` of the journal that was in use when its fetch began. The cache does not use a response
    /// with another `era`, because the purges in this journal may not have affected the response.
    pub era: u64,
    /// Random number of a set of stores that are used together, for example on several disks. If
    /// the operator replaces one store of the set, foxy draws a new number.
    pub set: u64,
    /// Identifies the store among all stores of this foxy process. [`place`] computes this number.
    pub place: u64,
}

/// Returns the number that identifies a store within its set: the hash of `description`, which
/// describes the store.
pub fn place(description: &str) -> u64 {
    xxh3_64(description.as_bytes())
}

/// A decoded journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The identity of the journal: its random number, its set of stores, and its store in the set.
    pub series: Series,
    /// The number of the last purge in the journal.
    pub latest: u64,
    /// The rules, in the order in which they were written.
    pub rules: Vec<Rule>,
}

/// The reason why a journal cannot be trusted to contain all purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreliable {
    /// The first block cannot be read.
    NoBeginning,
    /// A block before the last block cannot be read.
    Damaged,
    /// A rule has an unknown kind.
    Unknown,
    /// Another version of foxy wrote the journal.
    OtherVersion,
}

impl fmt::Display for Unreliable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBeginning => "the beginning of the list cannot be read",
            Self::Damaged => "a block in the middle of the list cannot be read",
            Self::Unknown => "the list has rules that this version of foxy does not know",
            Self::OtherVersion => "another version of foxy wrote the list",
        })
    }
}

/// Appends blocks with `rules` to `out`. If `rules` is empty, appends one empty block. The first
/// appended block has the number `first`. Returns the number for the next block.
pub fn append(out: &mut Vec<u8>, first: u32, series: Series, latest: u64, rules: &[Rule]) -> u32 {
    let mut number = first;
    let mut rest = rules;
    loop {
        let (part, more) = rest.split_at(rest.len().min(MAX_BLOCK_RULES));
        let page = block(number, series, latest, part);
        out.extend_from_slice(&page);
        out.extend_from_slice(&page);
        number += 1;
        rest = more;
        if rest.is_empty() {
            return number;
        }
    }
}

fn block(number: u32, series: Series, latest: u64, rules: &[Rule]) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[8..16].copy_from_slice(MAGIC);
    page[16..24].copy_from_slice(&series.era.to_le_bytes());
    page[24..32].copy_from_slice(&latest.to_le_bytes());
    page[32..36].copy_from_slice(&number.to_le_bytes());
    page[36..40].copy_from_slice(
        &u32::try_from(rules.len()).expect("at most MAX_BLOCK_RULES").to_le_bytes(),
    );
    page[40..48].copy_from_slice(&series.set.to_le_bytes());
    page[48..56].copy_from_slice(&series.place.to_le_bytes());
    for (rule, place) in rules.iter().zip(page[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
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
        Strength::Doubt => 3,
    };
    out[2..4].copy_from_slice(&length.to_le_bytes());
    out[8..16].copy_from_slice(&rule.moment.to_le_bytes());
    out[16..24].copy_from_slice(&rule.order.at.0.to_le_bytes());
    out[24..40].copy_from_slice(&name);
    out[40..48].copy_from_slice(&site.to_le_bytes());
}

fn take(entry: &[u8]) -> Option<Rule> {
    let number =
        |from: usize| Some(u64::from_le_bytes(entry.get(from..from + 8)?.try_into().ok()?));
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
        3 => Strength::Doubt,
        _ => return None,
    };
    Some(Rule { order: Order { scope, strength, at: WallTime(number(16)?) }, moment: number(8)? })
}

/// Encodes a purge that has no number yet, in the form of a rule.
pub fn write_order(order: &Order, out: &mut [u8; ORDER_BYTES]) {
    put(&Rule { order: *order, moment: 0 }, out);
}

/// Decodes a purge that `write_order` encoded. Returns `None` if its kind is unknown.
pub fn read_order(bytes: &[u8]) -> Option<Order> {
    take(bytes).map(|rule| rule.order)
}

/// A valid block of the purge journal. Its purges are still encoded.
struct Sound<'a> {
    series: Series,
    latest: u64,
    entries: std::slice::ChunksExact<'a, u8>,
    count: usize,
}

fn sound(page: &[u8], number: u32) -> Option<Sound<'_>> {
    let field = |from: usize| Some(u64::from_le_bytes(page.get(from..from + 8)?.try_into().ok()?));
    let small = |from: usize| Some(u32::from_le_bytes(page.get(from..from + 4)?.try_into().ok()?));
    let whole =
        page.len() == PAGE_BYTES && field(0)? == checksum(page) && page.get(8..16)? == MAGIC;
    let count = small(36)? as usize;
    (whole && small(32)? == number && count <= MAX_BLOCK_RULES).then_some(())?;
    let series = Series { era: field(16)?, set: field(40)?, place: field(48)? };
    Some(Sound {
        series,
        latest: field(24)?,
        entries: page[HEADER_BYTES..].chunks_exact(ENTRY_BYTES),
        count,
    })
}

/// Decodes a journal. The error [`Unreliable`] means that an acknowledged purge may be missing.
pub fn read(bytes: &[u8]) -> Result<Journal, Unreliable> {
    let mut journal: Option<Journal> = None;
    let mut hole = false;
    for (number, pair) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
        let (one, other) = pair.split_at(pair.len().min(PAGE_BYTES));
        let Some(block) = sound(one, number).or_else(|| sound(other, number)) else {
            hole = true;
            continue;
        };
        if hole {
            return Err(if journal.is_some() {
                Unreliable::Damaged
            } else {
                Unreliable::NoBeginning
            });
        }
        let found =
            journal.get_or_insert(Journal { series: block.series, latest: 0, rules: Vec::new() });
        if found.series != block.series {
            return Err(Unreliable::Damaged);
        }
        found.latest = found.latest.max(block.latest);
        for entry in block.entries.take(block.count) {
            found.rules.push(take(entry).ok_or(Unreliable::Unknown)?);
        }
    }
    let other =
        |page: &[u8]| page.get(8..15) == Some(ANY_VERSION) && page.get(8..16) != Some(MAGIC);
    let why = if other(bytes) { Unreliable::OtherVersion } else { Unreliable::NoBeginning };
    journal.ok_or(why)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
