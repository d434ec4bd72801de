//! What is forgotten and who waits for it: the forget journal in memory. It does no IO.

use foxy_device::IoError;
use foxy_store::contract::{Key, Record, Ticket};
use foxy_store::layout::{PAGE, Region};
use foxy_store::one_file::journal::{BLOCK_BYTES, Forget};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Someone waits for a fact to be durable.
#[derive(Debug)]
pub struct WantedForget {
    /// Whose request it is.
    pub ticket: Ticket,
    /// Whose records are to be forgotten.
    pub key: Key,
    /// The highest sequence number forgotten.
    pub up_to: u64,
    /// What follows once that is durable.
    pub work: Work,
}

/// What waits for a fact.
#[derive(Debug)]
pub enum Work {
    /// A removal.
    Remove,
    /// A put, which has its place in the order already.
    Put {
        /// That place.
        sequence: u64,
        /// What is put.
        record: Record,
    },
}

/// The journal in memory.
#[derive(Debug, Default)]
pub struct Forgetting {
    /// Facts that some leftover on disk still makes necessary.
    pub(super) facts: HashMap<Key, u64>,
    /// Who waits for the next commit.
    pub(super) queue: VecDeque<WantedForget>,
    /// How many wait for each key, those being committed included.
    pub(super) waiting: HashMap<Key, u32>,
    /// The sequence numbers of puts that wait.
    pub(super) sequences: BTreeSet<u64>,
    half: Option<Region>,
    /// Where the next commit goes.
    pub(super) next_block: u32,
    /// Why nothing can be appended any more.
    pub(super) broken: Option<IoError>,
    /// More facts are needed than the journal can take.
    pub crowded: bool,
}

impl Forgetting {
    /// Appends go to this half from now on, after the blocks already in it.
    pub fn begin(&mut self, half: Region, next_block: u32) {
        self.half = Some(half);
        self.next_block = next_block;
    }

    /// Takes the facts read when the store was opened.
    pub fn load(&mut self, facts: Vec<Forget>) {
        for fact in facts {
            let known = self.facts.entry(fact.key).or_default();
            *known = fact.up_to.max(*known);
        }
    }

    /// Up to which sequence number a key's records are forgotten.
    pub fn up_to(&self, key: Key) -> Option<u64> {
        self.facts.get(&key).copied()
    }

    /// All facts, ordered by key.
    pub fn facts(&self) -> Vec<Forget> {
        let mut facts: Vec<_> =
            self.facts.iter().map(|(&key, &up_to)| Forget { key, up_to }).collect();
        facts.sort_unstable_by_key(|fact| fact.key);
        facts
    }

    /// How many facts there are.
    pub fn count(&self) -> usize {
        self.facts.len()
    }

    /// Whether something of this key waits.
    pub fn awaits(&self, key: Key) -> bool {
        self.waiting.contains_key(&key)
    }

    /// Whether anything waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The lowest sequence number of a put that waits.
    pub fn lowest_waiting(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// One of this key waits no more.
    pub fn arrived(&mut self, key: Key) {
        if let Some(count) = self.waiting.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&key);
            }
        }
    }

    /// Blocks of a journal half.
    pub fn blocks(&self) -> u32 {
        self.half.map_or(0, |half| half.pages * PAGE as u32 / BLOCK_BYTES as u32)
    }
}
