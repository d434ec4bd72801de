//! A DNS server for tests with a synthetic origin. All names of its zone have the same address. It
//! delays each answer, as a distant server would. It supports only UDP and no recursion. It must
//! not serve public networks.

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

const MOST_WAITING: u64 = 10_000;
const LONGEST: usize = 4096;

/// The options of a name server.
#[derive(Clone, Debug)]
pub struct NameServerOptions {
    /// The address of the socket. Port 0 means any free port.
    pub listen: SocketAddr,
    /// The zone, such as `origin.test`.
    pub zone: String,
    /// The address of every name in the zone.
    pub address: IpAddr,
    /// The mean delay of an answer. Each name has its own delay, between 0.5 and 1.5 times the
    /// mean.
    pub cost: Duration,
    /// The TTL (time to live) of answers, rounded to whole seconds.
    pub lifetime: Duration,
}

/// The numbers of questions that the name server received, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuestionCounts {
    /// Number of questions for the address of a name in the zone.
    pub addresses: u64,
    /// Other questions about names in the zone, for example for another record type. The answers to
    /// such questions contain no records.
    pub nothing: u64,
    /// Refused questions: questions about other zones, or questions of an unusual form.
    pub refused: u64,
    /// Questions without an answer: malformed packets, and questions while too many delayed answers
    /// are waiting.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct QuestionCounters {
    addresses: AtomicU64,
    nothing: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
}

/// A running name server. Dropping the value stops the server.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    counts: Arc<QuestionCounters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The reason why the name server did not start.
#[derive(Debug)]
pub enum NameServerError {
    /// The zone name is invalid.
    Zone(ZoneUnusable),
    /// The socket or the thread could not be created.
    Start(io::Error),
}

impl NameServer {
    /// Binds the socket and starts to answer.
    pub fn start(options: &NameServerOptions) -> Result<Self, NameServerError> {
        let zone = Zone::new(options).map_err(NameServerError::Zone)?;
        Self::serving(zone, options.listen).map_err(NameServerError::Start)
    }

    fn serving(zone: Zone, listen: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let counts = Arc::new(QuestionCounters::default());
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

    /// Returns the address of the socket.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts so far.
    pub fn asked(&self) -> QuestionCounts {
        let QuestionCounters { addresses, nothing, refused, dropped, .. } = &*self.counts;
        QuestionCounts {
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
        // A panicked thread has already printed its panic, so the result is not needed.
        let _said = self.thread.take().map(JoinHandle::join);
    }
}

async fn answer_all(socket: UdpSocket, zone: Zone, counts: Arc<QuestionCounters>) {
    let Ok(socket) = tokio::net::UdpSocket::from_std(socket).map(Rc::new) else { return };
    let mut packet = vec![0; LONGEST];
    loop {
        // This error is an ICMP message about an earlier answer. The server goes on with the next
        // question.
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
            // The client may have left. A failed send loses only this answer.
            let _gone = socket.send_to(&reply.packet, from).await;
            counts.waiting.fetch_sub(1, Relaxed);
        });
    }
}

impl QuestionCounters {
    const fn of(&self, kind: answer::Kind) -> &AtomicU64 {
        match kind {
            answer::Kind::Address => &self.addresses,
            answer::Kind::Nothing => &self.nothing,
            answer::Kind::Refused => &self.refused,
        }
    }
}
