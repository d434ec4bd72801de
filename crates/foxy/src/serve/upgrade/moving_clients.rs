//! Passes idle client connections of the old process on: to the new process when it serves, or back
//! to this process if the upgrade fails. Meanwhile the connections wait here.

use super::link::{Link, Message};
use foxy_proxy::core::idle_client::{Heir, IdleClient};
use foxy_proxy::server::moving::Adopter;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Time limit within which the new process must read a message.
const SEND_LIMIT: Duration = Duration::from_secs(5);

/// The receiver of the connections.
pub enum ClientTarget {
    NewProcess(Arc<Link>),
    /// A new proxy in this process, after a failed upgrade.
    OwnProxy(Adopter),
    /// No process serves the connections, so they close.
    Nobody,
}

enum Event {
    Client(IdleClient),
    Target(ClientTarget),
}

/// The connections that wait for their next process.
pub struct MovingClients {
    events: Sender<Event>,
    waiting: Arc<AtomicUsize>,
}

impl MovingClients {
    pub fn start() -> io::Result<Self> {
        let (events, received) = channel();
        let waiting = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&waiting);
        let pass = move || pass_on(&received, &counter);
        std::thread::Builder::new().name("moving".into()).spawn(pass)?;
        Ok(Self { events, waiting })
    }

    pub fn heir(&self) -> Heir {
        let (events, waiting) = (self.events.clone(), Arc::clone(&self.waiting));
        Box::new(move |client| {
            waiting.fetch_add(1, Ordering::SeqCst);
            let _closes_without_thread = events.send(Event::Client(client));
        })
    }

    /// Passes all connections to `target` from now on.
    pub fn pass_to(&self, target: ClientTarget) {
        let _closes_without_thread = self.events.send(Event::Target(target));
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }
}

fn pass_on(events: &Receiver<Event>, waiting: &AtomicUsize) {
    let (mut target, mut clients) = (None, Vec::new());
    for event in events {
        match event {
            Event::Client(client) => clients.push(client),
            Event::Target(new) => target = Some(new),
        }
        let Some(target) = &target else { continue };
        while let Some(client) = clients.pop() {
            if let Some(client) = pass(target, client) {
                clients.push(client);
                break;
            }
            waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Returns the connection if the target cannot receive it now.
fn pass(target: &ClientTarget, client: IdleClient) -> Option<IdleClient> {
    match target {
        ClientTarget::NewProcess(link) => {
            let message = match client {
                IdleClient { peer, aimed_at: None, .. } => Message::Client { peer },
                IdleClient { peer, aimed_at: Some(aimed_at), .. } => {
                    Message::TransparentClient { peer, aimed_at }
                }
            };
            let is_sent = link.send(&message, &[], Some(client.stream.as_fd()), SEND_LIMIT);
            (!is_sent).then_some(client)
        }
        ClientTarget::OwnProxy(adopter) => {
            adopter.adopt(client);
            None
        }
        ClientTarget::Nobody => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_testkit::wait::until;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_wait_for_a_target_and_return_from_an_ended_process() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let pair = || {
            let client = TcpStream::connect(address).expect("connected");
            let (stream, peer) = listener.accept().expect("accepted");
            (client, IdleClient { stream, peer, aimed_at: None })
        };
        let (link, other) = Link::pair().expect("a pair");
        let moving = MovingClients::start().expect("a thread");
        let heir = moving.heir();
        let (mut first, idle) = pair();
        heir(idle);
        assert!(!moving.is_empty());
        moving.pass_to(ClientTarget::NewProcess(Arc::new(link)));
        let other = Link::new(other);
        let packet = other.receive(None).expect("sent");
        let peer = first.local_addr().expect("connected");
        assert_eq!(packet.message, Message::Client { peer });
        let mut stream = TcpStream::from(packet.descriptor.expect("a connection"));
        first.write_all(b"x").expect("sent");
        stream.read_exact(&mut [0]).expect("the new process reads");
        until("no connection waits", || moving.is_empty().then_some(()));
        drop(other);
        let (mut second, idle) = pair();
        heir(idle);
        moving.pass_to(ClientTarget::Nobody);
        assert_eq!(second.read(&mut [0]).expect("closed"), 0);
    }
}
