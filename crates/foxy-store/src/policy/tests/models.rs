//! Naive models of the policies: plain lists and whole scans, written from the definitions and not from the code.

use super::PolicyName;

/// What a policy does, slowly.
pub(super) trait Model {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64);
    fn touch(&mut self, entry: u32);
    fn victim(&mut self) -> Option<u32>;
    fn remove(&mut self, entry: u32);
}

/// The model of a policy.
pub(super) fn of(name: PolicyName) -> Box<dyn Model> {
    match name {
        PolicyName::Lru => Box::new(Recency(Vec::new())),
    }
}

/// Entries by last use.
struct Recency(Vec<u32>);

impl Model for Recency {
    fn insert(&mut self, entry: u32, _: u64, _: u64) {
        self.0.push(entry);
    }

    fn touch(&mut self, entry: u32) {
        self.remove(entry);
        self.0.push(entry);
    }

    fn victim(&mut self) -> Option<u32> {
        self.0.first().copied()
    }

    fn remove(&mut self, entry: u32) {
        self.0.retain(|&other| other != entry);
    }
}
