//! An origin server that is a function of the request's head and its number, plain or behind TLS.

use foxy_proxy::upstream::Scheme;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// An origin: each request's head, body included as far as Content-Length says, becomes an answer;
/// no bytes are the end of the connection, and so is one that says `Connection: close`.
pub struct TestOrigin {
    pub address: SocketAddr,
    pub heads: Arc<Mutex<Vec<String>>>,
    scheme: Scheme,
    connections: Arc<AtomicUsize>,
}

impl TestOrigin {
    pub fn start(answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_on(Scheme::Http, Ok, answer)
    }

    /// One behind TLS.
    pub fn start_tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let secured = move |stream| {
            let session =
                ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
            Ok(StreamOwned::new(session, stream))
        };
        Self::start_on(Scheme::Https, secured, answer)
    }

    fn start_on<S: Read + Write>(
        scheme: Scheme,
        secured: impl Fn(TcpStream) -> std::io::Result<S> + Send + Sync + 'static,
        answer: impl Fn(&str, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (seen, answer, secured) = (Arc::clone(&heads), Arc::new(answer), Arc::new(secured));
        let accepted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                accepted.fetch_add(1, Ordering::SeqCst);
                let (seen, answer, secured) =
                    (Arc::clone(&seen), Arc::clone(&answer), Arc::clone(&secured));
                std::thread::spawn(move || {
                    serve(secured(stream).expect("a stream"), &seen, &*answer)
                });
            }
        });
        Self { address, heads, scheme, connections }
    }

    pub fn requests(&self) -> usize {
        self.heads.lock().expect("not poisoned").len()
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme.as_str(), self.address)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(
    mut stream: impl Read + Write,
    seen: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, usize) -> Vec<u8>,
) {
    let mut buffer = Vec::new();
    while let Some(head) = read_message(&mut stream, &mut buffer) {
        let number = {
            let mut seen = seen.lock().expect("not poisoned");
            seen.push(head.clone());
            seen.len() - 1
        };
        let bytes = answer(&head, number);
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
        let closes =
            header(&String::from_utf8_lossy(&bytes[..head]), "connection") == Some("close");
        if bytes.is_empty() || stream.write_all(&bytes).is_err() || closes {
            return;
        }
    }
}

/// A head and as much body as its Content-Length says.
fn read_message(stream: &mut impl Read, buffer: &mut Vec<u8>) -> Option<String> {
    let mut chunk = [0; 8192];
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length =
                header(&head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                let rest = buffer.split_off(end + 4 + length);
                let message = String::from_utf8_lossy(buffer).into_owned();
                *buffer = rest;
                return Some(message);
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
        }
    }
}

/// The value of a header in a head.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().skip(1).take_while(|line| !line.is_empty());
    let mut found = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// A 200 with these header lines and this body.
pub fn ok(lines: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
