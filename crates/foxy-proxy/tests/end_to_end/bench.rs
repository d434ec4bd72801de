//! Starts a proxy with a store in memory for one test, and provides a simple client.

use foxy_base::Cidr;
use foxy_proxy::cache::purge::Purges;
use foxy_proxy::cache::storage::{ObjectStore, Reply};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::server::{Parts, Proxy, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{OriginServer, Scheme};
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record, RefusedReason};
use foxy_testkit::client::{Answered, Client};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::store::Records;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A store in memory. A test can make it refuse records or be busy.
#[derive(Default)]
pub struct MapStore {
    records: Records,
    found: AtomicUsize,
    refuses_parts: AtomicBool,
    refuses: AtomicBool,
    is_busy: AtomicBool,
}

impl MapStore {
    pub fn forget_everything(&self) {
        self.records.clear();
    }

    /// Number of reads that found their record. A store on disk would read the disk the same number
    /// of times.
    pub fn found(&self) -> usize {
        self.found.load(Ordering::SeqCst)
    }

    /// From now on, refuses parts of large bodies. In this store, a record without a head is a
    /// part.
    pub fn refuse_parts(&self) {
        self.refuses_parts.store(true, Ordering::SeqCst);
    }

    /// From now on, refuses every record.
    pub fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// While `is_busy` is true, the store answers each read with "busy".
    pub fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::SeqCst);
    }

    pub fn len(&self) -> usize {
        self.records.count()
    }
}

impl ObjectStore for MapStore {
    fn get(&self, key: Key, reply: Reply) {
        if self.is_busy.load(Ordering::SeqCst) {
            return reply(Answer::Absent(AbsentReason::Busy));
        }
        let answer = self.records.get(key);
        let is_found = matches!(answer, Answer::Found(_));
        self.found.fetch_add(usize::from(is_found), Ordering::SeqCst);
        reply(answer);
    }

    fn lacks(&self, key: Key) -> bool {
        let is_busy = self.is_busy.load(Ordering::SeqCst);
        !is_busy && matches!(self.records.get(key), Answer::Absent(_))
    }

    fn put(&self, key: Key, record: Record, _hint: PlacementHint, reply: Reply) {
        let is_refused_part = record.head.is_empty() && self.refuses_parts.load(Ordering::SeqCst);
        if is_refused_part || self.refuses.load(Ordering::SeqCst) {
            return reply(Answer::Refused(RefusedReason::Busy));
        }
        reply(self.records.put(key, record));
    }

    fn remove(&self, key: Key, reply: Reply) {
        reply(self.records.remove(key));
    }
}

pub struct TestProxy {
    pub proxy: Proxy,
    pub store: Arc<MapStore>,
    pub purges: Purges,
}

pub fn proxy_with(change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
    proxy_of(Purges::in_memory(), change)
}

pub fn proxy_of(purges: Purges, change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
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
        cold: None,
        purges: purges.clone(),
        sink: None,
        sample: None,
        resolver: name_resolver(Vec::new()),
        sockets: Vec::new(),
    };
    TestProxy { proxy: Proxy::start(settings, parts).expect("the proxy starts"), store, purges }
}

pub fn forward_proxy() -> TestProxy {
    proxy_with(|_| {})
}

pub fn reverse_proxy(origin: &TestOrigin) -> TestProxy {
    let origin = OriginServer {
        scheme: Scheme::Http,
        host: origin.address.ip().to_string(),
        port: origin.address.port(),
    };
    proxy_with(|settings| settings.mode = Mode::reverse(origin))
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

    /// Connects to the proxy from `address`, which must be a loopback address.
    pub fn connect_from(&self, address: [u8; 4]) -> Client {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from((address, 0)).into()).expect("an address of loopback");
        socket.connect(&self.address().into()).expect("the proxy accepts");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        Client::on(socket.into())
    }

    /// Sends a GET with the additional header lines `lines` on a new connection.
    pub fn get(&self, url: &str, lines: &str) -> Answered {
        let host = url.split('/').nth(2).unwrap_or("");
        self.connect().ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
    }
}
