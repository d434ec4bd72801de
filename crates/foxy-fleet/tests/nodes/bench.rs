//! Starts the nodes of a fleet in one process, each with a store in memory.

use foxy_base::Cidr;
use foxy_fleet::{Member, Members, Nodes};
use foxy_proxy::cache::purge::{PurgeBook, Purges};
use foxy_proxy::cache::storage::{ObjectStore, Reply};
use foxy_proxy::core::client_certificates::{CertificateNeed, ClientAuthorities};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use foxy_proxy::server::listener::{ListenSocket, ListenerKind, SharedListener};
use foxy_proxy::server::{Parts, Proxy, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::fleet::Fleet;
use foxy_proxy::upstream::{Authorities, FleetLink, OriginTls, OwnCertificate};
use foxy_store::{Answer, Key, PlacementHint, Record};
use foxy_testkit::certificates::{TestAuthority, TestCertificate};
use foxy_testkit::client::{Answered, Client};
use foxy_testkit::store::Records;
use foxy_testkit::wait::until;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Number of threads of each node that answer requests.
pub const WORKERS: usize = 2;

/// Time that a slow store needs for a look-up.
pub const SLOW: Duration = Duration::from_secs(15);

/// A store in memory that never fails, but can be slow, or can block the threads that ask it.
#[derive(Default)]
pub struct MapStore {
    records: Records,
    pub is_slow: AtomicBool,
    pub hangs: AtomicBool,
    /// Number of threads that the store blocks.
    pub blocked: AtomicUsize,
}

impl MapStore {
    pub fn len(&self) -> usize {
        self.records.count()
    }
}

impl ObjectStore for MapStore {
    fn get(&self, key: Key, reply: Reply) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
        while self.hangs.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        let answer = self.records.get(key);
        if !self.is_slow.load(Ordering::Relaxed) {
            return reply(answer);
        }
        std::thread::spawn(move || {
            std::thread::sleep(SLOW);
            reply(answer);
        });
    }

    fn lacks(&self, key: Key) -> bool {
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        !is_slow && matches!(self.records.get(key), Answer::Absent(_))
    }

    fn put(&self, key: Key, record: Record, _hint: PlacementHint, reply: Reply) {
        reply(self.records.put(key, record));
    }

    fn remove(&self, key: Key, reply: Reply) {
        reply(self.records.remove(key));
    }
}

pub struct TestNode {
    pub proxy: Proxy,
    pub nodes: Arc<Nodes>,
    pub store: Arc<MapStore>,
    pub book: Arc<PurgeBook>,
    /// Address where other nodes connect.
    pub for_nodes: SocketAddr,
    /// The TLS settings at this address.
    tls: ClientTls,
}

pub struct TestFleet {
    /// The nodes that still run.
    pub nodes: Vec<TestNode>,
    pub authority: TestAuthority,
}

impl TestFleet {
    pub fn start() -> Self {
        Self::start_with(u32::MAX)
    }

    /// Starts three nodes, which keep copies of responses with at least `hot_rate` requests per
    /// second.
    pub fn start_with(hot_rate: u32) -> Self {
        let authority = TestAuthority::new();
        let bound = NAMES.map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
        let address = |listener: &TcpListener| listener.local_addr().expect("bound");
        let member = |(name, listener): (&&str, &TcpListener)| {
            format!("{name} https://{}", address(listener)).parse().expect("a member")
        };
        let members: Vec<Member> = NAMES.iter().zip(&bound).map(member).collect();
        let start = |(name, listener)| start(name, listener, &members, &authority, hot_rate);
        let nodes: Vec<_> = NAMES.into_iter().zip(bound).map(start).collect();
        let fleet = Self { nodes, authority };
        fleet.wait_until_complete();
        fleet
    }

    /// Waits until each node has reached all others.
    fn wait_until_complete(&self) {
        for node in &self.nodes {
            let others = (0..NAMES.len()).filter(|number| *number != node.nodes.own().number);
            let is_complete = || others.clone().all(|number| !node.nodes.is_lost(number));
            until("the fleet is complete", || is_complete().then_some(()));
        }
    }

    /// Returns the node with this position among all members.
    pub fn node(&self, number: usize) -> &TestNode {
        self.nodes.iter().find(|node| node.nodes.own().number == number).expect("it runs")
    }

    /// Returns URLs of an origin whose keys the node `owner` owns, with `second` as the second.
    pub fn urls(
        &self,
        origin: SocketAddr,
        owner: usize,
        second: usize,
    ) -> impl Iterator<Item = String> {
        let nodes = Arc::clone(&self.nodes[0].nodes);
        let urls = (0..).map(move |number| format!("http://{origin}/{number}"));
        let numbers =
            move |url: &str| nodes.order(url.as_bytes()).map(|node| node.map(|node| node.number));
        urls.filter(move |url| numbers(url) == [Some(owner), Some(second)])
    }
}

fn start(
    name: &str,
    listener: TcpListener,
    members: &[Member],
    authority: &TestAuthority,
    hot_rate: u32,
) -> TestNode {
    let for_nodes = listener.local_addr().expect("bound");
    let members = Members::new(members.to_vec(), &name.parse().expect("a name")).expect("a fleet");
    let nodes = Arc::new(Nodes::new(members, hot_rate));
    let certificate = authority.sign(&[name]);
    let fleet = Some(FleetLink {
        fleet: Arc::clone(&nodes) as _,
        tls: link_tls(&certificate, authority).into(),
    });
    let tls = node_tls(&certificate, authority);
    let mut settings = ProxySettings {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        node_tls: Some(tls.clone()),
        cache_name: format!("foxy-{name}").leak(),
        via_name: format!("foxy-{name}-1"),
        stop_after: Duration::from_millis(100),
        store_patience: 2 * SLOW,
        workers: WORKERS,
        ..ProxySettings::default()
    };
    settings.upstream.fleet = fleet;
    settings.purge_from = vec!["127.0.0.0/8".parse::<Cidr>().expect("a block")].into();
    settings.destinations.allowed = vec!["127.0.0.0/8".parse::<Cidr>().expect("a block")];
    let store = Arc::new(MapStore::default());
    let sockets = vec![ListenSocket::Tcp(listener)];
    let purges = Purges::in_memory();
    let book = Arc::clone(&purges.book);
    let parts = Parts {
        store: Some(store.clone()),
        purges,
        cold: None,
        sink: None,
        sample: None,
        resolver: name_resolver(Vec::new()),
        sockets: vec![SharedListener { sockets, kind: ListenerKind::Nodes, is_given: false }],
    };
    TestNode {
        proxy: Proxy::start(settings, parts).expect("the proxy starts"),
        nodes,
        store,
        book,
        for_nodes,
        tls,
    }
}

fn link_tls(certificate: &TestCertificate, authority: &TestAuthority) -> OriginTls {
    let key = certificate.key.serialize_pem();
    let own = OwnCertificate::read(certificate.pem().as_bytes(), key.as_bytes());
    let mut authorities = Authorities::none();
    authorities.add_pem(authority.pem().as_bytes()).expect("an authority");
    OriginTls::presenting(own.expect("a certificate"), authorities).expect("usable")
}

fn node_tls(certificate: &TestCertificate, authority: &TestAuthority) -> ClientTls {
    let mut certificates = ClientCertificates::default();
    let key = certificate.key.serialize_pem();
    certificates.add(certificate.pem().as_bytes(), key.as_bytes()).expect("a certificate");
    let tls = ClientTls::new(certificates);
    trust(&tls, authority);
    tls
}

fn trust(tls: &ClientTls, authority: &TestAuthority) {
    let pem = authority.pem();
    let authorities = ClientAuthorities::read([pem.as_bytes()], CertificateNeed::Required);
    tls.ask_clients(authorities.ok());
}

impl TestNode {
    /// From now on, trusts only nodes whose certificates this authority has signed.
    pub fn trust_only(&self, authority: &TestAuthority) {
        trust(&self.tls, authority);
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.proxy.count(counter)
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.proxy.addresses()[0]).expect("the proxy accepts");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Client::on(stream)
    }

    /// Sends a GET with the additional header lines `lines` on a new connection.
    pub fn get(&self, url: &str, lines: &str) -> Answered {
        let host = url.split('/').nth(2).unwrap_or("");
        self.connect().ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
    }
}
