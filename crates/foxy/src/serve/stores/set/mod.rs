//! Combines all stores into a set that works as a single store. The selection rule chooses a store
//! for each new record, among the stores that accept its size. At most one store has a record for a
//! key, so a replaced record is never served again.

mod directory;

use crate::serve::stores::RunningStore;
use crate::serve::stores::out_of_use::OutOfUse;
use directory::{Directory, Turn};
use foxy_proxy::cache::storage::{ObjectStore, Reply};
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record, RefusedReason};
use std::cmp::Reverse;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest number of keys in the directory, the map from keys to stores. Each key needs 17 bytes of
/// memory.
const MAX_KNOWN_KEYS: usize = 1 << 20;

/// Rule that chooses the store for a new record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The hash of the key selects the store.
    Key,
    /// New records go to the stores in turn.
    RoundRobin,
    /// The record goes to the store with the fewest unanswered requests.
    LeastLoad,
}

impl Selection {
    pub fn named(name: &str) -> Self {
        match name {
            "round-robin" => Self::RoundRobin,
            "least-load" => Self::LeastLoad,
            _ => Self::Key,
        }
    }
}

pub struct Member {
    pub store: Arc<dyn ObjectStore>,
    /// Sizes in bytes of the objects that this store accepts.
    pub sizes: RangeInclusive<u64>,
}

/// A set of stores that works as a single store. Without members, it stores nothing.
#[derive(Clone)]
pub struct StoreSet(Arc<Inner>);

struct Inner {
    members: Vec<Member>,
    waiting: Vec<AtomicUsize>,
    selection: Selection,
    next: AtomicUsize,
    out: OutOfUse,
    /// Says which store has a key. `None` if the key itself determines the store.
    directory: Option<Directory<Change>>,
}

/// Returns whether the key itself determines the store of a record, so that no directory (map from
/// keys to stores) is needed.
pub fn is_by_key(members: &[Member], selection: Selection) -> bool {
    let are_alike = members.iter().all(|member| member.sizes == members[0].sizes);
    members.len() < 2 || (selection == Selection::Key && are_alike)
}

impl StoreSet {
    /// Combines all stores. Returns `None` if there is no store. `secret` must be a random number.
    pub fn of(stores: &[RunningStore], selection: Selection, secret: u64) -> Option<Self> {
        let members: Vec<_> = stores.iter().map(RunningStore::member).collect();
        (!members.is_empty()).then(|| Self::new(members, selection, secret))
    }

    /// Combines `members`. The key's home store (the store that the hash selects) depends on their
    /// order. `secret` must be a random number.
    pub fn new(members: Vec<Member>, selection: Selection, secret: u64) -> Self {
        let directory = (!is_by_key(&members, selection)).then(|| Directory::new(MAX_KNOWN_KEYS));
        Self(Arc::new(Inner {
            waiting: members.iter().map(|_| AtomicUsize::new(0)).collect(),
            selection,
            next: AtomicUsize::new(0),
            out: OutOfUse::none(members.len(), secret),
            directory,
            members,
        }))
    }

    /// Returns which stores are out of use. After a store is out of use, none of its records may be
    /// served.
    pub fn out_of_use(&self) -> &OutOfUse {
        &self.0.out
    }
}

/// Counts a request that a store has not answered yet. Drop ends the count.
struct Waiting {
    set: Arc<Inner>,
    store: usize,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.set.waiting[self.store].fetch_sub(1, Ordering::Relaxed);
    }
}

struct Change {
    wish: ChangeWish,
    reply: Reply,
}

enum ChangeWish {
    Put(Record, PlacementHint),
    Remove,
}

/// A change of a key that is in progress. Dropping it starts the next change of the key, also if
/// the store never answered.
struct Changing {
    set: Arc<Inner>,
    key: Key,
}

impl Drop for Changing {
    fn drop(&mut self) {
        let Self { set, key } = self;
        if let Some(next) = set.directory.as_ref().and_then(|directory| directory.end(*key)) {
            set.make(*key, next);
        }
    }
}

impl Inner {
    /// Returns the home store (the store that the hash selects) of a key, among `count` stores.
    /// Returns `None` if `count` is zero.
    fn home(&self, key: Key, count: usize) -> Option<usize> {
        let [.., a, b, c, d] = key.0;
        (u32::from_le_bytes([a, b, c, d]) as usize).checked_rem(count)
    }

    fn takes(&self, store: usize, size: u64) -> bool {
        self.members[store].sizes.contains(&size)
    }

    /// Chooses the store for a new record of `size` bytes. Returns `None` if no store accepts this
    /// size.
    fn choose(&self, key: Key, size: u64) -> Option<usize> {
        let mut able = self.out.in_use();
        able.retain(|store| self.takes(*store, size));
        let load = |store: &usize| self.waiting[*store].load(Ordering::Relaxed);
        let turn = || self.next.fetch_add(1, Ordering::Relaxed).checked_rem(able.len());
        match self.selection {
            Selection::Key => Some(able[self.home(key, able.len())?]),
            Selection::RoundRobin => Some(able[turn()?]),
            Selection::LeastLoad => {
                let first = turn()?;
                able[first..].iter().chain(&able[..first]).copied().min_by_key(load)
            }
        }
    }

    /// Counts a request to `store` as unanswered. The returned reply ends the count, and passes the
    /// answer on to `reply`.
    fn counted(self: &Arc<Self>, store: usize, reply: Reply) -> Reply {
        self.waiting[store].fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting { set: Arc::clone(self), store };
        Box::new(move |answer| {
            drop(waiting);
            reply(answer);
        })
    }

    fn get_from(self: &Arc<Self>, store: usize, key: Key, reply: Reply) {
        let reply = self.counted(store, reply);
        self.members[store].store.get(key, reply);
    }

    /// Searches the stores in `left` for the key, beginning with the last. Stops at the first store
    /// that has the key. `doubt` says why an earlier store could not answer.
    fn search(self: &Arc<Self>, mut left: Vec<usize>, key: Key, doubt: AbsentReason, reply: Reply) {
        let Some(store) = left.pop() else { return reply(Answer::Absent(doubt)) };
        let epoch = self.directory.as_ref().map(|directory| directory.epoch(key));
        let inner = Arc::clone(self);
        self.get_from(
            store,
            key,
            Box::new(move |answer| match answer {
                Answer::Absent(AbsentReason::NotIndexed) => inner.search(left, key, doubt, reply),
                Answer::Absent(reason) => inner.search(left, key, reason, reply),
                answer => {
                    if let (Some(directory), Some(epoch)) = (&inner.directory, epoch) {
                        directory.learn(key, store, epoch);
                    }
                    reply(answer);
                }
            }),
        );
    }

    /// Removes the key from each store in `left`. Calls `then` with `Removed` at the end, or with
    /// the first different answer.
    fn clear(self: &Arc<Self>, mut left: Vec<usize>, key: Key, then: Reply) {
        let Some(store) = left.pop() else { return then(Answer::Removed) };
        let inner = Arc::clone(self);
        let then = self.counted(
            store,
            Box::new(move |answer| match answer {
                Answer::Removed => inner.clear(left, key, then),
                answer => then(answer),
            }),
        );
        self.members[store].store.remove(key, then);
    }

    /// Stores a record in the store that already has the key, if that store accepts the record.
    /// Otherwise the selection rule chooses a store. Before that, all other stores that may have
    /// the key remove it.
    fn place(self: &Arc<Self>, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        let known = self.known(key);
        let target =
            known.filter(|store| self.takes(*store, hint.size) && !self.out.is_out(*store));
        let Some(target) = target.or_else(|| self.choose(key, hint.size)) else {
            return reply(Answer::Refused(RefusedReason::TooLarge));
        };
        let mut others = self.may_have(known);
        others.retain(|store| *store != target);
        let inner = Arc::clone(self);
        let put = move |answer| {
            if answer != Answer::Removed {
                return reply(answer);
            }
            if let Some(directory) = &inner.directory {
                directory.place(key, target);
            }
            let reply = inner.counted(target, reply);
            inner.members[target].store.put(key, record, hint, reply);
        };
        self.clear(others, key, Box::new(put));
    }

    fn known(&self, key: Key) -> Option<usize> {
        self.directory.as_ref()?.find(key)
    }

    /// Returns the stores in use that may have a key. If the directory (map from keys to stores)
    /// knows the key's store, `known`, no other store is returned.
    fn may_have(&self, known: Option<usize>) -> Vec<usize> {
        let mut stores = self.out.in_use();
        stores.retain(|store| known.is_none_or(|known| known == *store));
        stores
    }

    /// Runs a change of `key`, or refuses it if too many wait. Changes of the same key run one
    /// after another, in the order of the calls.
    fn change(self: &Arc<Self>, directory: &Directory<Change>, key: Key, change: Change) {
        match directory.begin(key, change) {
            Turn::Now(change) => self.make(key, change),
            Turn::Later => {}
            Turn::Never(change) => (change.reply)(Answer::Refused(RefusedReason::Busy)),
        }
    }

    fn make(self: &Arc<Self>, key: Key, Change { wish, reply }: Change) {
        let changing = Changing { set: Arc::clone(self), key };
        let reply = Box::new(move |answer| {
            drop(changing);
            reply(answer);
        });
        match wish {
            ChangeWish::Put(record, hint) => self.place(key, record, hint, reply),
            ChangeWish::Remove => self.clear(self.may_have(self.known(key)), key, reply),
        }
    }
}

impl ObjectStore for StoreSet {
    fn get(&self, key: Key, reply: Reply) {
        let inner = &self.0;
        let Some(home) = inner.home(key, inner.members.len()) else {
            return reply(Answer::Absent(AbsentReason::NotIndexed));
        };
        let Some(directory) = &inner.directory else {
            let (store, key) = inner.out.place(key, home);
            return inner.members[store].store.get(key, reply);
        };
        match directory.find(key) {
            Some(store) if inner.out.is_out(store) => {
                reply(Answer::Absent(AbsentReason::NotIndexed))
            }
            Some(store) => inner.get_from(store, key, reply),
            None => {
                let count = inner.members.len();
                let mut order = inner.out.in_use();
                order.sort_by_key(|store| Reverse((store + count - home) % count));
                inner.search(order, key, AbsentReason::NotIndexed, reply);
            }
        }
    }

    fn get_here(&self, key: Key, reply: Reply) -> Result<(), Reply> {
        let inner = &self.0;
        match (&inner.directory, inner.home(key, inner.members.len())) {
            (None, Some(home)) => {
                let (store, key) = inner.out.place(key, home);
                inner.members[store].store.get_here(key, reply)
            }
            _ => Err(reply),
        }
    }

    fn lacks(&self, key: Key) -> bool {
        let inner = &self.0;
        match (&inner.directory, inner.home(key, inner.members.len())) {
            (None, Some(home)) => {
                let (store, key) = inner.out.place(key, home);
                inner.members[store].store.lacks(key)
            }
            (_, home) => home.is_none(),
        }
    }

    fn is_for_rings(&self) -> bool {
        self.0.members.iter().any(|member| member.store.is_for_rings())
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        let inner = &self.0;
        let Some(home) = inner.home(key, inner.members.len()) else {
            return reply(Answer::Refused(RefusedReason::StoresNothing));
        };
        match &inner.directory {
            Some(directory) => {
                inner.change(directory, key, Change { wish: ChangeWish::Put(record, hint), reply });
            }
            None if inner.takes(home, hint.size) => {
                let (store, key) = inner.out.place(key, home);
                inner.members[store].store.put(key, record, hint, reply);
            }
            None => reply(Answer::Refused(RefusedReason::TooLarge)),
        }
    }

    fn remove(&self, key: Key, reply: Reply) {
        let inner = &self.0;
        let Some(home) = inner.home(key, inner.members.len()) else {
            return reply(Answer::Removed);
        };
        match &inner.directory {
            Some(directory) => {
                inner.change(directory, key, Change { wish: ChangeWish::Remove, reply })
            }
            None => {
                let (store, key) = inner.out.place(key, home);
                inner.members[store].store.remove(key, reply);
            }
        }
    }
}

#[cfg(test)]
mod tests;
