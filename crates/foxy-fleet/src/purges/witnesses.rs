//! The members that may know a purge which the log has lost, while the list of members changes.
//!
//! A change of the list needs no agreement between the nodes. A purge is acknowledged when each
//! process with a lease has applied it, whether or not its member is in the list. So only the loss
//! of entries or records by the engine makes the list matter. After each restart of the engine, a
//! member waits for the record of every *witness*, or for the end of every lease. It trusts what it
//! stored if every witness vouches for the log. Otherwise it validates everything.
//!
//! A witness is each member of the list, and each former or unlisted member whose record was seen.
//! The names are saved with the place in the log, so that a restart with another list forgets none.
//! A former member stops being a witness when it has no lease and this member then applies the
//! whole log, which it has proved to be complete. Every purge that the former member acknowledged
//! is in that log, because it acknowledges only what its last exchange found there, and because
//! that exchange renewed its lease. So the operator must stop a node before its name leaves the
//! lists, and add a name to all lists before its node starts. Other nodes then forget no purge.

use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// Largest number of former members that are saved. With all listed members, their hashes fit into
/// a slot of the file with the place.
const MAX_SAVED_FORMER: usize = 128;

/// Returns the hash of a member's name, which stands for the name in the saved place.
pub fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// The hashes of the names of all other members that count.
#[derive(Clone, Debug)]
pub struct Witnesses {
    me: u64,
    /// The members that the operator lists, without this member.
    listed: BTreeSet<u64>,
    /// Former and unlisted members.
    former: BTreeSet<u64>,
}

impl Witnesses {
    /// Creates the witnesses of the member `me`: all listed members, and the members that were
    /// saved as witnesses.
    pub fn new(me: &str, members: &[Box<str>], saved: &[u64]) -> Self {
        let former = saved.iter().copied().collect();
        let mut witnesses = Self { me: hash(me), listed: BTreeSet::new(), former };
        witnesses.set_listed(members);
        witnesses
    }

    /// Replaces the list of members. Members that it no longer contains remain witnesses.
    pub fn set_listed(&mut self, members: &[Box<str>]) {
        let others = members.iter().map(|name| hash(name)).filter(|name| *name != self.me);
        let before = std::mem::replace(&mut self.listed, others.collect());
        self.former.extend(before);
        self.former.retain(|name| *name != self.me && !self.listed.contains(name));
    }

    /// Adds a member whose record was seen.
    pub fn add(&mut self, name: &str) {
        let name = hash(name);
        if name != self.me && !self.listed.contains(&name) {
            self.former.insert(name);
        }
    }

    /// Forgets the former members without a lease.
    pub fn release(&mut self, has_lease: impl Fn(u64) -> bool) {
        self.former.retain(|name| has_lease(*name));
    }

    /// Returns all witnesses.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.listed.iter().chain(&self.former).copied()
    }

    /// Returns the witnesses to save.
    pub fn to_save(&self) -> Vec<u64> {
        let former = self.former.iter().take(MAX_SAVED_FORMER);
        self.listed.iter().chain(former).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Vec<Box<str>> {
        names.split_whitespace().map(Into::into).collect()
    }

    #[test]
    fn a_former_member_remains_a_witness_until_it_has_no_lease() {
        let mut witnesses = Witnesses::new("a", &list("a b c"), &[hash("d"), hash("a"), hash("b")]);
        let are = |witnesses: &Witnesses, names: &str| {
            let expected: BTreeSet<_> = list(names).iter().map(|name| hash(name)).collect();
            assert_eq!(witnesses.all().collect::<BTreeSet<_>>(), expected, "{names}");
            assert_eq!(witnesses.to_save().len(), expected.len());
        };
        are(&witnesses, "b c d");
        witnesses.set_listed(&list("a b e"));
        are(&witnesses, "b c d e");
        witnesses.release(|name| name == hash("c"));
        are(&witnesses, "b c e");
        witnesses.release(|_| false);
        ["a", "b", "f"].iter().for_each(|name| witnesses.add(name));
        are(&witnesses, "b e f");
    }
}
