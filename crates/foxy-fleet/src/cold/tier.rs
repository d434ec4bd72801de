//! The cold tier as the proxy uses it. Nothing here waits: a thread talks to the store.

use crate::cold::figures::{ColdFigures, Prices, RefusedReason};
use crate::cold::index::Refused;
use crate::cold::keeper::ColdKeeper;
use crate::cold::reading::ReadRequest;
use crate::cold::remote::{Remote, StoreAddress};
use crate::cold::state::{Offered, TierState};
use crate::cold::worker;
use foxy_base::clock;
use foxy_proxy::cache::cold::{ColdReply, ColdStore, EarlierPurges, Key, OfferEnd, Record};
use foxy_proxy::cache::purge::Purges;
use foxy_proxy::core::outcome::ColdMiss;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Largest number of records, and of their bytes, that wait to be gathered.
const MAX_OFFERS: usize = 1024;
const MAX_OFFERED_BYTES: usize = 8 << 20;
/// Largest number of reads that wait for the thread.
const MAX_READS: usize = 256;

/// The settings of a cold tier.
pub struct TierSettings {
    /// The store.
    pub address: StoreAddress,
    /// Longest time for which a request waits for a record.
    pub patience: Duration,
    /// Prices of requests to the store.
    pub prices: Prices,
    /// Whether the fleet has an engine. Its purges do not wait for this node's manifest.
    pub has_engine: bool,
}

/// A running cold tier. Dropping this value stops it like [`RunningTier::end`].
pub struct RunningTier {
    state: Arc<TierState>,
    store: Arc<TierStore>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// The counters and sizes of a cold tier, for metrics.
#[derive(Clone)]
pub struct TierFacts(Arc<TierState>);

impl TierFacts {
    /// Returns the counts of requests.
    pub fn figures(&self) -> &ColdFigures {
        &self.0.figures
    }

    /// Returns the numbers of records that can be found, and that wait for their segment.
    pub fn records(&self) -> (usize, usize) {
        self.0.index().counts()
    }

    /// Whether the store answers, and the manifests were read.
    pub fn is_up(&self) -> bool {
        self.0.health().is_up() && self.0.index().is_loaded()
    }
}

impl RunningTier {
    /// Starts the thread. `purges` then waits for the manifest, unless the fleet has an engine.
    ///
    /// # Errors
    /// The reason why the settings are unusable, or why the thread cannot start.
    pub fn start(settings: TierSettings, purges: &mut Purges) -> Result<Self, String> {
        let figures = Arc::new(ColdFigures::new(settings.prices));
        let remote = Remote::new(&settings.address, Arc::clone(&figures))?;
        let kind = (settings.patience, settings.has_engine);
        let state = Arc::new(TierState::new(kind, &purges.book, figures));
        let (offers, offered) = mpsc::channel(MAX_OFFERS);
        let (reads, asked) = mpsc::channel(MAX_READS);
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::clone(&state);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let run = move || runtime.block_on(worker::run(&shared, &remote, offered, asked, stopped));
        let thread = std::thread::Builder::new().name("cold".into()).spawn(run);
        let thread = Some(thread.map_err(|error| error.to_string())?);
        let inner = Arc::clone(&purges.keeper);
        purges.keeper = Arc::new(ColdKeeper::new(inner, Arc::clone(&state)));
        let store = Arc::new(TierStore { state: Arc::clone(&state), offers, reads });
        Ok(Self { state, store, stop, thread })
    }

    /// Returns the cold tier for the proxy.
    pub fn store(&self) -> Arc<dyn ColdStore> {
        Arc::clone(&self.store) as _
    }

    /// Returns the counters and sizes of the cold tier, for metrics.
    pub fn facts(&self) -> TierFacts {
        TierFacts(Arc::clone(&self.state))
    }

    /// Sends the gathered records to the store, within a time limit, and stops the thread.
    pub fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            self.state.has_ended.store(true, Ordering::Release);
        }
    }
}

impl Drop for RunningTier {
    fn drop(&mut self) {
        self.end();
    }
}

struct TierStore {
    state: Arc<TierState>,
    offers: mpsc::Sender<Offered>,
    reads: mpsc::Sender<ReadRequest>,
}

impl ColdStore for TierStore {
    fn offer(&self, key: Key, record: Record) -> OfferEnd {
        let state = &self.state;
        let refused = |why, end| {
            state.figures.refuse(why);
            end
        };
        if state.offered_bytes.load(Ordering::Relaxed) + record.len() > MAX_OFFERED_BYTES {
            return refused(RefusedReason::Busy, OfferEnd::NoRoom);
        }
        let order = match state.index().offer(key, clock::wall()) {
            Ok(order) => order,
            Err(Refused::Known) => return refused(RefusedReason::Known, OfferEnd::Settled),
            Err(Refused::Full) => return refused(RefusedReason::Full, OfferEnd::NoRoom),
        };
        let bytes = record.len();
        state.offered_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.offers.try_send(Offered { key, order, record }).is_err() {
            state.offered_bytes.fetch_sub(bytes, Ordering::Relaxed);
            state.index().withdraw(key, order);
            return refused(RefusedReason::Busy, OfferEnd::NoRoom);
        }
        OfferEnd::Settled
    }

    fn remove(&self, key: Key) {
        self.state.remove(key);
    }

    fn has(&self, key: Key) -> bool {
        self.state.index().has(key)
    }

    fn get(&self, key: Key, reply: ColdReply) {
        let Some(place) = self.state.index().find(key) else {
            return reply(Err(ColdMiss::Lost));
        };
        if !self.state.health().may_ask(clock::monotonic()) {
            return reply(Err(ColdMiss::Away));
        }
        let asked = tokio::time::Instant::now();
        if let Err(error) = self.reads.try_send(ReadRequest { key, place, asked, reply }) {
            (error.into_inner().reply)(Err(ColdMiss::Busy));
        }
    }

    fn purges_of(&self, era: u64) -> Vec<EarlierPurges> {
        let others = self.state.others();
        let earlier = others.get(&era).map_or(&[][..], |other| &other.earlier);
        let books = others.values().map(|other| &other.book).chain([&self.state.book]);
        let lists = books.map(|book| {
            let known = earlier.iter().find(|(era, _)| *era == book.era());
            let moment = known.map_or(0, |(_, moment)| *moment);
            EarlierPurges { book: Arc::clone(book), moment }
        });
        lists.collect()
    }

    fn patience(&self) -> Duration {
        self.state.patience
    }
}
