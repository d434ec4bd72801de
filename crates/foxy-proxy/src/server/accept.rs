//! A worker's clients: accepting them, counting them, and letting them end when the proxy stops.

use crate::core::client_block::ClientBlock;
use crate::core::client_tls::ClientTls;
use crate::core::counters::{Counter, Counters};
use crate::core::places::{Full, Place};
use crate::core::transport::Transport;
use crate::request::reason::ErrorReason;
use crate::server::MakeResolver;
use crate::server::connection::{self, Doing};
use crate::server::proxy_header::{self, Said};
use crate::upstream::UpstreamClient;
use crate::worker::{Shared, Worker};
use std::cell::{Cell, RefCell};
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

/// Between attempts to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

/// Bytes that the system takes for a client before it has sent what it took before.
const NOT_SENT: u32 = 128 << 10;

/// Between looks whether a connection has waited for long enough to end.
const SOON: Duration = Duration::from_millis(5);

/// What a TLS record of a handshake begins with (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;

/// Where a worker's clients come in.
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    /// How TLS is spoken there, if it is.
    pub(crate) tls: Option<ClientTls>,
}

pub(crate) async fn work(
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    doors: Vec<Door>,
    resolver: MakeResolver,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(resolver) = resolver() else { return };
    let policy = Rc::new(shared.settings.destinations.clone());
    let upstream = UpstreamClient::new(shared.settings.upstream.clone(), resolver, policy);
    let clients = Rc::new(Clients::default());
    tokio::task::spawn_local(give_memory_back(Rc::clone(&clients), shared.settings.give_back));
    let worker = Rc::new(Worker::new(shared, upstream, counters, stop.clone()));
    for door in doors {
        let (worker, clients) = (Rc::clone(&worker), Rc::clone(&clients));
        tokio::task::spawn_local(accept(worker, door, clients, stop.clone()));
    }
    // The sender lives as long as the proxy; an error means that it is gone, which is a stop as
    // well.
    let _ = stop.wait_for(|stopping| *stopping).await;
    clients.end_idle();
    let end = Instant::now() + worker.settings().stop_after;
    while clients.count() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
        clients.end_idle();
    }
}

/// Gives memory that this thread has freed back to the system every few seconds.
async fn give_memory_back(clients: Rc<Clients>, give_back: Option<fn() -> Duration>) {
    let Some(give_back) = give_back else { return };
    loop {
        clients.forget_ended();
        tokio::time::sleep(give_back()).await;
    }
}

type Client = (Rc<Cell<bool>>, tokio::task::JoinHandle<()>);

/// The connections of a worker: whether each is idle, and the handle that ends it. The handle keeps
/// the task's memory, some 10 KB, also after the connection has ended.
#[derive(Default)]
struct Clients {
    table: RefCell<Vec<Client>>,
    grown: Cell<usize>,
}

impl Clients {
    fn add(&self, idle: Rc<Cell<bool>>, task: tokio::task::JoinHandle<()>) {
        self.table.borrow_mut().push((idle, task));
        self.grown.set(self.grown.get() + 1);
        if self.grown.get() > 1024.max(self.table.borrow().len() / 2) {
            self.forget_ended();
        }
    }

    fn forget_ended(&self) {
        self.table.borrow_mut().retain(|(_, task)| !task.is_finished());
        self.grown.set(0);
    }

    fn end_idle(&self) {
        self.table
            .borrow()
            .iter()
            .filter(|(idle, _)| idle.get())
            .for_each(|(_, task)| task.abort());
    }

    fn count(&self) -> usize {
        self.table.borrow().iter().filter(|(_, task)| !task.is_finished()).count()
    }
}

async fn accept(
    worker: Rc<Worker>,
    door: Door,
    clients: Rc<Clients>,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(door.listener) else { return };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if is_out_of_descriptors(&error) {
                    worker
                        .counters
                        .add(Counter::ConnectionsYielded, worker.shared.places.free_one().into());
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // Without it answers are only slower.
        let _ = stream.set_nodelay(true);
        // Without it the system holds more of what a client does not take.
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(NOT_SENT);
        worker.counters.add(Counter::Connections, 1);
        let address = peer.ip().to_canonical();
        let balanced =
            worker.settings().proxy_protocol_from.iter().any(|block| block.contains(address));
        // A balancer stands for many clients.
        let client = (!balanced).then(|| ClientBlock::from(address));
        let Some(place) = place(&worker, client, &mut stop).await else { return };
        let place = match place {
            Ok((place, yielded)) => {
                worker.counters.add(Counter::ConnectionsYielded, yielded.into());
                place
            }
            Err(full) => {
                refuse(&worker, (stream, peer), door.tls.is_some(), full);
                continue;
            }
        };
        let (activity, idle) = (place.activity().clone(), Rc::new(Cell::new(true)));
        let doing = Doing { idle: Rc::clone(&idle), activity: activity.clone() };
        let worker = Rc::clone(&worker);
        // The connection begins to wait when its task first looks for a request.
        activity.works();
        let began = activity.clone();
        let task = match door.tls.clone() {
            None if !balanced => tokio::task::spawn_local(async move {
                began.waits(Instant::now());
                connection::serve(worker, Transport::Plain(stream), peer, doing).await;
                drop(place);
            }),
            tls => tokio::task::spawn_local(async move {
                began.waits(Instant::now());
                if let Some((transport, peer)) =
                    prepared(&worker, tls, stream, (peer, balanced), &place).await
                {
                    connection::serve(worker, transport, peer, doing).await;
                }
                drop(place);
            }),
        };
        activity.ends(task.abort_handle());
        clients.add(idle, task);
    }
}

/// A place for a client. It is waited for where one will be free in a moment, and where descriptors
/// are short: further clients wait in the listen queue meanwhile. `None` when the proxy stops
/// meanwhile.
async fn place(
    worker: &Worker,
    client: Option<ClientBlock>,
    stop: &mut watch::Receiver<bool>,
) -> Option<Result<(Place, bool), Full>> {
    let places = &worker.shared.places;
    loop {
        let mut freed = pin!(places.freed());
        freed.as_mut().enable();
        let soon = match places.take(client) {
            Err(Full::Descriptors) => false,
            Err(Full::Soon) => true,
            taken => return Some(taken),
        };
        tokio::select! {
            () = freed => {}
            () = tokio::time::sleep(SOON), if soon => {}
            _ = stop.changed() => return None,
        }
    }
}

/// EMFILE and ENFILE, which the standard library has no kind for.
fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

/// Tells a client that there is no place for it, if the client can read that and not too many are
/// being told already.
fn refuse(worker: &Rc<Worker>, (stream, peer): (TcpStream, SocketAddr), is_tls: bool, full: Full) {
    worker.counters.add(Counter::ConnectionsRefused, 1);
    let Some(refusal) = worker.shared.places.refuse().filter(|_| !is_tls) else { return };
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        connection::turn_away(worker, stream, peer, full.into()).await;
        drop(refusal);
    });
}

/// What comes before the first request: the word of a balancer about who the client is, and TLS.
async fn prepared(
    worker: &Rc<Worker>,
    tls: Option<ClientTls>,
    mut stream: TcpStream,
    (mut peer, balanced): (SocketAddr, bool),
    place: &Place,
) -> Option<(Transport, SocketAddr)> {
    if balanced {
        let header = proxy_header::read(&mut stream);
        match tokio::time::timeout(worker.settings().client_head, header).await {
            Ok(Some(Said::Client(client))) => {
                peer = client;
                match place.name(ClientBlock::from(client.ip())) {
                    Ok(yielded) => worker.counters.add(Counter::ConnectionsYielded, yielded.into()),
                    Err(full) => {
                        refuse(worker, (stream, peer), tls.is_some(), full);
                        return None;
                    }
                }
            }
            Ok(Some(Said::Unknown)) => {}
            Ok(None) | Err(_) => {
                worker.counters.add(Counter::BadProxyHeaders, 1);
                return None;
            }
        }
    }
    let transport = match tls {
        None => Transport::Plain(stream),
        Some(tls) => secured(worker, &tls, stream, peer).await?,
    };
    Some((transport, peer))
}

/// The handshake with a client, within its time. A client that speaks plain HTTP is told so.
async fn secured(
    worker: &Rc<Worker>,
    tls: &ClientTls,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<Transport> {
    let mut first = [0];
    let handshake = async {
        match stream.peek(&mut first).await {
            Ok(1) if first[0].is_ascii_uppercase() => Err(Some(stream)),
            Ok(1) if first[0] == HANDSHAKE => tls.accept(stream).await.map_err(|_| None),
            _ => Err(None),
        }
    };
    match tokio::time::timeout(worker.settings().client_handshake, handshake).await {
        Ok(Ok(transport)) => return Some(transport),
        Ok(Err(Some(stream))) => {
            connection::turn_away(Rc::clone(worker), stream, peer, ErrorReason::PlainOnTls).await;
        }
        Ok(Err(None)) | Err(_) => worker.counters.add(Counter::TlsFailures, 1),
    }
    None
}
