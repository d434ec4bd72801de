//! A server that changes its behaviour during a test: it may turn slow, lie about its health, or
//! die.

use crate::http::{ok, read_request};
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers at once.
    Good,
    /// Waits before each response.
    Slow(Duration),
    /// Answers probes as a healthy server does. Numbers all requests, and closes the connection
    /// without an answer for each GET with an even number that is not a probe. Answers all other
    /// requests with 503.
    Lies,
    /// Answers probes as a healthy server does. Closes the connection without an answer for each
    /// other request.
    HangsUp,
}

/// The path of probes.
pub const PROBE: &str = "/health";

/// A server whose behaviour a test can change.
pub struct ChangingServer {
    /// Address of the listening socket.
    pub address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
    is_dead: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<Weak<TcpStream>>>>,
}

impl ChangingServer {
    /// Starts a good server on a free port of the loopback address.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = Self {
            address: listener.local_addr().expect("bound"),
            behaviour: Arc::new(Mutex::new(Behaviour::Good)),
            requests: Arc::default(),
            is_dead: Arc::default(),
            connections: Arc::default(),
        };
        let (behaviour, requests) = (Arc::clone(&server.behaviour), Arc::clone(&server.requests));
        let (is_dead, connections) = (Arc::clone(&server.is_dead), Arc::clone(&server.connections));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_dead.load(Ordering::SeqCst) {
                    return;
                }
                let stream = Arc::new(stream);
                connections.lock().expect("not poisoned").push(Arc::downgrade(&stream));
                let (behaviour, requests) = (Arc::clone(&behaviour), Arc::clone(&requests));
                std::thread::spawn(move || answer(&stream, &behaviour, &requests));
            }
        });
        server
    }

    /// Changes the behaviour from the next request on.
    pub fn becomes(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("not poisoned") = behaviour;
    }

    /// Closes the listener and all connections.
    pub fn dies(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        let mut connections = self.connections.lock().expect("not poisoned");
        for connection in connections.drain(..).filter_map(|connection| connection.upgrade()) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Returns the requests that the server has received so far, without probes.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("not poisoned");
        requests.iter().filter(|request| !is_probe(request)).cloned().collect()
    }
}

fn is_probe(request: &str) -> bool {
    request.starts_with(&format!("GET {PROBE} "))
}

fn answer(stream: &TcpStream, behaviour: &Mutex<Behaviour>, requests: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream) {
        let number = {
            let mut requests = requests.lock().expect("not poisoned");
            requests.push(request.clone());
            requests.len()
        };
        let behaviour = *behaviour.lock().expect("not poisoned");
        let response = match behaviour {
            _ if is_probe(&request) => ok("", b"healthy"),
            Behaviour::Good => ok("Cache-Control: no-store\r\n", b"good"),
            Behaviour::Slow(time) => {
                std::thread::sleep(time);
                ok("Cache-Control: no-store\r\n", b"slow")
            }
            Behaviour::HangsUp => return,
            Behaviour::Lies if request.starts_with("GET") && number % 2 == 0 => return,
            Behaviour::Lies => {
                b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
        };
        if stream.get_mut().write_all(&response).is_err() {
            return;
        }
    }
}
