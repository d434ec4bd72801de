//! Accepts the client connections of a worker, counts them, and ends them when the proxy stops. A
//! worker is a thread that serves clients.

use crate::cache::Storage;
use crate::core::addresses::proxy_header::{self, ProxiedClient};
use crate::core::addresses::transparency::original_destination;
use crate::core::counters::{Counter, Counters};
use crate::core::idle_client::IdleClient;
use crate::core::places::{ClientBlock, NoPlace, Place};
use crate::core::tls::{AcceptedTls, ClientTls, HANDSHAKE, HandshakeFailure};
use crate::core::transport::{Transport, is_out_of_descriptors};
use crate::request::reason::ErrorReason;
use crate::server::MakeResolver;
use crate::server::connection::{self, ConnectionState};
use crate::server::disk_reads;
use crate::server::listener::{Acceptor, ListenerKind, WorkerListener};
use crate::server::moving;
use crate::upstream::{UpstreamClient, nodes, probing};
use crate::worker::{Course, Shared, Worker};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::Instant;

/// Pause between attempts to accept a connection while the process or the system has no file
/// descriptors left.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(50);

/// Number of unsent bytes that the kernel may buffer for one client.
const MAX_UNSENT_BYTES: u32 = 128 << 10;

/// Pause before the worker tries again to close an idle connection for a new connection.
const PLACE_PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn run_worker(
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    (listeners, adopted): (Vec<WorkerListener>, UnboundedReceiver<IdleClient>),
    resolver: MakeResolver,
    is_first: bool,
    mut course: watch::Receiver<Course>,
) {
    let Ok(resolver) = resolver() else { return };
    let policy = Rc::new(shared.settings.destinations.clone());
    let upstream =
        UpstreamClient::new(shared.settings.upstream.clone(), resolver, policy, &counters);
    let clients = Rc::new(Clients::default());
    tokio::task::spawn_local(give_memory_back(Rc::clone(&clients), shared.settings.give_back));
    let is_for_rings = shared.cache.storage().is_some_and(Storage::is_for_rings);
    tokio::task::spawn_local(disk_reads::run(is_for_rings));
    if let Some(origins) = shared.settings.mode.origins().filter(|_| is_first) {
        tokio::task::spawn_local(probing::run(upstream.clone(), origins.clone()));
    }
    if let Some(link) = shared.settings.upstream.fleet.clone().filter(|_| is_first) {
        let counters = Arc::clone(&counters);
        tokio::task::spawn_local(nodes::ping_all(upstream.clone(), link, counters));
    }
    let worker = Rc::new(Worker::new(shared, upstream, counters, course.clone()));
    let watching = Rc::clone(&worker);
    tokio::task::spawn_local(async move { watching.watch_leaving().await });
    let adopting = moving::adopt(Rc::clone(&worker), adopted, Rc::clone(&clients), course.clone());
    tokio::task::spawn_local(adopting);
    for listener in listeners {
        let (worker, clients) = (Rc::clone(&worker), Rc::clone(&clients));
        tokio::task::spawn_local(accept(worker, listener, clients, course.clone()));
    }
    // `wait_for` also ends, with an error, if the `Proxy` that owns the sender no longer exists.
    // The worker then stops too.
    let _ = course.wait_for(|course| *course == Course::Stop).await;
    clients.end_idle();
    let end = Instant::now() + worker.settings().stop_after;
    while clients.count() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
        clients.end_idle();
    }
}

/// Repeatedly returns freed memory of this worker's thread to the operating system. `give_back`
/// returns the memory, and its result is the time until the next call.
async fn give_memory_back(clients: Rc<Clients>, give_back: Option<fn() -> Duration>) {
    let Some(give_back) = give_back else { return };
    loop {
        clients.forget_ended();
        tokio::time::sleep(give_back()).await;
    }
}

struct ClientTask {
    is_idle: Rc<Cell<bool>>,
    task: tokio::task::JoinHandle<()>,
}

/// The tasks that serve the connections of a worker. The handle of a task that has ended still uses
/// about 10 KB of memory, so it must be removed.
#[derive(Default)]
pub(crate) struct Clients {
    table: RefCell<Vec<ClientTask>>,
    grown: Cell<usize>,
}

impl Clients {
    fn add(&self, client: ClientTask) {
        self.table.borrow_mut().push(client);
        self.grown.set(self.grown.get() + 1);
        if self.grown.get() > 1024.max(self.table.borrow().len() / 2) {
            self.forget_ended();
        }
    }

    fn forget_ended(&self) {
        self.table.borrow_mut().retain(|client| !client.task.is_finished());
        self.grown.set(0);
    }

    fn end_idle(&self) {
        self.table
            .borrow()
            .iter()
            .filter(|client| client.is_idle.get())
            .for_each(|client| client.task.abort());
    }

    fn count(&self) -> usize {
        self.table.borrow().iter().filter(|client| !client.task.is_finished()).count()
    }
}

async fn accept(
    worker: Rc<Worker>,
    WorkerListener { socket, kind, tls }: WorkerListener,
    clients: Rc<Clients>,
    mut course: watch::Receiver<Course>,
) {
    let Ok(listener) = Acceptor::new(socket) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = course.wait_for(|course| *course != Course::Serve) => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if is_out_of_descriptors(&error) {
                    worker
                        .counters
                        .add(Counter::ConnectionsYielded, worker.shared.places.free_one().into());
                }
                tokio::time::sleep(DESCRIPTOR_PAUSE).await;
                continue;
            }
        };
        // If this call fails, clients receive answers a little later.
        let _ = stream.set_nodelay(true);
        // If this call fails, the kernel buffers more bytes for slow clients.
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        worker.counters.add(Counter::Connections, 1);
        let address = peer.ip().to_canonical();
        let is_balanced =
            worker.settings().proxy_protocol_from.iter().any(|block| block.contains(address));
        // A load balancer forwards many clients, so its address must not count as one client.
        let client = (!is_balanced).then(|| ClientBlock::from(address));
        let Some(place) = place(&worker, client, &mut course).await else { return };
        let place = match place {
            Ok((place, yielded)) => {
                worker.counters.add(Counter::ConnectionsYielded, yielded.into());
                place
            }
            Err(full) => {
                refuse(&worker, stream, peer, tls.is_some(), full);
                continue;
            }
        };
        let is_node = kind == ListenerKind::Nodes;
        let is_balanced = is_balanced && !is_node;
        let handshakes = (tls.is_some() || is_balanced || is_node).then(|| Handshakes {
            tls: tls.clone(),
            is_balanced,
            is_node,
        });
        let is_redirected = worker.settings().is_redirected;
        let aimed_at = match kind {
            ListenerKind::Plain | ListenerKind::Tls | ListenerKind::Nodes => None,
            ListenerKind::Transparent => match original_destination(&stream, is_redirected) {
                Ok(destination) => Some(destination),
                Err(_) => continue,
            },
        };
        begin(&worker, &clients, NewClient { stream, peer, aimed_at }, handshakes, place);
    }
}

/// A client connection that was just accepted, or that another foxy process has passed on.
pub(crate) struct NewClient {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    /// The destination that the client of a transparent listener chose.
    pub(crate) aimed_at: Option<SocketAddr>,
}

/// The steps before the first request of a connection.
pub(crate) struct Handshakes {
    tls: Option<ClientTls>,
    /// True if a PROXY header comes first.
    is_balanced: bool,
    /// True if only a node of the fleet may connect.
    is_node: bool,
}

/// Starts the task of a connection.
pub(crate) fn begin(
    worker: &Rc<Worker>,
    clients: &Clients,
    NewClient { stream, peer, aimed_at }: NewClient,
    handshakes: Option<Handshakes>,
    place: Place,
) {
    let (activity, idle) = (place.activity().clone(), Rc::new(Cell::new(true)));
    let state =
        ConnectionState { idle: Rc::clone(&idle), place, presented: None, node: None, aimed_at };
    let worker = Rc::clone(worker);
    // The connection counts as idle only when its task waits for a request.
    activity.begin_work();
    let task = match handshakes {
        None => {
            let stream = Transport::Plain(stream);
            tokio::task::spawn_local(connection::serve(worker, stream, peer, state))
        }
        Some(handshakes) => {
            let shaken = Box::pin(shake_hands(worker, handshakes, stream, peer, state));
            tokio::task::spawn_local(async move {
                let Some(served) = shaken.await else { return };
                served.await;
            })
        }
    };
    activity.set_task(task.abort_handle());
    clients.add(ClientTask { is_idle: idle, task });
}

/// Does the steps before the first request of a connection. Returns the future that serves the
/// connection.
async fn shake_hands(
    worker: Rc<Worker>,
    Handshakes { tls, is_balanced, is_node }: Handshakes,
    stream: TcpStream,
    peer: SocketAddr,
    state: ConnectionState,
) -> Option<impl Future<Output = ()>> {
    state.place.activity().begin_wait(Instant::now());
    let (accepted, peer) = prepare(&worker, tls, stream, peer, is_balanced, &state.place).await?;
    let AcceptedTls { transport, presented } = accepted;
    let node = if is_node { worker.node_of(presented.as_deref()) } else { None };
    if is_node && node.is_none() {
        worker.counters.add(Counter::CertificatesRefused, 1);
        return None;
    }
    let state = ConnectionState { presented, node, ..state };
    Some(connection::serve(worker, transport, peer, state))
}

/// Takes a place for a new connection. Each client connection needs a place. Waits if a place will
/// be free in a moment, or if file descriptors are short. Meanwhile further new clients stay in the
/// listen queue. Returns `None` when the proxy stops.
pub(crate) async fn place(
    worker: &Worker,
    client: Option<ClientBlock>,
    course: &mut watch::Receiver<Course>,
) -> Option<Result<(Place, bool), NoPlace>> {
    let places = &worker.shared.places;
    loop {
        let mut freed = pin!(places.freed());
        freed.as_mut().enable();
        let soon = match places.take(client) {
            Err(NoPlace::Descriptors) => false,
            Err(NoPlace::Soon) => true,
            taken => return Some(taken),
        };
        tokio::select! {
            () = freed => {}
            () = tokio::time::sleep(PLACE_PAUSE), if soon => {}
            _ = course.wait_for(|course| *course == Course::Stop) => return None,
        }
    }
}

/// Answers a new connection with an error, because no place is free for it. A client with TLS
/// receives no answer. The client also receives no answer while the proxy refuses many other
/// clients.
pub(crate) fn refuse(
    worker: &Rc<Worker>,
    stream: TcpStream,
    peer: SocketAddr,
    is_tls: bool,
    full: NoPlace,
) {
    worker.counters.add(Counter::ConnectionsRefused, 1);
    let Some(refusal) = worker.shared.places.refuse().filter(|_| !is_tls) else { return };
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        connection::turn_away(worker, stream, peer, full.into()).await;
        drop(refusal);
    });
}

/// Prepares a connection for its first request. Reads the PROXY protocol header if the peer is a
/// load balancer, and does the TLS handshake.
async fn prepare(
    worker: &Rc<Worker>,
    tls: Option<ClientTls>,
    mut stream: TcpStream,
    mut peer: SocketAddr,
    is_balanced: bool,
    place: &Place,
) -> Option<(AcceptedTls, SocketAddr)> {
    if is_balanced {
        let header = proxy_header::read(&mut stream);
        match tokio::time::timeout(worker.settings().client_head, header).await {
            Ok(Some(ProxiedClient::Known(client))) => {
                peer = client;
                match place.name(ClientBlock::from(client.ip())) {
                    Ok(yielded) => worker.counters.add(Counter::ConnectionsYielded, yielded.into()),
                    Err(full) => {
                        refuse(worker, stream, peer, tls.is_some(), full);
                        return None;
                    }
                }
            }
            Ok(Some(ProxiedClient::Unknown)) => {}
            Ok(None) | Err(_) => {
                worker.counters.add(Counter::BadProxyHeaders, 1);
                return None;
            }
        }
    }
    let accepted = match tls {
        None => AcceptedTls { transport: Transport::Plain(stream), presented: None },
        Some(tls) => accept_tls(worker, &tls, stream, peer).await?,
    };
    Some((accepted, peer))
}

/// Does the TLS handshake with a client within the time limit. If the client sends plain HTTP,
/// answers with an error.
async fn accept_tls(
    worker: &Rc<Worker>,
    tls: &ClientTls,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<AcceptedTls> {
    let mut first = [0];
    let handshake = async {
        match stream.peek(&mut first).await {
            Ok(1) if first[0].is_ascii_uppercase() => Err(stream),
            Ok(1) if first[0] == HANDSHAKE => {
                Ok(tls.accept(stream, peer.ip().to_canonical()).await)
            }
            _ => Ok(Err(HandshakeFailure::Failed)),
        }
    };
    match tokio::time::timeout(worker.settings().client_handshake, handshake).await {
        Ok(Ok(Ok(accepted))) => return Some(accepted),
        Ok(Err(stream)) => {
            connection::turn_away(Rc::clone(worker), stream, peer, ErrorReason::PlainOnTls).await;
        }
        Ok(Ok(Err(HandshakeFailure::Refused(stream)))) => {
            worker.counters.add(Counter::CertificatesRefused, 1);
            connection::let_read(stream).await;
        }
        Ok(Ok(Err(HandshakeFailure::Challenge))) => {}
        Ok(Ok(Err(HandshakeFailure::Failed))) | Err(_) => {
            worker.counters.add(Counter::TlsFailures, 1);
        }
    }
    None
}
