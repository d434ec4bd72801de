//! The side towards clients of the Multiplier (LEAP's request copier). It accepts connections,
//! sends each request on every path (proxies and origin), and returns the answer of one path.
//! Module `admission` refuses requests, `connection` reads requests, and `send` writes answers.

mod admission;
mod connection;
pub mod reasons;
mod send;
#[cfg(test)]
mod tests;

use super::context::RunContext;
use super::multiplier::group::RequestGroup;
use super::report::line::Line;
use super::report::{ClientReport, LeapReport};
use super::verdict::judging::Judging;
use super::{Asked, LeapRun};
use crate::leap::collector::Reach;
use crate::leap::collector::reach::{Pacer, is_near};
use crate::wire::key::Destination;
use crate::wire::tls::{Certificates, entrance};
use connection::FrontConnection;
use foxy_base::clock;
use foxy_http::Scheme;
pub use reasons::FrontRefusal;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

const TICK: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(10);

/// The options of the side towards clients (the *front*) of the Multiplier (LEAP's request copier).
#[derive(Debug)]
pub struct Front {
    /// The listener for clients.
    pub listener: TcpListener,
    /// The server for requests that name the Multiplier (LEAP's request copier) itself or no host.
    /// Without such a server, the Multiplier refuses these requests.
    pub authority: Option<String>,
    /// The scheme of the server in `authority`.
    pub scheme: Scheme,
    /// The certificates for clients that use TLS or tunnels. Without certificates, the Multiplier
    /// (LEAP's request copier) refuses TLS and tunnels.
    pub certificates: Option<Certificates>,
    /// The hosts and methods that clients may request, and the rate limit.
    pub reach: Reach,
    /// Whether clients may request any host, because a later server such as a Collector (common
    /// parent proxy) refuses forbidden hosts.
    pub any_host: bool,
    /// The largest number of client connections.
    pub most_connections: usize,
    /// If set, the run ends after this number of requests.
    pub requests: Option<u64>,
    /// If set, the run ends after this time.
    pub time: Option<Duration>,
}

impl Front {
    /// Listens on a free loopback port. The front (the side towards clients) forwards requests
    /// only to loopback and private hosts, and has no limit on requests or time.
    pub fn here() -> io::Result<Self> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(Self::at)
    }

    /// Accepts clients on this listener. The front (the side towards clients) forwards requests
    /// only to loopback and private hosts, and has no limit on requests or time.
    pub const fn at(listener: TcpListener) -> Self {
        Self {
            listener,
            authority: None,
            scheme: Scheme::Http,
            certificates: None,
            reach: Reach::Offline,
            any_host: false,
            most_connections: 1024,
            requests: None,
            time: None,
        }
    }
}

struct FrontState {
    context: Rc<RunContext>,
    front: Front,
    ends: UnboundedSender<RequestGroup>,
    /// The number of the path whose answer the client receives: the direct path to the origin if
    /// there is one, otherwise the first proxy.
    path: usize,
    own: Destination,
    via: String,
    begun: Cell<u64>,
    in_flight: Cell<usize>,
    answering: Cell<usize>,
    connections: Cell<usize>,
    over: Cell<bool>,
    /// Whether the direct path (copies without a proxy) leads to a Collector (common parent proxy).
    /// Empty until the first check.
    is_collector: OnceCell<bool>,
    pacer: RefCell<Pacer>,
    counts: RefCell<ClientReport>,
}

impl FrontState {
    fn new(
        context: Rc<RunContext>,
        front: Front,
        address: SocketAddr,
        ends: UnboundedSender<RequestGroup>,
    ) -> Self {
        Self {
            path: super::multiplier::group::direct(&context.run.paths).unwrap_or(0),
            own: Destination::at(Scheme::Http, address),
            via: format!("foxy-leap-{}-{}", std::process::id(), address.port()),
            begun: Cell::default(),
            in_flight: Cell::default(),
            answering: Cell::default(),
            connections: Cell::default(),
            over: Cell::default(),
            is_collector: OnceCell::new(),
            pacer: RefCell::default(),
            counts: RefCell::default(),
            context,
            front,
            ends,
        }
    }

    fn count(&self, act: impl FnOnce(&mut ClientReport)) {
        act(&mut self.counts.borrow_mut());
    }

    fn refuse(&self, reason: FrontRefusal) {
        self.count(|counts| counts.refused[reason as usize] += 1);
    }
}

/// Increments a counter of the side towards clients, such as the requests in flight. Dropping this
/// value decrements the counter.
struct Counted<F: Fn(&FrontState) -> &Cell<usize>>(Rc<FrontState>, F);

impl<F: Fn(&FrontState) -> &Cell<usize>> Counted<F> {
    fn new(state: &Rc<FrontState>, of: F) -> Self {
        of(state).set(of(state).get() + 1);
        Self(Rc::clone(state), of)
    }
}

impl<F: Fn(&FrontState) -> &Cell<usize>> Drop for Counted<F> {
    fn drop(&mut self) {
        let counted = (self.1)(&self.0);
        counted.set(counted.get() - 1);
    }
}

/// Serves clients until a limit of the front (the side towards clients) or the stop flag ends the
/// run. Open requests still finish. First sends `probe` twice on every path (proxies and origin) to
/// learn which fields vary by themselves. Calls `log` for each answer, and `progress` with the
/// number of requests so far.
pub fn serve(
    run: &LeapRun,
    probe: Option<&Asked>,
    front: Front,
    log: &mut dyn FnMut(&Line),
    progress: &mut dyn FnMut(u64),
) -> io::Result<LeapReport> {
    front.listener.set_nonblocking(true)?;
    let address = front.listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let mut judging = Judging::new(run)?;
        let (ends, mut ended) = unbounded_channel();
        let state = Rc::new(FrontState::new(Rc::clone(&judging.context), front, address, ends));
        let listener = tokio::net::TcpListener::from_std(state.front.listener.try_clone()?)?;
        if let Some(probe) = probe {
            judging.learn(probe).await;
        }
        let accepting = tokio::task::spawn_local(accept(listener, Rc::clone(&state)));
        let (started, used) = (clock::monotonic(), clock::thread_processor_time());
        loop {
            tokio::select! {
                biased;
                Some(group) = ended.recv() => judging.take(&group, log),
                () = tokio::time::sleep(TICK) => {}
            }
            progress(state.begun.get());
            let elapsed = clock::monotonic().since(started);
            let enough = state.front.requests.is_some_and(|most| state.begun.get() >= most);
            let late = state.front.time.is_some_and(|most| elapsed >= most);
            if state.over.get() || enough || late || run.interrupted.load(Relaxed) {
                state.over.set(true);
                accepting.abort();
                if state.in_flight.get() + state.answering.get() == 0 && ended.is_empty() {
                    judging.report.elapsed = elapsed;
                    judging.report.generator = clock::thread_processor_time().saturating_sub(used);
                    break;
                }
            }
        }
        let counts = state.counts.borrow().clone();
        let mut report = judging.finish();
        report.refused = counts.refused(FrontRefusal::TooManyRequests)
            + counts.refused(FrontRefusal::TooManyConnections);
        report.clients = Some(counts);
        Ok(report)
    })
}

async fn accept(listener: tokio::net::TcpListener, state: Rc<FrontState>) {
    loop {
        let Ok((client, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let address = peer.ip().to_canonical();
        if !is_near(address) {
            turn_away(&state, &client, FrontRefusal::Stranger);
        } else if state.connections.get() >= state.front.most_connections {
            turn_away(&state, &client, FrontRefusal::TooManyConnections);
        } else {
            state.count(|counts| counts.connections += 1);
            let held = Counted::new(&state, |state| &state.connections);
            let state = Rc::clone(&state);
            tokio::task::spawn_local(async move {
                // An error ends only this connection, so the result does not matter.
                let _ = entrance::serve(&FrontConnection { state, peer: address }, client).await;
                drop(held);
            });
        }
    }
}

fn turn_away(state: &FrontState, client: &TcpStream, reason: FrontRefusal) {
    state.refuse(reason);
    // If this write fails, the client has left and only the refusal is lost.
    let _ = client.try_write(&send::refusal(reason).to_bytes());
}
