//! Starts, runs and stops the proxy. A *worker* is a thread that serves clients. Each worker has
//! its own listening socket on the shared address.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod connection;
mod disk_reads;
pub(crate) mod dispatch;
mod gauges;
pub mod handle;
pub(crate) mod http2;
pub(crate) mod identification;
mod identity;
pub(crate) mod intercepting;
pub mod listener;
pub mod moving;
mod node_requests;
pub mod purge_search;
pub(crate) mod purger;
pub(crate) mod request_log;
pub(crate) mod steering;
pub(crate) mod transparent;
pub(crate) mod tunnelling;

pub use crate::upstream::MakeResolver;
pub use gauges::{Gauges, OutcomeMetrics};

use crate::cache::Cache;
use crate::cache::cold::{ColdStore, ColdTier};
use crate::cache::compressions::Compressions;
use crate::cache::memory::MemoryTier;
use crate::cache::purge::Purges;
use crate::cache::refusals::Refusals;
use crate::cache::shared_parts::SharedParts;
use crate::cache::storage::{ObjectStore, Storage};
use crate::core::authentication::Authenticator;
use crate::core::byte_budget::ByteBudget;
use crate::core::counters::{self, Counter, Counters};
use crate::core::idle_client::{Heir, IdleClient};
use crate::core::places::Places;
use crate::flight::Flights;
use crate::request::access::AccessSink;
use crate::request::sample::AnswerSample;
use crate::server::accept::run_worker;
use crate::server::handle::ProxyHandle;
use crate::server::listener::{Bound, ListenerKind, SharedListener, WorkerListener};
use crate::server::moving::Adopter;
use crate::settings::ProxySettings;
use crate::upstream::NameResolver;
use crate::worker::{Course, Shared};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

/// The reason why the proxy did not start.
#[derive(Debug)]
pub enum StartError {
    /// The proxy cannot listen on the address.
    Listen(SocketAddr, io::Error),
    /// The operating system refused to create a thread or its event loop.
    Worker(io::Error),
    /// DNS cannot be set up.
    Resolver(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}; choose another address or port")
            }
            Self::Worker(error) => {
                write!(
                    f,
                    "a worker cannot start: {error}; check the limits on threads and descriptors"
                )
            }
            Self::Resolver(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StartError {}

/// Returns a function that creates resolvers of host names. The resolvers ask the DNS servers
/// `servers`, or the system's DNS servers if the list is empty.
pub fn name_resolver(servers: Vec<SocketAddr>) -> MakeResolver {
    Arc::new(move || match NameResolver::new(&servers) {
        Ok(resolver) => Ok(Rc::new(resolver)),
        Err(error) => Err(error.to_string()),
    })
}

/// Everything that a proxy needs besides its settings.
pub struct Parts {
    /// The disk store, if the cache has one.
    pub store: Option<Arc<dyn ObjectStore>>,
    /// The cold tier, if the cache has one. It needs a store.
    pub cold: Option<Arc<dyn ColdStore>>,
    /// The access log, if the proxy writes one.
    pub sink: Option<Arc<dyn AccessSink>>,
    /// The receiver of a sample of the answers, if there is one.
    pub sample: Option<Arc<dyn AnswerSample>>,
    /// The list of the purges that apply now, and the code that adds a purge to the list and makes
    /// it durable.
    pub purges: Purges,
    /// Creates the resolver of host names.
    pub resolver: MakeResolver,
    /// Open sockets that accept clients, in addition to the addresses in the settings.
    pub sockets: Vec<SharedListener>,
}

/// A running proxy. Dropping this value stops the proxy gracefully, like [`Proxy::stop`].
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    /// The first element counts events outside the workers, such as purges by the admin server.
    /// Each further element belongs to a worker.
    counters: Vec<Arc<Counters>>,
    course: watch::Sender<Course>,
    /// Copies of the listening sockets, for another process that takes over.
    sockets: Vec<SharedListener>,
    /// One channel for each worker. It passes the worker connections that another foxy process has
    /// accepted.
    adopts: Vec<UnboundedSender<IdleClient>>,
    threads: Vec<JoinHandle<()>>,
}

/// Memory in bytes for parts of stored bodies that are read or sent at the moment. The number is
/// large enough to keep disks busy.
const MAX_PART_BYTES: usize = 64 << 20;

/// Returns the number of bytes that the responses of all flights may use: half of the memory tier,
/// but at least 8 MiB. A flight is a fetch that several requests share. Bodies that are collected
/// for the cache may use the same number of bytes again.
fn flight_budget(memory: u64) -> usize {
    const LEAST: u64 = 8 << 20;
    usize::try_from((memory / 2).max(LEAST)).unwrap_or(usize::MAX)
}

impl Proxy {
    /// Opens the listening sockets, and starts the workers.
    pub fn start(mut settings: ProxySettings, parts: Parts) -> Result<Self, StartError> {
        let mut bound = Bound::open(&settings)
            .map_err(|(address, error)| StartError::Listen(address, error))?;
        for shared in parts.sockets {
            let tls = match shared.kind {
                ListenerKind::Plain | ListenerKind::Transparent => None,
                ListenerKind::Tls => settings.client_tls.as_ref(),
                ListenerKind::Nodes => settings.node_tls.as_ref(),
            };
            bound.share(shared, tls).map_err(StartError::Worker)?;
        }
        settings.destinations.own.extend(bound.addresses.iter().chain(&bound.shared));
        (parts.resolver)().map_err(StartError::Resolver)?;
        let budget = flight_budget(settings.memory);
        let (patience, policies) = (settings.store_patience, settings.policies());
        let cold = parts.cold.map(|store| ColdTier { store, policies: policies.clone() });
        let storage = parts.store.map(|store| Storage::new(store, patience, policies, budget));
        let limits = (settings.memory_object_limit, settings.object_limit);
        let memory = MemoryTier::new(settings.memory);
        let book = Arc::clone(&parts.purges.book);
        let cold = cold.filter(|_| storage.is_some());
        let cache = Cache::new(memory, limits, storage, book, cold, settings.seed);
        let shared = Arc::new(Shared {
            cache,
            flights: Flights::new(budget),
            purges: parts.purges,
            authenticator: Authenticator::new(settings.users.clone()),
            refusals: Refusals::default(),
            parts: SharedParts::new(budget.min(MAX_PART_BYTES)),
            compressions: Compressions::default(),
            waiting: ByteBudget::new(budget),
            requests: ByteBudget::new(budget),
            sink: parts.sink,
            sample: parts.sample,
            resolver: Arc::clone(&parts.resolver),
            leaving: AtomicBool::new(false),
            heir: OnceLock::new(),
            workers: AtomicU64::new(0),
            places: Places::new(
                settings.connections,
                settings.connections_per_client,
                settings.descriptors_for_connections,
            ),
            settings,
        });
        let (course, _) = watch::channel(Course::Serve);
        let sockets = std::mem::take(&mut bound.sockets);
        let counters = vec![Arc::new(Counters::default())];
        let mut proxy = Self {
            addresses: bound.addresses,
            shared,
            counters,
            course,
            sockets,
            adopts: Vec::new(),
            threads: Vec::new(),
        };
        for listeners in bound.workers {
            let (adopts, adopted) = tokio::sync::mpsc::unbounded_channel();
            proxy.adopts.push(adopts);
            let sources = (listeners, adopted);
            proxy.start_worker(sources, &parts.resolver).map_err(StartError::Worker)?;
        }
        Ok(proxy)
    }

    fn start_worker(
        &mut self,
        sources: (Vec<WorkerListener>, UnboundedReceiver<IdleClient>),
        resolver: &MakeResolver,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (counters, is_first) = (Arc::new(Counters::default()), self.threads.is_empty());
        self.counters.push(Arc::clone(&counters));
        let (shared, course, resolver) =
            (Arc::clone(&self.shared), self.course.subscribe(), Arc::clone(resolver));
        self.threads.push(std::thread::Builder::new().name("foxy-worker".into()).spawn(
            move || {
                tokio::task::LocalSet::new().block_on(
                    &runtime,
                    run_worker(shared, counters, sources, resolver, is_first, course),
                );
            },
        )?);
        Ok(())
    }

    /// Returns the addresses in the settings: first the addresses without TLS, then with TLS, then
    /// transparent addresses, then addresses for nodes.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the value of a counter, summed over all workers.
    pub fn count(&self, counter: Counter) -> u64 {
        counters::total(&self.counters, counter)
    }

    /// Returns a handle that reads counters and sizes. Any thread can use it while the proxy runs.
    pub fn gauges(&self) -> Gauges {
        Gauges { shared: Arc::clone(&self.shared), counters: self.counters.clone() }
    }

    /// Returns a [`ProxyHandle`], with which any thread can purge the cache, change settings and
    /// explain requests.
    pub fn handle(&self) -> ProxyHandle {
        ProxyHandle { shared: Arc::clone(&self.shared), counters: Arc::clone(&self.counters[0]) }
    }

    /// Returns the listening sockets: first the sockets without TLS, then the sockets with TLS. The
    /// caller may pass them to another process that takes over.
    pub fn sockets(&self) -> &[SharedListener] {
        &self.sockets
    }

    /// Returns an [`Adopter`], with which any thread can add connections while the proxy runs.
    pub fn adopter(&self) -> Adopter {
        let (shared, workers) = (Arc::clone(&self.shared), self.adopts.clone());
        Adopter { shared, workers, next: AtomicUsize::new(0) }
    }

    /// Accepts no more connections, because another process takes over. Returns the listening
    /// sockets. Gives each idle connection that can move to another process (see [`IdleClient`]) to
    /// `heir`. Each other connection closes after its next request. Requests are answered without
    /// the cache. From now on, the `PurgeKeeper` must send each purge to the other process.
    pub fn leave(&mut self, heir: Option<Heir>) -> Vec<SharedListener> {
        if let Some(heir) = heir {
            // A second call has no effect, because a proxy leaves only once.
            let _ = self.shared.heir.set(heir);
        }
        self.shared.leaving.store(true, Ordering::SeqCst);
        self.course.send_replace(Course::Leave);
        std::mem::take(&mut self.sockets)
    }

    /// Accepts no more requests, waits up to `stop_after` for requests in progress, and stops.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.sockets.clear();
        self.shared.leaving.store(true, Ordering::SeqCst);
        self.course.send_replace(Course::Stop);
        for thread in self.threads.drain(..) {
            // The error is ignored, because a worker that panicked has already reported its panic.
            let _ = thread.join();
        }
    }
}
