//! A name server for the names of synthetic origins: every name of one zone has the same address,
//! and asking costs time. It answers over UDP only, knows no other zone, asks nobody, and is not
//! for a network that others reach. What a packet is answered stands in `answer`.

mod answer;
#[cfg(test)]
mod tests;

use answer::Zone;
pub use answer::ZoneUnusable;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Answers that may wait for their time; whoever asks beyond that is not answered.
const MOST_WAITING: u64 = 10_000;
/// The longest question that is read; one with EDNS is far shorter.
const LONGEST: usize = 4096;

/// How a name server runs.
#[derive(Clone, Debug)]
pub struct NameServerOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The zone that it knows, such as `origin.test`.
    pub zone: String,
    /// The address of each name in it.
    pub address: IpAddr,
    /// What asking for a name costs in the mean: each name between half and one and a half times
    /// that, and always the same.
    pub cost: Duration,
    /// How long an answer may be kept; whole seconds count.
    pub lifetime: Duration,
}

/// What was asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Questions for the address of a name of the zone.
    pub addresses: u64,
    /// Other questions about its names: there is nothing else to say of them.
    pub nothing: u64,
    /// Questions about names of others, and what is no plain question: refused.
    pub refused: u64,
    /// Packets that are no questions, and questions beyond what may wait: not answered.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counts {
    addresses: AtomicU64,
    nothing: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
}

/// A running name server; it stops when dropped.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no name server.
#[derive(Debug)]
pub enum NameServerError {
    /// Its zone is none.
    Zone(ZoneUnusable),
    /// It cannot listen, or not run.
    Start(io::Error),
}

impl NameServer {
    /// Listens and answers.
    ///
    /// # Errors
    /// [`NameServerError`].
    pub fn start(options: &NameServerOptions) -> Result<Self, NameServerError> {
        let zone = Zone::new(options).map_err(NameServerError::Zone)?;
        Self::serving(zone, options.listen).map_err(NameServerError::Start)
    }

    fn serving(zone: Zone, listen: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let counts = Arc::new(Counts::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let own = Arc::clone(&counts);
        let thread = std::thread::Builder::new().name("names".into()).spawn(move || {
            tokio::task::LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    _ = stopped => {}
                    () = answer_all(socket, zone, own) => {}
                }
            });
        })?;
        Ok(Self { address, counts, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was asked so far.
    pub fn asked(&self) -> Asked {
        let Counts { addresses, nothing, refused, dropped, .. } = &*self.counts;
        Asked {
            addresses: addresses.load(Relaxed),
            nothing: nothing.load(Relaxed),
            refused: refused.load(Relaxed),
            dropped: dropped.load(Relaxed),
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has said so itself; there is nothing to add while dropping.
        let _said = self.thread.take().map(JoinHandle::join);
    }
}

async fn answer_all(socket: UdpSocket, zone: Zone, counts: Arc<Counts>) {
    let Ok(socket) = tokio::net::UdpSocket::from_std(socket).map(Rc::new) else { return };
    let mut packet = vec![0; LONGEST];
    loop {
        // What a client sends back of an answer that it did not wait for shows as an error of the
        // socket, and passes.
        let Ok((length, from)) = socket.recv_from(&mut packet).await else { continue };
        let full = counts.waiting.load(Relaxed) >= MOST_WAITING;
        let Some(reply) = zone.reply(&packet[..length]).filter(|_| !full) else {
            counts.dropped.fetch_add(1, Relaxed);
            continue;
        };
        let (socket, counts) = (Rc::clone(&socket), Arc::clone(&counts));
        counts.of(reply.kind).fetch_add(1, Relaxed);
        counts.waiting.fetch_add(1, Relaxed);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(reply.after).await;
            // Who has gone meanwhile, asks no more.
            let _gone = socket.send_to(&reply.packet, from).await;
            counts.waiting.fetch_sub(1, Relaxed);
        });
    }
}

impl Counts {
    const fn of(&self, kind: answer::Kind) -> &AtomicU64 {
        match kind {
            answer::Kind::Address => &self.addresses,
            answer::Kind::Nothing => &self.nothing,
            answer::Kind::Refused => &self.refused,
        }
    }
}
