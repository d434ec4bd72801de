//! Tests of Collectors with origins and proxies in the same process. They cover shared answers,
//! delays and failures.

mod http2;
mod http2_origins;
mod paying;
mod secure;
mod sharing;
mod trailers;
mod trouble;

use super::*;
use foxy_base::clock;
use foxy_testkit::http::{head_length, header, read_request};
use foxy_testkit::origin::listen;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Any free port on the loopback address.
pub const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A test origin with one thread per connection. Each connection serves one request.
pub struct Origin {
    pub address: SocketAddr,
    pub asked: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Starts an origin that calls `act` for each connection after it has read the whole request.
    pub fn new(act: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let (asked, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, kept) = (Arc::clone(&asked), Arc::clone(&requests));
        let address = listen(move |mut client| {
            let request = read_request(&mut client).unwrap_or_default();
            count.fetch_add(1, Ordering::SeqCst);
            kept.lock().expect("not poisoned").push(request.clone());
            client.set_nodelay(true).expect("set");
            act(&request, &mut client);
        });
        Self { address, asked, requests }
    }

    /// Starts an origin that answers 200 with these header lines. The body is the number of the
    /// request, counted from zero.
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

/// Sends bytes. Ignores a failed write, because the client may already have left.
pub fn give(client: &mut TcpStream, bytes: &[u8]) {
    let _gone_already = client.write_all(bytes);
}

/// Builds an HTTP/1 answer with a `Content-Length` field.
pub fn whole(status: u16, fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len())
        .into_bytes()
}

/// Starts a Collector (common parent proxy) with one listener for each of `proxies` proxies.
pub fn collector(proxies: usize, set: impl FnOnce(&mut CollectorOptions)) -> Collector {
    let listen = |number| Listen { name: Some(format!("p{number}")), address: HERE };
    let mut options = CollectorOptions::new((0..proxies).map(listen).collect());
    options.time_limit = Duration::from_secs(5);
    set(&mut options);
    Collector::start(options).expect("started")
}

/// An answer as the test received it.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// Whether the connection ended with a reset instead of a normal close.
    pub reset: bool,
    /// The time from the request to the last byte.
    pub last: Duration,
}

impl Got {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn field(&self, name: &str) -> Option<String> {
        header(&self.head, name).map(str::to_owned)
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
    let end = head_length(&bytes).unwrap_or(bytes.len());
    got.head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    got.body = bytes[end..].to_vec();
    got.status = got.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    got
}

/// Sends a GET request for this URL with these additional header lines.
pub fn get(to: SocketAddr, url: &str, lines: &str) -> Got {
    send(to, &format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n"))
}

/// Sends a request to every listener of the Collector (common parent proxy) at the same time.
pub fn all_at_once(collector: &Collector, ask: impl Fn(SocketAddr) -> Got + Sync) -> Vec<Got> {
    std::thread::scope(|scope| {
        let ask = &ask;
        let tasks: Vec<_> =
            collector.addresses().iter().map(|&to| scope.spawn(move || ask(to))).collect();
        tasks.into_iter().map(|task| task.join().expect("asked")).collect()
    })
}

/// Collects the lines that the Collector (common parent proxy) logs.
pub fn logged(options: &mut CollectorOptions) -> Arc<Mutex<Vec<CollectorLine>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    options.log = Some(Box::new(move |line| kept.lock().expect("not poisoned").push(line.clone())));
    lines
}
