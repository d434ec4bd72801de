//! The *witnesses*: the members that may know a purge which the log has lost. Explains why the
//! operator may change the list of members.
//!
//! A change of the list needs no agreement between the nodes. A purge is acknowledged when each
//! process with a lease has applied it, whether or not the list contains its member. So the list
//! matters only if the engine loses entries or records. After each restart of the engine, a member
//! waits for the record of every *witness*, or for the end of every lease. It trusts what it stored
//! if every witness vouches for the log. Otherwise it validates everything.
//!
//! Every member of the list is a witness. Every former or unlisted member whose record was seen is
//! also a witness. Each member saves the witnesses' names with its position in the log, so that a
//! restart with another list forgets no witness. A former member stops being a witness when it has
//! no lease and this member then applies the whole log, which it has proved to be complete. That
//! log contains every purge that the former member acknowledged. The reason: the former member
//! acknowledges only purges that its last exchange found in the log, and that exchange renewed its
//! lease. So the operator must stop a node before its name leaves the lists. The operator must add
//! a name to all lists before its node starts. Then no node forgets a purge.

use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// Largest number of former members that are saved as witnesses. With this number, the hashes of
/// all witnesses fit into a slot of the file with the member's position.
const MAX_SAVED_FORMER: usize = 128;

/// Returns the hash of a member's name, which stands for the name in the saved state.
pub fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// Hashes of the names of the witnesses: other members that may know a purge which the log has
/// lost.
#[derive(Clone, Debug)]
pub struct Witnesses {
    me: u64,
    /// The members in the operator's list, without this member.
    listed: BTreeSet<u64>,
    /// Members that are not in the operator's list, but may still know a lost purge.
    former: BTreeSet<u64>,
}

impl Witnesses {
    /// Creates the witnesses of the member `me`: all members of the list, and the members in
    /// `saved`.
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

    /// Adds a member as a witness, because its record was seen.
    pub fn add(&mut self, name: &str) {
        let name = hash(name);
        if name != self.me && !self.listed.contains(&name) {
            self.former.insert(name);
        }
    }

    /// Removes the former members without a lease from the witnesses.
    pub fn release(&mut self, has_lease: impl Fn(u64) -> bool) {
        self.former.retain(|name| has_lease(*name));
    }

    /// Returns all witnesses.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.listed.iter().chain(&self.former).copied()
    }

    /// Returns the hashes of the witnesses that the member must save.
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
