//! A test origin server, plain or over TLS. A function of the test makes each response from the
//! request and the request's number.

use crate::http::{head_length, header, read_request};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An origin on a free port of the loopback address. It runs until the process ends, counts its
/// connections, and keeps all requests.
pub struct TestOrigin {
    /// Address of the listening socket.
    pub address: SocketAddr,
    /// All requests in order of arrival, each with its head and body.
    pub heads: Arc<Mutex<Vec<String>>>,
    scheme: &'static str,
    connections: Arc<AtomicUsize>,
}

impl TestOrigin {
    /// Starts an origin that sends the result of `answer` for each request. `answer` gets the
    /// request and its number from 0. The origin closes the connection after an empty response, and
    /// after a response with `Connection: close`.
    pub fn start(answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_on("http", Ok, answer)
    }

    /// Starts an origin like [`TestOrigin::start`], with TLS.
    pub fn start_tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let secured = move |stream| {
            let session = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
            Ok(StreamOwned::new(session, stream))
        };
        Self::start_on("https", secured, answer)
    }

    fn start_on<S: Read + Write>(
        scheme: &'static str,
        secured: impl Fn(TcpStream) -> io::Result<S> + Send + Sync + 'static,
        answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (seen, accepted) = (Arc::clone(&heads), Arc::clone(&connections));
        let address = listen(move |stream| {
            accepted.fetch_add(1, Ordering::SeqCst);
            serve(secured(stream).expect("a stream"), &seen, &answer);
        });
        Self { address, heads, scheme, connections }
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> usize {
        self.heads.lock().expect("not poisoned").len()
    }

    /// Returns the URL of `path` on this origin.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Listens on a free port of the loopback address until the process ends. `serve` handles each
/// connection on its own thread.
pub fn listen(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let serve = Arc::new(serve);
    listen_in_order(move |stream| {
        let serve = Arc::clone(&serve);
        std::thread::spawn(move || serve(stream));
    })
}

/// Listens on a free port of the loopback address until the process ends. `serve` handles one
/// connection at a time.
pub fn listen_in_order(mut serve: impl FnMut(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || listener.incoming().flatten().for_each(&mut serve));
    address
}

fn serve(
    stream: impl Read + Write,
    seen: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, usize) -> Vec<u8>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream) {
        let number = {
            let mut seen = seen.lock().expect("not poisoned");
            seen.push(request.clone());
            seen.len() - 1
        };
        let bytes = answer(&request, number);
        let head = String::from_utf8_lossy(&bytes[..head_length(&bytes).unwrap_or(0)]);
        let closes = header(&head, "connection") == Some("close");
        if bytes.is_empty() || stream.get_mut().write_all(&bytes).is_err() || closes {
            return;
        }
    }
}
