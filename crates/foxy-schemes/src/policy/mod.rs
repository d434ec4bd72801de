//! Replacement policies: which entry goes when room is wanted (R71, R74). The trait, the table of
//! policies, and their names. A policy knows entries by number and size only; it holds no content,
//! frees no space and reads no clock.

mod fifo;
mod gdsf;
mod heap;
mod heap_lru;
mod lfuda;
mod lru;
mod lru_th;
mod ranked;
mod s3_fifo;
mod sieve;
mod w_tiny_lfu;

use std::fmt;
use std::str::FromStr;

/// Decides which entry goes. Entries are named by small dense numbers that the owner chooses
/// (places in its slab); arrays indexed by them are all the memory a policy needs. Calls cost O(1)
/// or O(log n), amortised.
pub trait Policy: Send {
    /// Whether an entry of that many bytes may come in at all. An owner asks before it inserts.
    fn admits(&self, _size: u64) -> bool {
        true
    }

    /// A new entry came in, because it was missed. `key_hash` is a well-mixed hash that names it
    /// for longer than the number does; `size` is in bytes. The entry must not be present.
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64);

    /// A present entry was hit.
    fn touch(&mut self, entry: u32);

    /// Who should go next; `None` when there is nobody. The owner then removes that entry, and asks
    /// again while it wants more room. To refuse a newcomer, a policy names it here.
    fn victim(&mut self) -> Option<u32>;

    /// A present entry is gone, whoever decided so.
    fn remove(&mut self, entry: u32);

    /// All entries, about in the order in which they would go. Entries inserted in this order into
    /// a new policy of the same kind stand much as they did; how often each was used is lost.
    fn coldest_first(&mut self) -> Vec<u32>;

    /// Memory taken in bytes.
    fn memory(&self) -> usize;
}

/// What policies are made with. One ignores what it has no use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Bytes that the entries may take together; the share of a queue or segment is reckoned from
    /// it.
    pub capacity: u64,
    /// Entries above this many bytes are not admitted by a policy with a threshold (R49).
    pub object_limit: u64,
}

/// A policy's name, as in settings and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyName {
    /// The one unused for longest goes.
    #[default]
    Lru,
    /// The same, and nothing above a threshold comes in.
    LruThreshold,
    /// The oldest goes.
    Fifo,
    /// LRU kept in a heap, as Squid can.
    HeapLru,
    /// GreedyDual-Size with frequency, as Squid's.
    Gdsf,
    /// Least frequently used with dynamic aging, as Squid's.
    Lfuda,
    /// Small and main queue with a ghost.
    S3Fifo,
    /// A queue, a bit an entry and a hand.
    Sieve,
    /// A window, then admission by a sketch of frequencies.
    WTinyLfu,
}

/// One row of the table.
pub struct PolicyRow {
    /// The name as a value.
    pub name: PolicyName,
    /// The name as written.
    pub text: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    make: fn(&PolicySettings) -> Box<dyn Policy>,
}

/// Every policy there is.
pub const POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: PolicyName::Lru,
        text: "lru",
        summary: "the entry unused for longest goes",
        make: |_| Box::new(lru::LruPolicy::default()),
    },
    PolicyRow {
        name: PolicyName::LruThreshold,
        text: "lru-th",
        summary: "lru that admits nothing above the object limit",
        make: |settings| Box::new(lru_th::LruThreshold::new(settings)),
    },
    PolicyRow {
        name: PolicyName::Fifo,
        text: "fifo",
        summary: "the oldest entry goes, used or not",
        make: |_| Box::new(fifo::Fifo::default()),
    },
    PolicyRow {
        name: PolicyName::HeapLru,
        text: "heap-lru",
        summary: "lru kept in a heap, as Squid can",
        make: |_| Box::new(ranked::Ranked::new(heap_lru::key)),
    },
    PolicyRow {
        name: PolicyName::Gdsf,
        text: "gdsf",
        summary: "small popular entries stay, as Squid's heap GDSF: most hits",
        make: |_| Box::new(ranked::Ranked::new(gdsf::key)),
    },
    PolicyRow {
        name: PolicyName::Lfuda,
        text: "lfuda",
        summary: "popular entries stay, as Squid's heap LFUDA: most bytes",
        make: |_| Box::new(ranked::Ranked::new(lfuda::key)),
    },
    PolicyRow {
        name: PolicyName::S3Fifo,
        text: "s3-fifo",
        summary: "a small queue sifts out what is used once, a ghost remembers it",
        make: |settings| Box::new(s3_fifo::S3Fifo::new(settings)),
    },
    PolicyRow {
        name: PolicyName::Sieve,
        text: "sieve",
        summary: "a queue, a bit an entry, and a hand that spares what was used",
        make: |_| Box::new(sieve::Sieve::default()),
    },
    PolicyRow {
        name: PolicyName::WTinyLfu,
        text: "w-tiny-lfu",
        summary: "a newcomer stays only if used more than whom it displaces",
        make: |settings| Box::new(w_tiny_lfu::WTinyLfu::new(settings)),
    },
];

impl PolicyName {
    /// Its row of the table.
    pub fn row(self) -> &'static PolicyRow {
        POLICIES
            .iter()
            .find(|row| row.name == self)
            .expect("every name has a row; a test holds this")
    }

    /// Makes an empty policy.
    pub fn make(self, settings: &PolicySettings) -> Box<dyn Policy> {
        (self.row().make)(settings)
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().text)
    }
}

/// A name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = POLICIES.iter().map(|row| row.text).collect();
        write!(f, "there is no policy {:?}; use one of: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let row = POLICIES.iter().find(|row| row.text == text);
        row.map(|row| row.name).ok_or_else(|| UnknownPolicy(text.into()))
    }
}

/// The value of an entry in an array that grows to hold it.
fn place<T: Clone + Default>(array: &mut Vec<T>, entry: u32) -> &mut T {
    let index = entry as usize;
    if array.len() <= index {
        array.resize(index + 1, T::default());
    }
    &mut array[index]
}

#[cfg(test)]
mod tests;
