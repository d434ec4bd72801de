//! The running proxy: a worker a thread, each with its own listener on the shared address; start, stop, numbers.

use crate::access::AccessSink;
use crate::cache::Cache;
use crate::counters::{self, Counter, Counters};
use crate::flight::Flights;
use crate::memory::MemoryTier;
use crate::serve;
use crate::settings::ProxySettings;
use crate::storage::{ObjectStore, Storage};
use crate::upstream::{Resolve, SystemResolver, UpstreamClient};
use crate::worker::{Shared, Worker};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Between attempts to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the proxy did not start.
#[derive(Debug)]
pub enum StartError {
    /// It cannot listen there.
    Listen(SocketAddr, io::Error),
    /// A thread or its event loop could not be made.
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
                write!(f, "a worker cannot start: {error}; check the limits on threads and descriptors")
            }
            Self::Resolver(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StartError {}

/// Makes a worker's resolver, on the worker's thread.
pub type MakeResolver = Arc<dyn Fn() -> Result<Rc<dyn Resolve>, String> + Send + Sync>;

/// The resolver of the system's settings.
#[must_use]
pub fn system_resolver() -> MakeResolver {
    Arc::new(|| match SystemResolver::new() {
        Ok(resolver) => Ok(Rc::new(resolver)),
        Err(error) => Err(error.to_string()),
    })
}

/// What a proxy is made of besides its settings.
pub struct Parts {
    /// The disk store, if there is one.
    pub store: Option<Arc<dyn ObjectStore>>,
    /// Who keeps the access log, if anybody.
    pub sink: Option<Arc<dyn AccessSink>>,
    /// How names are resolved.
    pub resolver: MakeResolver,
}

/// A running proxy. Dropping it stops it at once; [`Proxy::stop`] does it gracefully.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    counters: Vec<Arc<Counters>>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Listens and starts the workers.
    ///
    /// # Errors
    /// [`StartError`], naming the address or what else was missing.
    pub fn start(mut settings: ProxySettings, parts: Parts) -> Result<Self, StartError> {
        let workers = settings.workers.max(1);
        let mut listeners: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Vec::new();
        for wanted in settings.listen.clone() {
            // The workers' listeners share the port; with a stranger it must not be shared unseen.
            let free = TcpListener::bind(wanted).map_err(|error| StartError::Listen(wanted, error))?;
            let mut address = free.local_addr().map_err(|error| StartError::Listen(wanted, error))?;
            drop(free);
            for group in &mut listeners {
                let listener = listen(address).map_err(|error| StartError::Listen(wanted, error))?;
                address = listener.local_addr().map_err(|error| StartError::Listen(wanted, error))?;
                group.push(listener);
            }
            addresses.push(address);
        }
        settings.destinations.own.extend(&addresses);
        (parts.resolver)().map_err(StartError::Resolver)?;
        let storage = parts.store.map(|store| Storage::new(store, settings.store_patience));
        let limits = (settings.memory_object_limit, settings.object_limit);
        let cache = Cache::new(MemoryTier::new(settings.memory), limits, storage, settings.seed);
        let shared = Arc::new(Shared {
            cache,
            flights: Flights::default(),
            sink: parts.sink,
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            settings,
        });
        let (stop, _) = watch::channel(false);
        let mut proxy = Self { addresses, shared, counters: Vec::new(), stop, threads: Vec::new() };
        for listeners in listeners {
            proxy.start_worker(listeners, &parts.resolver).map_err(StartError::Worker)?;
        }
        Ok(proxy)
    }

    fn start_worker(&mut self, listeners: Vec<TcpListener>, resolver: &MakeResolver) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counters = Arc::new(Counters::default());
        self.counters.push(Arc::clone(&counters));
        let (shared, stop, resolver) =
            (Arc::clone(&self.shared), self.stop.subscribe(), Arc::clone(resolver));
        self.threads.push(std::thread::Builder::new().name("foxy-worker".into()).spawn(move || {
            tokio::task::LocalSet::new()
                .block_on(&runtime, work(shared, counters, listeners, resolver, stop));
        })?);
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The sum of a counter over all workers.
    #[must_use]
    pub fn count(&self, counter: Counter) -> u64 {
        counters::total(&self.counters, counter)
    }

    /// What numbers can be read from while it runs, from any thread.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        Gauges { shared: Arc::clone(&self.shared), counters: self.counters.clone() }
    }

    /// Accepts no more, lets requests in progress end within the time the settings give, and ends.
    pub fn stop(mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.stop.send_replace(true);
        self.join();
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.stop.send_replace(true);
        self.join();
    }
}

/// Numbers about a running proxy.
#[derive(Clone)]
pub struct Gauges {
    shared: Arc<Shared>,
    counters: Vec<Arc<Counters>>,
}

impl Gauges {
    /// The sum of a counter over all workers.
    #[must_use]
    pub fn count(&self, counter: Counter) -> u64 {
        counters::total(&self.counters, counter)
    }

    /// Bytes and entries in the memory tier.
    #[must_use]
    pub fn memory(&self) -> (u64, usize) {
        (self.shared.cache.memory.bytes(), self.shared.cache.memory.entries())
    }

    /// Client connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

/// A listener that shares its address with those of the other workers.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn work(
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    listeners: Vec<TcpListener>,
    resolver: MakeResolver,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(resolver) = resolver() else { return };
    let policy = Rc::new(shared.settings.destinations.clone());
    let upstream = UpstreamClient::new(shared.settings.upstream.clone(), resolver, policy);
    let worker = Rc::new(Worker::new(shared, upstream, counters));
    let clients = Rc::new(Clients::default());
    for listener in listeners {
        let (worker, clients) = (Rc::clone(&worker), Rc::clone(&clients));
        tokio::task::spawn_local(accept(worker, listener, clients, stop.clone()));
    }
    // The sender lives as long as the proxy; an error means that it is gone, which is a stop as well.
    let _ = stop.wait_for(|stopping| *stopping).await;
    clients.end_idle();
    let end = tokio::time::Instant::now() + worker.settings().stop_after;
    while clients.count() > 0 && tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
        clients.end_idle();
    }
}

type Client = (Rc<Cell<bool>>, tokio::task::JoinHandle<()>);

/// The connections of a worker: whether each is idle, and the handle that ends it.
#[derive(Default)]
struct Clients {
    table: RefCell<Vec<Client>>,
    grown: Cell<usize>,
}

impl Clients {
    fn add(&self, idle: Rc<Cell<bool>>, task: tokio::task::JoinHandle<()>) {
        let mut table = self.table.borrow_mut();
        table.push((idle, task));
        self.grown.set(self.grown.get() + 1);
        if self.grown.get() > 1024.max(table.len() / 2) {
            table.retain(|(_, task)| !task.is_finished());
            self.grown.set(0);
        }
    }

    fn end_idle(&self) {
        self.table.borrow().iter().filter(|(idle, _)| idle.get()).for_each(|(_, task)| task.abort());
    }

    fn count(&self) -> usize {
        self.table.borrow().iter().filter(|(_, task)| !task.is_finished()).count()
    }
}

async fn accept(
    worker: Rc<Worker>,
    listener: TcpListener,
    clients: Rc<Clients>,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Without it answers are only slower.
        let _ = stream.set_nodelay(true);
        worker.counters.add(Counter::Connections, 1);
        let open = Open::count(&worker.shared);
        let idle = Rc::new(Cell::new(true));
        if open.number > worker.settings().connections {
            worker.counters.add(Counter::ConnectionsRefused, 1);
            let worker = Rc::clone(&worker);
            tokio::task::spawn_local(async move {
                serve::turn_away(worker, stream).await;
                drop(open);
            });
            continue;
        }
        let (worker, flag) = (Rc::clone(&worker), Rc::clone(&idle));
        let task = tokio::task::spawn_local(async move {
            serve::serve(worker, stream, peer, flag).await;
            drop(open);
        });
        clients.add(idle, task);
    }
}

/// Counts a connection as open until dropped.
struct Open {
    shared: Arc<Shared>,
    number: usize,
}

impl Open {
    fn count(shared: &Arc<Shared>) -> Self {
        let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
        Self { shared: Arc::clone(shared), number }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
