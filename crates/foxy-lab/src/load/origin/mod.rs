//! The verifying origin on the wire: one thread and runtime each, keep-alive, constant memory a
//! connection. What happens on a connection stands in `connection`.

pub mod answer;
mod connection;
mod documents;
mod mood;
mod ports;
mod tally;

use crate::wire::tls::Throwaway;
use connection::serve;
pub use mood::Mood;
use mood::SharedMood;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
pub use tally::Sent;
use tally::SentTally;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

const PAUSE: Duration = Duration::from_millis(10);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Options of an origin.
#[derive(Clone, Copy, Debug)]
pub struct OriginOptions {
    /// Listening address; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Number of threads.
    pub threads: usize,
}

#[derive(Debug, Default)]
struct OriginState {
    requests: AtomicU64,
    body_bytes: AtomicU64,
    connections: AtomicU64,
    not_accepted: AtomicU64,
    mood: SharedMood,
    tally: OnceLock<SentTally>,
    stopping: AtomicBool,
    stop: Notify,
}

/// A running origin. Dropping it stops it.
#[derive(Debug)]
pub struct Origin {
    servers: Vec<SocketAddr>,
    shared: Arc<OriginState>,
    threads: Vec<JoinHandle<()>>,
    authority: Option<String>,
}

impl Origin {
    /// Binds and starts serving.
    pub fn start(options: OriginOptions) -> io::Result<Self> {
        Self::start_servers(options, 1)
    }

    /// Serves on `servers` consecutive ports from the address on. A proxy sees different servers.
    pub fn start_servers(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, None)
    }

    /// Like [`Origin::start_servers`], behind TLS with a new certificate.
    pub fn start_tls(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, Some(Throwaway::make(options.listen.ip())?))
    }

    fn start_all(options: OriginOptions, servers: u32, tls: Option<Throwaway>) -> io::Result<Self> {
        let listeners = ports::bind(options.listen, servers)?;
        let servers = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.server()));
        let shared = Arc::new(OriginState::default());
        let mut threads = Vec::new();
        for _ in 0..options.threads.max(1) {
            let own =
                listeners.iter().map(TcpListener::try_clone).collect::<io::Result<Vec<_>>>()?;
            let (shared, acceptor) = (Arc::clone(&shared), acceptor.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            threads.push(std::thread::Builder::new().name("origin".into()).spawn(move || {
                tokio::task::LocalSet::new().block_on(&runtime, accept_all(own, shared, acceptor));
            })?);
        }
        Ok(Self { servers, shared, threads, authority: tls.map(|tls| tls.authority().to_owned()) })
    }

    /// The signing authority's certificate in PEM; `None` without TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Address of the first server.
    pub fn address(&self) -> SocketAddr {
        self.servers[0]
    }

    /// Addresses of all servers.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Sets the origin's health.
    pub fn set_mood(&self, mood: Mood) {
        self.shared.mood.set(mood);
    }

    /// The origin's health.
    pub fn mood(&self) -> Mood {
        self.shared.mood.get()
    }

    /// Starts counting sent bytes in `places` buckets. `place` maps a request number to a bucket.
    /// Ignores later calls.
    pub fn tally(
        &self,
        places: usize,
        place: impl Fn(Option<u64>) -> Option<usize> + Send + Sync + 'static,
    ) {
        // Whoever comes second reads what the first one's places hold.
        let _set_already = self.shared.tally.set(SentTally::new(places, Box::new(place)));
    }

    /// Sent answers by bucket; empty without [`Origin::tally`].
    pub fn tallied(&self) -> Vec<Sent> {
        self.shared.tally.get().map(SentTally::sent).unwrap_or_default()
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Failed accepts, mostly for want of file descriptors. The origin pauses after each.
    pub fn not_accepted(&self) -> u64 {
        self.shared.not_accepted.load(Ordering::Relaxed)
    }

    /// Body bytes sent so far.
    pub fn body_bytes(&self) -> u64 {
        self.shared.body_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            while !thread.is_finished() {
                self.shared.stop.notify_waiters();
                std::thread::yield_now();
            }
            // A thread that panicked has said so itself; there is nothing to add while dropping.
            let _ = thread.join();
        }
    }
}

async fn accept_all(
    listeners: Vec<TcpListener>,
    shared: Arc<OriginState>,
    tls: Option<TlsAcceptor>,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        tasks.spawn_local(accept(listener, Arc::clone(&shared), tls.clone()));
    }
    tasks.join_all().await;
}

async fn accept(listener: TcpListener, shared: Arc<OriginState>, tls: Option<TlsAcceptor>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    while !shared.stopping.load(Ordering::SeqCst) {
        tokio::select! {
            () = shared.stop.notified() => {}
            accepted = listener.accept() => match accepted {
                Ok(_) if shared.mood.get() == Mood::Down => {}
                Ok((stream, _)) => {
                    let (shared, tls) = (Arc::clone(&shared), tls.clone());
                    tokio::task::spawn_local(async move {
                        // A client that goes away ends its connection, and nothing else.
                        let _ = greet(stream, tls, &shared).await;
                    });
                }
                Err(_) => {
                    shared.not_accepted.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
}

async fn greet(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: &OriginState,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return serve(stream, shared).await };
    let stream = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await??;
    // Boxed, so that connections without TLS have no room for it.
    Box::pin(serve(stream, shared)).await
}
