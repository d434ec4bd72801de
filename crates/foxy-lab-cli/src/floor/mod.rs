//! The *floor*: the smallest caching proxy that could answer the requests of `foxy compare`. It is
//! a lower bound for the CPU time of any proxy. It reads a path, finds the stored answer, and sends
//! it as it came from the origin. It has no freshness, no checks, no recovery and no HTTP/2.

mod connection;
mod store;
mod worker;

pub use store::{FloorStore, SmallAnswers};

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::Builder;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt,
};

/// Number of connections that the kernel holds until a worker accepts them.
const BACKLOG: i32 = 1024;

/// The data that all workers share.
#[derive(Debug)]
pub struct Floor {
    pub origin: SocketAddr,
    pub store: FloorStore,
}

/// Starts `workers` threads that serve `address`. Each thread has its own listening socket.
pub fn start(floor: Floor, address: SocketAddr, workers: usize) -> io::Result<()> {
    let floor = Arc::new(floor);
    for _ in 0..workers {
        let (floor, listener) = (Arc::clone(&floor), listener(address)?);
        Builder::new().name("floor".into()).spawn(move || worker::run(&floor, &listener))?;
    }
    Ok(())
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

#[cfg(test)]
mod tests;
