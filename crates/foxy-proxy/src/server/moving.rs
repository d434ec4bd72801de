//! Moves idle client connections between proxies. A proxy that is being replaced gives its idle
//! connections away, and its successor adopts them. Connections with TLS or HTTP/2 cannot move,
//! because their state is in the memory of their process.

use crate::core::counters::Counter;
use crate::core::idle_client::IdleClient;
use crate::core::places::ClientBlock;
use crate::server::accept::{Clients, NewClient, begin, place, refuse};
use crate::worker::{Course, Shared, Worker};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

/// Passes client connections to a running proxy. Another proxy has accepted these connections
/// before.
pub struct Adopter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Vec<UnboundedSender<IdleClient>>,
    pub(crate) next: AtomicUsize,
}

impl Adopter {
    /// Serves a connection. If this proxy is itself being replaced, passes the connection on to its
    /// successor. If this proxy has ended, closes the connection.
    pub fn adopt(&self, client: IdleClient) {
        if let Some(heir) = self.shared.heir.get() {
            return heir(client);
        }
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(worker) = self.workers.get(turn % self.workers.len().max(1)) {
            let _closes_the_connection = worker.send(client);
        }
    }
}

/// Serves connections that another foxy process has passed on, until the proxy stops.
pub(crate) async fn adopt(
    worker: Rc<Worker>,
    mut adopted: UnboundedReceiver<IdleClient>,
    clients: Rc<Clients>,
    mut course: watch::Receiver<Course>,
) {
    while let Some(client) = adopted.recv().await {
        if let Some(heir) = worker.shared.heir.get() {
            heir(client);
            continue;
        }
        let IdleClient { stream, peer, aimed_at } = client;
        let Ok(stream) = tokio::net::TcpStream::from_std(stream) else { continue };
        let client = Some(ClientBlock::from(peer.ip().to_canonical()));
        let Some(place) = place(&worker, client, &mut course).await else { return };
        match place {
            Ok((place, yielded)) => {
                worker.counters.add(Counter::ConnectionsYielded, yielded.into());
                let client = NewClient { stream, peer, aimed_at };
                begin(&worker, &clients, client, None, place);
            }
            Err(full) => refuse(&worker, stream, peer, false, full),
        }
    }
}
