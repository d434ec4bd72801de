//! A test proxy that sends one fixed response to every CONNECT. If the response is a 200, it opens
//! the tunnel.

use crate::http::read_head;
use crate::origin::listen;
use std::io::{Write, copy};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};

/// The response that opens a tunnel.
pub const OPEN: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A proxy on a free port of the loopback address. It runs until the process ends.
pub struct TunnelProxy {
    /// Address of the listening socket.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl TunnelProxy {
    /// Starts a proxy that sends `answer` to every CONNECT. After a 200 it forwards bytes both
    /// ways.
    pub fn start(answer: &'static str) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        let address = listen(move |client| serve(client, answer, &log));
        Self { address, asked }
    }

    /// Removes and returns, in order, the request lines that the proxy received since the last
    /// call.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("not poisoned"))
    }
}

fn serve(mut client: TcpStream, answer: &str, log: &Mutex<Vec<String>>) {
    let Some(head) = read_head(&mut client) else { return };
    let line = head.lines().next().expect("a line").to_owned();
    let authority = line.split(' ').nth(1).expect("an authority").to_owned();
    log.lock().expect("not poisoned").push(line);
    if client.write_all(answer.as_bytes()).is_err() || !answer.starts_with("HTTP/1.1 200") {
        return;
    }
    pump(client, authority);
}

/// Connects to `server`, and forwards bytes both ways until the server closes.
pub(crate) fn pump(client: TcpStream, server: impl ToSocketAddrs) {
    let server = TcpStream::connect(server).expect("the origin");
    let (mut from, mut to) =
        (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        let _ended = copy(&mut from, &mut to);
        let _gone = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let _ended = copy(&mut from, &mut to);
    let _gone = to.shutdown(Shutdown::Both);
}
