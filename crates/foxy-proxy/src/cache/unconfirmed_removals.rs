//! Records the store did not confirm it has forgotten. What it says of them is not believed, so
//! that a store too busy to forget cannot bring back what was invalidated. It lives as long as the
//! process; what is in doubt when that stops is to be purged, and by whom is not here.

use crate::cache::purge::Scope;
use foxy_store::{Key, KeyMap};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys remembered one by one. A store that leaves more removals than this open is not believed at
/// all any more.
const LIMIT: usize = 64 << 10;

/// A removal that was asked for, in the order they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt(u64);

/// The keys in doubt.
#[derive(Debug, Default)]
pub(crate) struct UnconfirmedRemovals {
    state: Mutex<UnconfirmedState>,
}

#[derive(Debug, Default)]
struct UnconfirmedState {
    open: KeyMap<(Doubt, Scope)>,
    asked: u64,
    /// Whether there were too many to remember.
    about_all: bool,
}

impl UnconfirmedRemovals {
    fn lock(&self) -> MutexGuard<'_, UnconfirmedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A removal of what belongs to `url` is asked for: until it is settled, the key is in doubt.
    pub(crate) fn raise(&self, key: Key, url: Scope) -> Doubt {
        let mut state = self.lock();
        state.asked += 1;
        let doubt = Doubt(state.asked);
        if state.open.len() < LIMIT || state.open.contains_key(&key) {
            state.open.insert(key, (doubt, url));
        } else {
            state.about_all = true;
        }
        doubt
    }

    /// The doubt about a key, if there is one.
    pub(crate) fn about(&self, key: Key) -> Option<Doubt> {
        self.lock().open.get(&key).map(|(doubt, _)| *doubt)
    }

    /// Whether what the store has under a key may be believed.
    pub(crate) fn believes(&self, key: Key) -> bool {
        let state = self.lock();
        !state.about_all && !state.open.contains_key(&key)
    }

    /// The store forgot or replaced the record as it was when `doubt` was the last one; a later
    /// doubt stays.
    pub(crate) fn settle(&self, key: Key, doubt: Option<Doubt>) {
        let mut state = self.lock();
        if doubt.is_some() && state.open.get(&key).map(|(last, _)| *last) == doubt {
            state.open.remove(&key);
        }
    }

    /// What a purge must be about for nothing in doubt to be believed by another process.
    pub(crate) fn left(&self) -> Vec<Scope> {
        let state = self.lock();
        if state.about_all {
            return vec![Scope::All];
        }
        let urls: HashSet<Scope> = state.open.values().map(|(_, url)| *url).collect();
        urls.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::Site;

    fn key(number: usize) -> Key {
        Key((number as u128).to_le_bytes())
    }

    fn url(number: usize) -> Scope {
        Scope::Url { key: key(number), site: Site(1) }
    }

    #[test]
    fn a_doubt_lasts_until_it_is_settled_itself() {
        let doubts = UnconfirmedRemovals::default();
        assert!(doubts.believes(key(1)));
        let first = doubts.raise(key(1), url(1));
        let second = doubts.raise(key(1), url(1));
        doubts.settle(key(1), Some(first));
        assert_eq!(doubts.left(), [url(1)]);
        assert!(
            !doubts.believes(key(1)),
            "an answer to an earlier request says nothing of a later one"
        );
        doubts.settle(key(1), None);
        assert!(!doubts.believes(key(1)));
        doubts.settle(key(1), Some(second));
        assert!(doubts.believes(key(1)) && doubts.about(key(1)).is_none());
        assert_eq!(doubts.left(), []);
    }

    #[test]
    fn too_many_doubts_are_doubts_about_everything() {
        let doubts = UnconfirmedRemovals::default();
        for number in 0..LIMIT {
            doubts.raise(key(number), url(1));
        }
        assert!(doubts.believes(key(LIMIT + 1)));
        assert_eq!(doubts.left(), [url(1)], "each URL once");
        doubts.raise(key(LIMIT), url(1));
        assert!(!doubts.believes(key(LIMIT + 1)));
        assert_eq!(doubts.left(), [Scope::All]);
    }
}
