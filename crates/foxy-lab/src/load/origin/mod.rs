//! foxy's own origin (`foxy origin`): its sockets, threads, health and counts. It puts the number
//! of each request into the answer, so that clients recognise cache hits. Module `answer` computes
//! the answers.

pub mod answer;
mod connection;
pub(super) mod documents;

use crate::wire::REQUEST_ID;
use crate::wire::tls::EphemeralAuthority;
use answer::Reply;
use connection::serve;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

const PAUSE: Duration = Duration::from_millis(10);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The options of an origin.
#[derive(Clone, Copy, Debug)]
pub struct OriginOptions {
    /// The address of the listener. Port 0 means any free port.
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
    health: SharedHealth,
    tally: OnceLock<SentTally>,
    stopping: AtomicBool,
    stop: Notify,
}

/// A running origin. Dropping this value stops the origin.
#[derive(Debug)]
pub struct Origin {
    servers: Vec<SocketAddr>,
    shared: Arc<OriginState>,
    threads: Vec<JoinHandle<()>>,
    authority: Option<String>,
}

impl Origin {
    /// Binds the listener and starts serving.
    pub fn start(options: OriginOptions) -> io::Result<Self> {
        Self::start_servers(options, 1)
    }

    /// Binds `servers` consecutive ports and starts serving. A proxy sees each port as a separate
    /// server.
    pub fn start_servers(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, None)
    }

    /// Starts servers like [`Origin::start_servers`], but with TLS and a new certificate.
    pub fn start_tls(options: OriginOptions, servers: u32) -> io::Result<Self> {
        Self::start_all(options, servers, Some(EphemeralAuthority::make(options.listen.ip())?))
    }

    fn start_all(
        options: OriginOptions,
        servers: u32,
        tls: Option<EphemeralAuthority>,
    ) -> io::Result<Self> {
        let listeners = bind(options.listen, servers)?;
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

    /// Returns the certificate of the signing authority in PEM. Returns `None` without TLS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Returns the address of the first server.
    pub fn address(&self) -> SocketAddr {
        self.servers[0]
    }

    /// Returns the addresses of all servers.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Sets the origin's health.
    pub fn set_health(&self, health: Health) {
        self.shared.health.set(health);
    }

    /// Returns the origin's health.
    pub fn health(&self) -> Health {
        self.shared.health.get()
    }

    /// Starts to count answers and body bytes in `places` groups. `place` maps the number of a
    /// request to its group. Only the first call has an effect.
    pub fn tally(
        &self,
        places: usize,
        place: impl Fn(Option<u64>) -> Option<usize> + Send + Sync + 'static,
    ) {
        // The call fails if the groups for counting were set before. Then nothing changes.
        let _set_already = self.shared.tally.set(SentTally::new(places, Box::new(place)));
    }

    /// Returns the counts of answers and body bytes in each group. The list is empty before the
    /// first call of [`Origin::tally`].
    pub fn tallied(&self) -> Vec<Sent> {
        self.shared.tally.get().map(SentTally::sent).unwrap_or_default()
    }

    /// Returns the number of requests answered so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns how often the origin could not accept a connection. Usually no file descriptor was
    /// free. The origin pauses after each failure.
    pub fn not_accepted(&self) -> u64 {
        self.shared.not_accepted.load(Ordering::Relaxed)
    }

    /// Returns the number of body bytes sent so far.
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
            // A panicked thread has already printed its panic, so the result is not needed.
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
                Ok(_) if shared.health.get() == Health::Down => {}
                Ok((stream, _)) => {
                    let (shared, tls) = (Arc::clone(&shared), tls.clone());
                    tokio::task::spawn_local(async move {
                        // An error ends only this connection, so the result does not matter.
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
    // The TLS future is large. The box keeps the futures of plain connections small.
    Box::pin(serve(stream, shared)).await
}

/// The health of an origin, with which tests simulate a broken or slow origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The origin answers normally.
    Well,
    /// Closes every connection, either at once or after a request.
    Down,
    /// Delays each answer by this time.
    Slow(Duration),
}

const DOWN: u64 = u64::MAX;

/// The health as a number: the delay of answers in nanoseconds, or [`DOWN`].
#[derive(Debug, Default)]
struct SharedHealth(AtomicU64);

impl SharedHealth {
    fn set(&self, health: Health) {
        let value = match health {
            Health::Well => 0,
            Health::Down => DOWN,
            Health::Slow(delay) => u64::try_from(delay.as_nanos()).unwrap_or(DOWN - 1),
        };
        self.0.store(value, Relaxed);
    }

    fn get(&self) -> Health {
        match self.0.load(Relaxed) {
            0 => Health::Well,
            DOWN => Health::Down,
            nanoseconds => Health::Slow(Duration::from_nanos(nanoseconds)),
        }
    }
}

/// The range from which the origin chooses its first port. It lies below the ephemeral ports, from
/// which the kernel chooses ports for client connections.
const FIRST_PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Binds `servers` consecutive ports. With port 0, searches for free consecutive ports.
fn bind(listen: SocketAddr, servers: u32) -> io::Result<Vec<TcpListener>> {
    let bind_from = |first: u16| -> io::Result<Vec<TcpListener>> {
        let bind = |number: u32| {
            let port = u16::try_from(u32::from(first) + number)
                .map_err(|_| io::ErrorKind::AddrNotAvailable)?;
            let listener = TcpListener::bind(SocketAddr::new(listen.ip(), port))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        (0..servers.max(1)).map(bind).collect()
    };
    if servers <= 1 || listen.port() != 0 {
        return bind_from(listen.port());
    }
    let mut first = FIRST_PORTS.start;
    loop {
        match bind_from(first) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let next = u16::try_from(u32::from(first) + servers).unwrap_or(u16::MAX);
                if !FIRST_PORTS.contains(&next) {
                    return Err(error);
                }
                first = next;
            }
            bound => return bound,
        }
    }
}

/// Maps the number of a request, if known, to the group in which its answer counts.
type Place = Box<dyn Fn(Option<u64>) -> Option<usize> + Send + Sync>;

struct SentTally {
    place: Place,
    counts: Vec<[AtomicU64; 2]>,
}

/// The numbers of answers and body bytes for one group of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// The number of answers to this group of requests.
    pub answers: u64,
    /// The number of body bytes.
    pub bytes: u64,
}

impl SentTally {
    fn new(places: usize, place: Place) -> Self {
        Self { place, counts: (0..places).map(|_| Default::default()).collect() }
    }

    fn sent(&self) -> Vec<Sent> {
        let sent = |[answers, bytes]: &[AtomicU64; 2]| Sent {
            answers: answers.load(Relaxed),
            bytes: bytes.load(Relaxed),
        };
        self.counts.iter().map(sent).collect()
    }
}

impl fmt::Debug for SentTally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SentTally").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl OriginState {
    fn count(&self, reply: &Reply, bytes: u64) {
        self.body_bytes.fetch_add(bytes, Relaxed);
        let Some(tally) = self.tally.get() else { return };
        let number = reply.head.headers.get_str(REQUEST_ID).and_then(|number| number.parse().ok());
        if let Some([answers, sum]) =
            (tally.place)(number).and_then(|place| tally.counts.get(place))
        {
            answers.fetch_add(1, Relaxed);
            sum.fetch_add(bytes, Relaxed);
        }
    }
}
