//! Tests of Collectors between origins and proxies in one process: sharing, delays and failures.

mod http2;
mod http2_origins;
mod paying;
mod secure;
mod sharing;
mod trailers;
mod trouble;

use super::*;
use foxy_base::clock;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A free port on the loopback address.
pub const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A test origin with one thread per connection. Each connection serves one request.
pub struct Origin {
    pub address: SocketAddr,
    pub asked: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// An origin that calls `act` for each connection after the whole request was read.
    pub fn new(act: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(HERE).expect("bound");
        let address = listener.local_addr().expect("an address");
        let (asked, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, kept, act) = (Arc::clone(&asked), Arc::clone(&requests), Arc::new(act));
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let (count, kept, act) = (Arc::clone(&count), Arc::clone(&kept), Arc::clone(&act));
                std::thread::spawn(move || {
                    let request = request(&mut client);
                    count.fetch_add(1, Ordering::SeqCst);
                    kept.lock().expect("not poisoned").push(request.clone());
                    client.set_nodelay(true).expect("set");
                    act(&request, &mut client);
                });
            }
        });
        Self { address, asked, requests }
    }

    /// An origin that answers 200 with these fields. The body is the number of the request, counted
    /// from zero.
    pub fn numbering(fields: &'static str) -> Self {
        let count = AtomicUsize::new(0);
        Self::new(move |_, client| {
            let body = format!("number {}", count.fetch_add(1, Ordering::SeqCst));
            give(client, &whole(200, fields, &body));
        })
    }

    pub fn count(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn request(client: &mut TcpStream) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
        text.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split('\r').next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    client.read_exact(&mut body).expect("the body");
    text.extend_from_slice(&body);
    String::from_utf8_lossy(&text).into_owned()
}

/// Sends bytes. The client may already have left, so a failed write is ignored.
pub fn give(client: &mut TcpStream, bytes: &[u8]) {
    let _gone_already = client.write_all(bytes);
}

/// An HTTP/1 answer with a `Content-Length` field.
pub fn whole(status: u16, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
        .into_bytes()
}

/// A Collector with one listener for each of `proxies` proxies.
pub fn collector(proxies: usize, set: impl FnOnce(&mut CollectorOptions)) -> Collector {
    let listen = |number| Listen { name: Some(format!("p{number}")), address: HERE };
    let mut options = CollectorOptions::new((0..proxies).map(listen).collect());
    options.time_limit = Duration::from_secs(5);
    set(&mut options);
    Collector::start(options).expect("started")
}

/// The answer that the test received.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the connection was reset rather than closed.
    pub reset: bool,
    /// Time from the request to the last byte.
    pub last: Duration,
}

impl Got {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn field(&self, name: &str) -> Option<String> {
        let line = self.head.lines().find(|line| {
            line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                && line[name.len()..].starts_with(':')
        });
        line.map(|line| line[name.len() + 1..].trim().to_owned())
    }
}

/// Sends the text on a new connection and reads until the connection ends.
pub fn send(to: SocketAddr, text: &str) -> Got {
    let stream = TcpStream::connect(to).expect("connected");
    stream.set_nodelay(true).expect("set");
    exchange(stream, text)
}

/// Sends the text on this connection and reads until the connection ends.
pub fn exchange(mut stream: impl Read + Write, text: &str) -> Got {
    let (mut got, begun) = (Got::default(), clock::monotonic());
    stream.write_all(text.as_bytes()).expect("sent");
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Err(_) => {
                got.reset = true;
                break;
            }
            Ok(read) => {
                got.last = clock::monotonic().since(begun);
                bytes.extend_from_slice(&piece[..read]);
            }
        }
    }
    let end =
        bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    got.head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    got.body = bytes[end..].to_vec();
    got.status = got.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    got
}

/// Sends a GET request for this URL with these additional header lines.
pub fn get(to: SocketAddr, url: &str, lines: &str) -> Got {
    send(to, &format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n"))
}

/// Sends a request to every listener of the Collector at the same time.
pub fn all_at_once(collector: &Collector, ask: impl Fn(SocketAddr) -> Got + Sync) -> Vec<Got> {
    std::thread::scope(|scope| {
        let ask = &ask;
        let tasks: Vec<_> =
            collector.addresses().iter().map(|&to| scope.spawn(move || ask(to))).collect();
        tasks.into_iter().map(|task| task.join().expect("asked")).collect()
    })
}

/// Collects the lines that the Collector logs.
pub fn logged(options: &mut CollectorOptions) -> Arc<Mutex<Vec<CollectorLine>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    options.log = Some(Box::new(move |line| kept.lock().expect("not poisoned").push(line.clone())));
    lines
}
