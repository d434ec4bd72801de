//! The entries of the purge log, and their binary form, which has a version. Each entry contains
//! the hash of the previous entry, so that readers notice lost entries.

use foxy_proxy::cache::purge::Order;
use foxy_proxy::cache::purge::journal::{ORDER_BYTES, read_order, write_order};
use std::fmt;
use xxhash_rust::xxh3::xxh3_128;

const MAGIC: &[u8; 8] = b"foxylog1";
/// Largest number of purges in an entry of the purge log.
pub const MAX_ENTRY_ORDERS: usize = 4096;

/// One run of a member's program. After a restart, the member has a new process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The name of the member.
    pub member: Box<str>,
    /// Random number that the process draws at its start.
    pub run: u64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:016x}", self.member, self.run)
    }
}

impl Process {
    /// Parses a process from the text that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (member, run) = text.rsplit_once('/')?;
        Some(Self { member: member.into(), run: u64::from_str_radix(run, 16).ok()? })
    }
}

/// The content of an entry in the purge log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A new chain of entries begins, because the engine lost entries. Each member must validate
    /// all responses that it stored before.
    Begin,
    /// The entry contains purges, which each member applies.
    Purge(Vec<Order>),
}

/// An entry of the purge log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Random number of the chain. All entries from one `Begin` to the next have the same number.
    pub chain: u64,
    /// Position of the entry in the purge log, counted from 1.
    pub position: u64,
    /// The process that appended the entry.
    pub writer: Process,
    /// Number of entries that the writer has appended, including this entry.
    pub counter: u64,
    /// The hash of the previous entry. Zero for `Begin`.
    pub previous: u128,
    /// The purges in the entry, or the beginning of a chain.
    pub content: Content,
}

impl Entry {
    /// Returns the hash of an entry's binary form.
    pub fn hash(bytes: &[u8]) -> u128 {
        xxh3_128(bytes)
    }

    /// Returns the binary form of the entry. Its fields, with their sizes in bytes, are: magic 8,
    /// chain 8, position 8, run 8, counter 8, previous hash 16, kind 1, length of the name 1, name,
    /// purges. Numbers are little-endian.
    pub fn encode(&self) -> Vec<u8> {
        let name = &self.writer.member.as_bytes()[..self.writer.member.len().min(255)];
        let mut out = MAGIC.to_vec();
        for number in [self.chain, self.position, self.writer.run, self.counter] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.previous.to_le_bytes());
        out.push(u8::from(matches!(self.content, Content::Purge(_))));
        out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(name);
        if let Content::Purge(orders) = &self.content {
            for order in orders {
                let mut place = [0; ORDER_BYTES];
                write_order(order, &mut place);
                out.extend_from_slice(&place);
            }
        }
        out
    }

    /// Reads an entry from its binary form. Returns `None` if the bytes are damaged or have another
    /// version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut take = |length: usize| {
            let (part, more) = rest.split_at_checked(length)?;
            rest = more;
            Some(part)
        };
        let mut number = || Some(u64::from_le_bytes(take(8)?.try_into().ok()?));
        let (chain, position, run, counter) = (number()?, number()?, number()?, number()?);
        let previous = u128::from_le_bytes(take(16)?.try_into().ok()?);
        let (kind, length) = (take(1)?[0], usize::from(take(1)?[0]));
        let member = std::str::from_utf8(take(length)?).ok()?.into();
        let content = match kind {
            0 if rest.is_empty() => Content::Begin,
            1 if rest.len().is_multiple_of(ORDER_BYTES) => Content::Purge(
                rest.chunks_exact(ORDER_BYTES).map(read_order).collect::<Option<_>>()?,
            ),
            _ => return None,
        };
        let writer = Process { member, run };
        Some(Self { chain, position, writer, counter, previous, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::WallTime;
    use foxy_proxy::cache::purge::{Named, Scope, Strength};

    fn orders() -> Vec<Order> {
        let scopes =
            [(Named::Url, "http://a.test/x"), (Named::Tag, "news"), (Named::Site, "a.test")]
                .iter()
                .flat_map(|(named, name)| named.scopes(name).expect("a name"))
                .chain(Named::Prefix.scopes("http://a.test/y").expect("a prefix"))
                .chain([Scope::All]);
        let strengths = [Strength::Soft, Strength::Hard].into_iter().cycle();
        let order = |(scope, strength)| Order { scope, strength, at: WallTime(77) };
        scopes.zip(strengths).map(order).collect()
    }

    fn entry(content: Content) -> Entry {
        let writer = Process { member: "a".into(), run: 9 };
        Entry { chain: 5, position: 3, writer, counter: 2, previous: 1 << 100, content }
    }

    #[test]
    fn an_entry_is_read_back_and_a_cut_entry_is_refused() {
        for content in [Content::Begin, Content::Purge(orders())] {
            let entry = entry(content);
            let bytes = entry.encode();
            assert_eq!(Entry::decode(&bytes), Some(entry));
            for length in (0..bytes.len())
                .filter(|length| !(bytes.len() - length).is_multiple_of(ORDER_BYTES))
            {
                assert_eq!(Entry::decode(&bytes[..length]), None, "{length}");
            }
            let newer = [b"foxylog2", &bytes[8..]].concat();
            assert_eq!(Entry::decode(&newer), None, "another version");
        }
    }

    #[test]
    fn the_name_of_a_process_is_read_back_from_its_text() {
        let process = Process { member: "a/b".into(), run: 0xf0 };
        assert_eq!(Process::parse(&process.to_string()), Some(process));
        assert_eq!(Process::parse("a"), None);
        assert_eq!(Process::parse("a/x"), None);
    }
}
