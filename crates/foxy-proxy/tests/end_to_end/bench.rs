//! What the tests stand on: a proxy with a store in memory, and a client on raw sockets.

pub use super::origin::{TestOrigin, header, ok};
use foxy_proxy::cache::purge::Purges;
use foxy_proxy::cache::storage::{ObjectStore, Reply};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::mode::{Mode, ReverseOrigin};
use foxy_proxy::server::{Parts, Proxy, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{Cidr, Scheme};
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record, RefusedReason};
use socket2::{Domain, Socket, Type};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A store that is a map.
#[derive(Default)]
pub struct MapStore {
    records: Mutex<HashMap<Key, Record>>,
    found: AtomicUsize,
    refuses_parts: AtomicBool,
    refuses: AtomicBool,
    is_busy: AtomicBool,
}

impl MapStore {
    pub fn forget_everything(&self) {
        self.records.lock().expect("not poisoned").clear();
    }

    /// Records it was asked for and had: what would be reads from a disk.
    pub fn found(&self) -> usize {
        self.found.load(Ordering::SeqCst)
    }

    /// Takes no parts of bodies any more, which are the records without a head.
    pub fn refuse_parts(&self) {
        self.refuses_parts.store(true, Ordering::SeqCst);
    }

    /// Takes nothing any more.
    pub fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// Is too busy to say what it has, or is not any more.
    pub fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::SeqCst);
    }

    pub fn len(&self) -> usize {
        self.records.lock().expect("not poisoned").len()
    }
}

impl ObjectStore for MapStore {
    fn get(&self, key: Key, reply: Reply) {
        if self.is_busy.load(Ordering::SeqCst) {
            return reply(Answer::Absent(AbsentReason::Busy));
        }
        let found = self.records.lock().expect("not poisoned").get(&key).cloned();
        self.found.fetch_add(usize::from(found.is_some()), Ordering::SeqCst);
        reply(found.map_or(Answer::Absent(AbsentReason::NotIndexed), Answer::Found));
    }

    fn put(&self, key: Key, record: Record, _hint: PlacementHint, reply: Reply) {
        let is_refused_part = record.head.is_empty() && self.refuses_parts.load(Ordering::SeqCst);
        if is_refused_part || self.refuses.load(Ordering::SeqCst) {
            return reply(Answer::Refused(RefusedReason::Busy));
        }
        self.records.lock().expect("not poisoned").insert(key, record);
        reply(Answer::Stored);
    }

    fn remove(&self, key: Key, reply: Reply) {
        self.records.lock().expect("not poisoned").remove(&key);
        reply(Answer::Removed);
    }
}

pub struct TestProxy {
    pub proxy: Proxy,
    pub store: Arc<MapStore>,
}

/// An answer, read to its end.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answered {
    pub fn header(&self, name: &str) -> &str {
        header(&self.head, name).unwrap_or("")
    }

    pub fn cache_status(&self) -> &str {
        self.header("cache-status")
    }
}

pub fn proxy_with(change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
    let mut settings = ProxySettings {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        via_name: "foxy-test".into(),
        stop_after: Duration::from_millis(500),
        ..ProxySettings::default()
    };
    settings.destinations.allowed = vec!["127.0.0.0/8".parse::<Cidr>().expect("a block")];
    change(&mut settings);
    let store = Arc::new(MapStore::default());
    let parts = Parts {
        store: Some(store.clone()),
        purges: Purges::in_memory(),
        sink: None,
        resolver: name_resolver(Vec::new()),
    };
    TestProxy { proxy: Proxy::start(settings, parts).expect("the proxy starts"), store }
}

pub fn forward_proxy() -> TestProxy {
    proxy_with(|_| {})
}

pub fn reverse_proxy(origin: &TestOrigin) -> TestProxy {
    let origin = ReverseOrigin {
        scheme: Scheme::Http,
        host: origin.address.ip().to_string(),
        port: origin.address.port(),
    };
    proxy_with(|settings| settings.mode = Mode::Reverse { origin })
}

impl TestProxy {
    pub fn address(&self) -> SocketAddr {
        self.proxy.addresses()[0]
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.proxy.count(counter)
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address()).expect("the proxy accepts");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        Client::on(stream)
    }

    /// A connection from an address of this machine.
    pub fn connect_from(&self, address: [u8; 4]) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((address, 0)).into()).expect("an address of loopback");
        socket.connect(&self.address().into()).expect("the proxy accepts");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        Client::on(socket.into())
    }

    /// One GET on a connection of its own, with further header lines.
    pub fn get(&self, url: &str, lines: &str) -> Answered {
        let host = url.split('/').nth(2).unwrap_or("");
        self.connect().ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
    }
}

pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn on(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the proxy reads");
    }

    pub fn ask(&mut self, request: &str) -> Answered {
        self.send(request.as_bytes());
        self.answer(request.starts_with("HEAD"))
    }

    /// Reads one answer, by length, by chunks or until the close.
    pub fn answer(&mut self, no_body: bool) -> Answered {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(
                self.read() > 0,
                "closed within a head: {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 4);
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let body = match status {
            100..200 | 204 | 304 => Vec::new(),
            _ if no_body => Vec::new(),
            _ => self.body(&head),
        };
        Answered { status, head, body }
    }

    fn body(&mut self, head: &str) -> Vec<u8> {
        if header(head, "transfer-encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let line = self.line();
                let size = usize::from_str_radix(line.trim(), 16).expect("a chunk size");
                let data = self.take(size);
                body.extend_from_slice(&data);
                if size == 0 {
                    while !self.line().is_empty() {}
                    return body;
                }
                assert_eq!(self.line(), "");
            }
        }
        match header(head, "content-length") {
            Some(length) => self.take(length.parse().expect("a length")),
            None => {
                while self.read() > 0 {}
                std::mem::take(&mut self.buffer)
            }
        }
    }

    fn line(&mut self) -> String {
        let end = loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            assert!(self.read() > 0, "closed within a line");
        };
        let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 2);
        line
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(self.read() > 0, "closed after {} of {count} bytes", self.buffer.len());
        }
        self.buffer.drain(..count).collect()
    }

    /// Reads once; 0 at the end.
    pub fn read(&mut self) -> usize {
        let mut chunk = [0; 65_536];
        let count = self.stream.read(&mut chunk).unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }
}

impl Client {
    /// The next bytes as they come, after a head that opened a tunnel.
    pub fn answer_bytes<'a>(&mut self, into: &'a mut [u8]) -> &'a [u8] {
        let bytes = self.take(into.len());
        into.copy_from_slice(&bytes);
        into
    }
}
