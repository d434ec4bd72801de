//! The flights under way, by URL: who leads one, who follows, which is no longer to be joined.

use crate::cache::epoch::Epoch;
use crate::cache::stored::Stored;
use crate::flight::memory_budget::{Collected, MemoryBudget};
use crate::flight::{Flight, Reader};
use foxy_store::{Key, KeyMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The flights under way, by URL.
#[derive(Debug)]
pub(crate) struct Flights {
    table: Mutex<KeyMap<Arc<Flight>>>,
    memory_budget: Arc<MemoryBudget>,
}

/// Whether a request leads a flight or follows one.
pub(crate) enum Boarding {
    /// It must start the fill.
    Leads(Arc<Flight>, Reader),
    /// Another request's fill will answer it.
    Follows(Reader),
    /// A fill has brought it since the request looked.
    Landed(Arc<Stored>),
}

impl Flights {
    /// None yet; all of them together hold about `budget` bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self { table: Mutex::default(), memory_budget: Arc::new(MemoryBudget::new(budget)) }
    }

    /// What is collected of one body for the cache, within the budget of all.
    pub(crate) fn collected(&self) -> Collected {
        Collected::new(Arc::clone(&self.memory_budget))
    }

    /// A flight that nobody else can join.
    pub(crate) fn alone(&self, epoch: Epoch) -> (Arc<Flight>, Reader) {
        let flight = Flight::new(epoch, Arc::clone(&self.memory_budget));
        let reader = flight.join().expect("a new flight can be joined");
        (flight, reader)
    }

    /// Joins the flight of a URL, or begins one. A flight is joined only while it `fits`: what it
    /// fetches may have been invalidated or purged since, or gone stale. None is begun for what has
    /// just `landed`.
    pub(crate) fn board(
        &self,
        key: Key,
        epoch: Epoch,
        fits: impl Fn(&Flight) -> bool,
        landed: impl FnOnce() -> Option<Arc<Stored>>,
    ) -> Boarding {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = table.get(&key).filter(|flight| fits(flight))
            && let Some(reader) = flight.join()
        {
            return Boarding::Follows(reader);
        }
        if let Some(found) = landed() {
            return Boarding::Landed(found);
        }
        let (flight, reader) = self.alone(epoch);
        table.insert(key, Arc::clone(&flight));
        Boarding::Leads(flight, reader)
    }

    /// Begins a flight of its own for a request that may not be answered by one that began earlier.
    pub(crate) fn lead(&self, key: Key, epoch: Epoch) -> (Arc<Flight>, Reader) {
        let (flight, reader) = self.alone(epoch);
        self.table.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&flight));
        (flight, reader)
    }

    /// Lets requests for another key join a flight too, if none that began later is under way.
    pub(crate) fn also(&self, key: Key, flight: &Arc<Flight>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.get(&key).is_some_and(|other| other.epoch.is_after(flight.epoch)) {
            table.insert(key, Arc::clone(flight));
        }
    }

    /// Takes a flight off the table, if it is still the URL's.
    pub(crate) fn land(&self, key: Key, flight: &Arc<Flight>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.get(&key).is_some_and(|other| Arc::ptr_eq(other, flight)) {
            table.remove(&key);
        }
    }
}
