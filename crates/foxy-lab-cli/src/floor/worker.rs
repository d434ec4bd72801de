//! A worker of the floor (the smallest caching proxy): a thread that waits for its sockets with
//! epoll, and serves each socket that is ready.

use super::Floor;
use super::connection::{FloorConnection, Waits};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use std::io;
use std::net::TcpListener;

/// Bytes of the buffer that all connections of a worker share while they are served.
const SCRATCH: usize = 256 << 10;

/// Number of events that a worker takes from the kernel at once.
const EVENTS: usize = 256;

const LISTENER: u64 = u64::MAX;

struct Worker<'a> {
    floor: &'a Floor,
    epoll: OwnedFd,
    connections: Vec<Option<FloorConnection>>,
    scratch: Vec<u8>,
}

/// Serves a listener until the kernel refuses to report events.
pub(super) fn run(floor: &Floor, listener: &TcpListener) {
    let Ok(epoll) = epoll::create(CreateFlags::CLOEXEC) else { return };
    if epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN).is_err() {
        return;
    }
    let (connections, scratch) = (Vec::new(), vec![0; SCRATCH]);
    let mut worker = Worker { floor, epoll, connections, scratch };
    let mut events = Vec::with_capacity(EVENTS);
    loop {
        match epoll::wait(&worker.epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        for event in events.drain(..) {
            match event.data.u64() {
                LISTENER => worker.accept(listener),
                key => worker.serve(key, event.flags),
            }
        }
    }
}

impl Worker<'_> {
    /// Accepts all waiting connections. A connection that cannot be set up is closed.
    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if client.set_nonblocking(true).and_then(|()| client.set_nodelay(true)).is_err() {
                continue;
            }
            let free = self.connections.iter().position(Option::is_none);
            let number = free.unwrap_or(self.connections.len());
            let key = EventData::new_u64(number as u64 * 2);
            if epoll::add(&self.epoll, &client, key, EventFlags::IN).is_err() {
                continue;
            }
            let connection = Some(FloorConnection::new(client));
            match free {
                Some(free) => self.connections[free] = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// Serves the socket with the number `key`. Odd numbers are connections to the origin.
    fn serve(&mut self, key: u64, flags: EventFlags) {
        let Ok(number) = usize::try_from(key / 2) else { return };
        if self.progress(number, key % 2 == 1, flags).is_err() {
            self.connections[number] = None;
        }
    }

    fn progress(&mut self, number: usize, is_origin: bool, flags: EventFlags) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            return Ok(());
        };
        let had_origin = connection.origin.is_some();
        let was_blocked = flags.contains(EventFlags::OUT);
        let waits = if is_origin {
            connection.origin_is_readable(self.floor, &mut self.scratch)?
        } else if was_blocked {
            connection.client_is_writable(self.floor)?
        } else {
            connection.client_is_readable(self.floor, &mut self.scratch)?
        };
        if let Some(origin) = connection.origin.as_ref().filter(|_| !had_origin) {
            let key = EventData::new_u64(number as u64 * 2 + 1);
            epoll::add(&self.epoll, origin, key, EventFlags::IN)?;
        }
        let is_blocked = waits == Waits::Client;
        if is_blocked != was_blocked {
            let flags = if is_blocked { EventFlags::OUT } else { EventFlags::IN };
            let key = EventData::new_u64(number as u64 * 2);
            epoll::modify(&self.epoll, &connection.client, key, flags)?;
        }
        Ok(())
    }
}
