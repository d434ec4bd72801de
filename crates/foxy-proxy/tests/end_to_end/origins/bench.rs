//! Starts reverse proxies for origins with several servers, and servers that change their behaviour
//! during a test.

use crate::bench::{TestProxy, proxy_with};
use foxy_base::clock;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::upstream::{GroupSettings, OriginServer, Origins, Scheme, ServerStatus};
use foxy_testkit::http::{ok, read_request};
use std::io::{BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub fn server(address: SocketAddr) -> OriginServer {
    let (host, port) = (address.ip().to_string(), address.port());
    OriginServer { scheme: Scheme::Http, host, port }
}

/// Returns an address on which nothing listens.
pub fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port")
}

pub fn group(name: &str, servers: &[SocketAddr]) -> GroupSettings {
    let servers: Vec<_> = servers.iter().map(|address| server(*address)).collect();
    GroupSettings { name: name.into(), servers, ..GroupSettings::of_one(server(dead())) }
}

pub fn serving(all: Vec<GroupSettings>) -> TestProxy {
    let origins = Origins::new(all, &Origins::default(), clock::monotonic(), 7);
    proxy_with(|settings| {
        settings.mode = Mode::Reverse { origins: origins.into() };
        settings.upstream.head_timeout = Duration::from_secs(2);
    })
}

pub fn status(proxy: &TestProxy, address: SocketAddr) -> ServerStatus {
    let url = format!("http://{address}");
    let mut all = proxy.proxy.gauges().servers().into_iter();
    all.find(|status| status.server == url).expect("the server")
}

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Good,
    /// Waits before each response.
    Slow(Duration),
    /// Answers probes with 200, although it fails other requests: it closes the connection of every
    /// second GET, and answers 503 otherwise.
    Lies,
}

/// The path of the probes, with which the proxy finds out whether a server is healthy.
pub const PROBE: &str = "/health";

/// A server whose answers a test can change.
pub struct ChangingServer {
    pub address: SocketAddr,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
    is_dead: Arc<AtomicBool>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl ChangingServer {
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
                let kept = stream.try_clone().expect("a clone");
                connections.lock().expect("not poisoned").push(kept);
                let (behaviour, requests) = (Arc::clone(&behaviour), Arc::clone(&requests));
                std::thread::spawn(move || answer(stream, &behaviour, &requests));
            }
        });
        server
    }

    pub fn becomes(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("not poisoned") = behaviour;
    }

    /// Closes the listener and all connections.
    pub fn dies(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        for connection in self.connections.lock().expect("not poisoned").drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Returns the requests so far, without probes.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("not poisoned");
        requests.iter().filter(|request| !is_probe(request)).cloned().collect()
    }
}

fn is_probe(request: &str) -> bool {
    request.starts_with(&format!("GET {PROBE} "))
}

fn answer(stream: TcpStream, behaviour: &Mutex<Behaviour>, requests: &Mutex<Vec<String>>) {
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
            Behaviour::Lies if request.starts_with("GET") && number % 2 == 0 => return,
            Behaviour::Lies => UNAVAILABLE.into(),
        };
        if stream.get_mut().write_all(&response).is_err() {
            return;
        }
    }
}

pub const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
