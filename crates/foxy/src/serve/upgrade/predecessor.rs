//! The old process of an upgrade, as the new process sees it. If the old process ends early, the
//! new process starts as after a killed process, but with the sockets that it has already received.

use super::keeper::decode;
use super::link::{Link, Message, NoPacket, Packet};
use super::successor::VARIABLE;
use crate::failure::Failure;
use crate::serve::activation::Purpose;
use crate::serve::listeners::address_of;
use foxy_base::clock;
use foxy_proxy::cache::purge::PurgeKeeper;
use foxy_proxy::core::idle_client::IdleClient;
use foxy_proxy::server::listener::{ListenSocket, SharedListener};
use foxy_proxy::server::moving::Adopter;
use rustix::net::SocketType;
use rustix::net::sockopt::{socket_domain, socket_type};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit for a message that the old process sends without waiting for anything.
const MESSAGE_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for the old process to close its stores.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

pub struct Predecessor {
    link: Arc<Link>,
    has_ended: Arc<AtomicBool>,
}

impl Predecessor {
    /// Returns the old process and its listening sockets. Returns `None` if this process was not
    /// started by an upgrade.
    pub fn find() -> Option<(Self, Vec<(Purpose, SharedListener)>)> {
        std::env::var_os(VARIABLE)?;
        let input = std::io::stdin();
        if socket_type(input.as_fd()) != Ok(SocketType::SEQPACKET) {
            return None;
        }
        let link = Link::new(input.as_fd().try_clone_to_owned().ok()?);
        // Programs that foxy starts must not inherit the socket to the old process.
        rustix::stdio::dup2_stdin(File::open("/dev/null").ok()?).ok()?;
        let sockets = receive_sockets(&link);
        let has_ended = Arc::new(AtomicBool::new(false));
        Some((Self { link: Arc::new(link), has_ended }, sockets))
    }

    /// Tells the old process that this process is ready. Waits up to [`CLOSE_LIMIT`] until the old
    /// process has closed its stores or has ended.
    pub fn wait_for_stores(&self) -> Result<(), Failure> {
        self.link.tell(&Message::TakesClients);
        self.link.tell(&Message::Ready);
        let until = clock::monotonic() + CLOSE_LIMIT;
        loop {
            match self.link.receive(Some(until)).map(|packet| packet.message) {
                Ok(Message::TakeStores) | Err(NoPacket::Ended) => return Ok(()),
                Ok(_) => {}
                Err(NoPacket::Late) => {
                    let text = "the old process did not close its stores";
                    return Err(Failure::Failed(text.into()));
                }
            }
        }
    }

    /// Tells the old process that this process serves. From now on, a thread executes the purges
    /// that the old process passes on, and adopts its idle connections.
    pub fn serving(&self, keeper: Arc<dyn PurgeKeeper>, adopter: Adopter) -> std::io::Result<()> {
        let (link, has_ended) = (Arc::clone(&self.link), Arc::clone(&self.has_ended));
        let follow = move || {
            while let Ok(Packet { message, content, descriptor }) = link.receive(None) {
                match (message, descriptor) {
                    (Message::Purge(number), _) => purge(&link, &*keeper, number, &content),
                    (Message::Client { peer }, Some(stream)) => {
                        let (stream, aimed_at) = (TcpStream::from(stream), None);
                        adopter.adopt(IdleClient { stream, peer, aimed_at });
                    }
                    (Message::TransparentClient { peer, aimed_at }, Some(stream)) => {
                        let (stream, aimed_at) = (TcpStream::from(stream), Some(aimed_at));
                        adopter.adopt(IdleClient { stream, peer, aimed_at });
                    }
                    _ => {}
                }
            }
            has_ended.store(true, Ordering::Relaxed);
        };
        std::thread::Builder::new().name("predecessor".into()).spawn(follow)?;
        self.link.tell(&Message::Serving);
        Ok(())
    }

    /// Returns whether the old process has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Tells the old process that this process leaves too, so the old process must not serve again.
    pub fn leaving(&self) {
        self.link.tell(&Message::Leaving);
    }

    pub fn failed(&self, why: &Failure) {
        self.link.tell(&Message::Failed(why.to_string()));
    }
}

fn purge(link: &Arc<Link>, keeper: &dyn PurgeKeeper, number: u64, content: &[u8]) {
    let Some(orders) = decode(content) else {
        link.tell(&Message::Purged(number, None));
        return;
    };
    let link = Arc::clone(link);
    let reply = move |answer: Result<u64, _>| {
        link.tell(&Message::Purged(number, answer.ok()));
    };
    keeper.purge(orders, Box::new(reply));
}

/// Receives all listening sockets. Sockets with the same use and address become one listener.
fn receive_sockets(link: &Link) -> Vec<(Purpose, SharedListener)> {
    let mut groups: Vec<(Purpose, SharedListener)> = Vec::new();
    let mut left = 0;
    while let Ok(packet) = link.receive(Some(clock::monotonic() + MESSAGE_LIMIT)) {
        match packet.message {
            Message::Hello { sockets, .. } => left = sockets,
            Message::Socket { purpose, is_given } => {
                left = left.saturating_sub(1);
                if let Some(socket) = packet.descriptor.and_then(listening) {
                    add(&mut groups, purpose, is_given, socket);
                }
            }
            _ => {}
        }
        if left == 0 {
            break;
        }
    }
    groups
}

fn add(
    groups: &mut Vec<(Purpose, SharedListener)>,
    purpose: Purpose,
    is_given: bool,
    socket: ListenSocket,
) {
    let address = address_of(&socket);
    let same = groups.iter_mut().find(|(other, group)| {
        *other == purpose
            && address.is_some()
            && group.sockets.first().and_then(address_of) == address
    });
    match same {
        Some((_, group)) => group.sockets.push(socket),
        None => {
            let kind = purpose.kind();
            groups.push((purpose, SharedListener { sockets: vec![socket], kind, is_given }));
        }
    }
}

fn listening(descriptor: OwnedFd) -> Option<ListenSocket> {
    let domain = socket_domain(&descriptor).ok()?;
    Some(if domain == rustix::net::AddressFamily::UNIX {
        ListenSocket::Unix(UnixListener::from(descriptor))
    } else {
        ListenSocket::Tcp(TcpListener::from(descriptor))
    })
}
