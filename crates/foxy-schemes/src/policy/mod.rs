//! Replacement policies: the trait, the table and the names. A policy chooses which entry a full
//! cache evicts. A policy knows only the numbers and sizes of entries. It frees no space and reads
//! no clock.

mod list;
mod ranked;
mod s3_fifo;
mod sieve;
mod w_tiny_lfu;
mod webcosm;

use std::fmt;
use std::str::FromStr;

/// Chooses the entry to evict. The owner of the policy keeps its entries in an array and passes
/// their array indices as entry numbers. So a policy can keep its own data in arrays too. A call
/// takes constant or logarithmic time on average.
pub trait Policy: Send {
    /// Returns whether an entry of `size` bytes may be cached. The owner calls this function before
    /// it inserts an entry.
    fn admits(&self, _size: u64) -> bool {
        true
    }

    /// Adds a new entry after a miss. `key_hash` is a hash of the key with evenly distributed bits.
    /// The hash is the same if the key is inserted again later, under another entry number. `size`
    /// is in bytes. The entry must not be present.
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64);

    /// Adds an entry to a miniature: a small simulated cache with a sample of the entries of a real
    /// cache. `size` is the real size of the entry in bytes. `charged` is the number of bytes that
    /// the entry takes in the miniature. A policy that compares sizes implements this function.
    fn insert_sampled(&mut self, entry: u32, key_hash: u64, _size: u64, charged: u64) {
        self.insert(entry, key_hash, charged);
    }

    /// Notes that an entry was used again (a hit). The entry must be present.
    fn touch(&mut self, entry: u32);

    /// Returns the next entry to evict, or `None` if no entry exists. A call does not remove the
    /// entry, so a second call returns the same entry. The owner removes the entry, and calls again
    /// while it needs more space. The owner has already inserted the new entry, so a policy may
    /// return the new entry in order to refuse it.
    fn victim(&mut self) -> Option<u32>;

    /// Removes an entry, for example after its eviction. The entry must be present.
    fn remove(&mut self, entry: u32);

    /// Returns all entries, the next victim first. If the owner inserts them in this order into a
    /// new policy of this kind, their order stays about the same. Only their hit counts are lost.
    fn coldest_first(&mut self) -> Vec<u32>;

    /// Returns the memory in bytes that the policy uses.
    fn memory(&self) -> usize;
}

/// Parameters of the policies. A policy ignores parameters that it does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Capacity of the store in bytes. Some policies give each of their queues a share of the
    /// capacity.
    pub capacity: u64,
    /// Maximum size in bytes of an entry that `LruThreshold` accepts.
    pub object_limit: u64,
}

/// The name of a policy in settings and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyName {
    /// Least recently used.
    #[default]
    Lru,
    /// LRU that refuses entries above a size threshold.
    LruThreshold,
    /// First in, first out.
    Fifo,
    /// LRU in a heap instead of a list, as Squid's `heap LRU`.
    HeapLru,
    /// GreedyDual-Size with frequency, as in Squid: prefers small entries with many uses.
    Gdsf,
    /// Least frequently used with dynamic aging, as in Squid: the weight of old uses falls over
    /// time.
    Lfuda,
    /// S3-FIFO: a small queue, a main queue, and a ghost queue of recently evicted entries.
    S3Fifo,
    /// SIEVE: a queue with one bit per entry for "used". A hand moves through the queue and evicts
    /// the next unused entry.
    Sieve,
    /// W-TinyLFU: a small LRU window for new entries. An entry that leaves the window stays only if
    /// it has more uses than the next victim.
    WTinyLfu,
    /// The rules of the engine webcosm. A large new entry waits in a small queue until it is used
    /// again. A small entry needs fewer uses to stay than a large entry.
    Webcosm,
}

/// One row of the table of policies.
pub struct PolicyRow {
    /// The policy as a value of the enum.
    pub name: PolicyName,
    /// Name of the policy as text, in settings and reports.
    pub text: &'static str,
    /// Short description of the policy.
    pub summary: &'static str,
    make: fn(&PolicySettings) -> Box<dyn Policy>,
}

/// The table of all replacement policies.
pub const POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: PolicyName::Lru,
        text: "lru",
        summary: "evicts the entry that was unused for longest",
        make: |_| Box::new(list::ListPolicy::lru()),
    },
    PolicyRow {
        name: PolicyName::LruThreshold,
        text: "lru-th",
        summary: "lru without objects above the object limit",
        make: |settings| Box::new(list::ListPolicy::lru_threshold(settings)),
    },
    PolicyRow {
        name: PolicyName::Fifo,
        text: "fifo",
        summary: "evicts the oldest entry, used or not",
        make: |_| Box::new(list::ListPolicy::fifo()),
    },
    PolicyRow {
        name: PolicyName::HeapLru,
        text: "heap-lru",
        summary: "lru with a heap, as Squid's heap LRU",
        make: |_| Box::new(ranked::Ranked::new(ranked::lru_key)),
    },
    PolicyRow {
        name: PolicyName::Gdsf,
        text: "gdsf",
        summary: "keeps small popular entries, for most hits, as Squid's heap GDSF",
        make: |_| Box::new(ranked::Ranked::new(ranked::gdsf_key)),
    },
    PolicyRow {
        name: PolicyName::Lfuda,
        text: "lfuda",
        summary: "keeps popular entries, for most bytes, as Squid's heap LFUDA",
        make: |_| Box::new(ranked::Ranked::new(ranked::lfuda_key)),
    },
    PolicyRow {
        name: PolicyName::S3Fifo,
        text: "s3-fifo",
        summary: "a new entry leaves a small queue soon, unless it is used again",
        make: |settings| Box::new(s3_fifo::S3Fifo::new(settings)),
    },
    PolicyRow {
        name: PolicyName::Sieve,
        text: "sieve",
        summary: "goes round a queue, and evicts the next entry unused since the last round",
        make: |_| Box::new(sieve::Sieve::default()),
    },
    PolicyRow {
        name: PolicyName::WTinyLfu,
        text: "w-tiny-lfu",
        summary: "admits a new entry only if it is used more often than the entry that it \
                  displaces",
        make: |settings| Box::new(w_tiny_lfu::WTinyLfu::new(settings)),
    },
    PolicyRow {
        name: PolicyName::Webcosm,
        text: "webcosm",
        summary: "the rules of the scheme webcosm: a large new entry must be used again, and a \
                  small entry needs fewer uses to stay",
        make: |settings| Box::new(webcosm::Webcosm::new(settings)),
    },
];

impl PolicyName {
    /// Returns the row of this policy in the table.
    pub fn row(self) -> &'static PolicyRow {
        POLICIES
            .iter()
            .find(|row| row.name == self)
            .expect("every name has a row; a test holds this")
    }

    /// Creates an empty policy of this kind.
    pub fn make(self, settings: &PolicySettings) -> Box<dyn Policy> {
        (self.row().make)(settings)
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().text)
    }
}

/// The error for a text that names no policy.
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

/// Returns a reference to the element of entry number `entry` in an array with one element per
/// entry. Lengthens the array if needed.
fn slot_of<T: Clone + Default>(array: &mut Vec<T>, entry: u32) -> &mut T {
    let index = entry as usize;
    if array.len() <= index {
        array.resize(index + 1, T::default());
    }
    &mut array[index]
}

#[cfg(test)]
mod tests;
