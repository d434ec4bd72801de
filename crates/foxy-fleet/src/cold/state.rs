//! State of the cold tier that the proxy and the thread share.

use crate::cold::figures::ColdFigures;
use crate::cold::health::Health;
use crate::cold::index::ColdIndex;
use foxy_base::clock;
use foxy_proxy::cache::cold::{Key, Record};
use foxy_proxy::cache::purge::{NotPurged, PurgeBook, PurgeReply};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// A record that waits to be gathered.
pub(crate) struct Offered {
    pub(crate) key: Key,
    pub(crate) order: u64,
    pub(crate) record: Record,
}

/// A purge that holds on this node, and waits for the manifest.
pub(crate) struct WaitingPurge {
    pub(crate) moment: u64,
    pub(crate) reply: PurgeReply,
}

impl WaitingPurge {
    pub(crate) fn confirm(self) {
        (self.reply)(Ok(self.moment));
    }

    pub(crate) fn fail(self) {
        (self.reply)(Err(NotPurged::ColdAway));
    }
}

/// The purges in the manifest of another node.
pub(crate) struct OtherNode {
    pub(crate) book: Arc<PurgeBook>,
    /// For each further node, the number of its last purge before the other node's first record.
    pub(crate) earlier: Vec<(u64, u64)>,
}

/// State that the proxy and the thread share.
pub(crate) struct TierState {
    pub(crate) era: u64,
    pub(crate) has_engine: bool,
    pub(crate) patience: Duration,
    pub(crate) figures: Arc<ColdFigures>,
    /// The purges of this node.
    pub(crate) book: Arc<PurgeBook>,
    /// Tells the thread that the manifest must be written.
    pub(crate) changed: Notify,
    pub(crate) is_dirty: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    pub(crate) offered_bytes: AtomicUsize,
    index: Mutex<ColdIndex>,
    health: Mutex<Health>,
    others: Mutex<HashMap<u64, OtherNode>>,
    earlier: Mutex<Vec<(u64, u64)>>,
    waiting: Mutex<Vec<WaitingPurge>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TierState {
    pub(crate) fn new(
        (patience, has_engine): (Duration, bool),
        book: &Arc<PurgeBook>,
        figures: Arc<ColdFigures>,
    ) -> Self {
        Self {
            era: book.era(),
            has_engine,
            patience,
            figures,
            book: Arc::clone(book),
            changed: Notify::new(),
            is_dirty: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            offered_bytes: AtomicUsize::new(0),
            index: Mutex::default(),
            health: Mutex::default(),
            others: Mutex::default(),
            earlier: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, ColdIndex> {
        lock(&self.index)
    }

    pub(crate) fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }

    pub(crate) fn others(&self) -> MutexGuard<'_, HashMap<u64, OtherNode>> {
        lock(&self.others)
    }

    /// For each other node, the number of its last purge before this node's first record.
    pub(crate) fn earlier(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        lock(&self.earlier)
    }

    pub(crate) fn waiting(&self) -> MutexGuard<'_, Vec<WaitingPurge>> {
        lock(&self.waiting)
    }

    /// Asks the thread to write the manifest.
    pub(crate) fn changed(&self) {
        self.is_dirty.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(crate) fn remove(&self, key: Key) {
        let has_changed = self.index().remove(key, clock::wall());
        if has_changed {
            self.changed();
        }
    }
}

/// Waits until the value is true, or its sender is gone.
pub(crate) async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
