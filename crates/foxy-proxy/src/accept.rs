//! A worker's clients: accepting them, counting them, and letting them end when the proxy stops.

use crate::counters::{Counter, Counters};
use crate::serve;
use crate::server::MakeResolver;
use crate::upstream::UpstreamClient;
use crate::worker::{Shared, Worker};
use std::cell::{Cell, RefCell};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::watch;

/// Between attempts to accept when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) async fn work(
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
