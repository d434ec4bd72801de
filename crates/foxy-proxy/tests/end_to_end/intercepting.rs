//! CONNECTs that are intercepted, those that are not, and what is refused inside. Origins are behind TLS of their own.

use crate::bench::{Answered, Client, TestOrigin, TestProxy, header, ok, proxy_with};
use crate::certificates::TestAuthority;
use foxy_base::clock;
use foxy_proxy::counters::Counter;
use foxy_proxy::intercept::{Authority, HostPattern, Interception, MadeAuthority, NewAuthority, make};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{Authorities, OriginTls};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

type TlsClient = StreamOwned<ClientConnection, TcpStream>;

const HOST: &str = "localhost";

/// An origin behind TLS, its authority, and a proxy that trusts it and intercepts what is listed.
struct Bench {
    origin: TestOrigin,
    signs_origin: TestAuthority,
    own: MadeAuthority,
    proxy: TestProxy,
}

impl Bench {
    fn new(permitted: &str, listed: &[&str]) -> Self {
        Self::with(permitted, listed, HOST, |_| {})
    }

    fn with(
        permitted: &str,
        listed: &[&str],
        origin_name: &str,
        change: impl FnOnce(&mut ProxySettings),
    ) -> Self {
        let signs_origin = TestAuthority::new();
        let answer = |_: &str, number: usize| {
            ok("Cache-Control: max-age=60\r\n", format!("answer {number}").as_bytes())
        };
        let origin = TestOrigin::start_tls(signs_origin.sign(&[origin_name]).server(), answer);
        let hosts = [permitted.parse::<HostPattern>().expect("a host")];
        let (now, validity) = (clock::wall(), Duration::from_secs(86_400));
        let own = make(&NewAuthority { name: "foxy", hosts: &hosts, now, validity }).expect("made");
        let authority = Authority::read(own.certificate.as_bytes(), &own.key, now).expect("usable");
        let listed = listed.iter().map(|host| host.parse().expect("a host")).collect();
        let proxy = proxy_with(|settings| {
            let mut trusted = Authorities::none();
            trusted.add_pem(signs_origin.pem().as_bytes()).expect("a certificate");
            settings.upstream.tls = OriginTls::trusting(trusted);
            settings.destinations.connect_ports = vec![origin.address.port()];
            settings.interception = Some(Interception::new(authority, listed).expect("a key"));
            change(settings);
        });
        Self { origin, signs_origin, own, proxy }
    }

    fn authority(&self, host: &str) -> String {
        format!("{host}:{}", self.origin.address.port())
    }

    fn ours(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.own.certificate.as_bytes()).expect("PEM")
    }

    /// What a CONNECT is answered, and the connection after it.
    fn connect(&self, host: &str) -> (Answered, TcpStream) {
        let authority = self.authority(host);
        let mut client = self.proxy.connect();
        client.send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").as_bytes());
        let answer = client.answer(true);
        (answer, client.stream)
    }

    /// A client inside a CONNECT to `host` that trusts `root` and asks for `name`.
    fn enter(&self, host: &str, root: CertificateDer<'static>, name: &str) -> TlsClient {
        let (answer, stream) = self.connect(host);
        assert_eq!(answer.status, 200, "{}", answer.head);
        StreamOwned::new(session(root, name), stream)
    }

    /// One GET inside a CONNECT of its own.
    fn get(&self, path: &str) -> String {
        let mut client = self.enter(HOST, self.ours(), HOST);
        ask(&mut client, &format!("GET {path} HTTP/1.1\r\nHost: {}", self.authority(HOST)))
    }

    fn wait_for(&self, counter: Counter, count: u64) {
        let given_up = clock::monotonic() + Duration::from_secs(10);
        while self.proxy.count(counter) < count && clock::monotonic() < given_up {
            std::thread::yield_now();
        }
        assert_eq!(self.proxy.count(counter), count, "{counter:?}");
    }
}

fn session(root: CertificateDer<'static>, name: &str) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(root).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("a session")
}

/// One request, read until the proxy closes.
fn ask(client: &mut TlsClient, lines: &str) -> String {
    write!(client, "{lines}\r\nConnection: close\r\n\r\n").expect("taken");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("closed as TLS closes");
    answer
}

/// Whether the proxy closes without a word.
fn is_closed(stream: &mut impl Read) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof),
    }
}

#[test]
fn what_was_fetched_through_one_connect_is_a_hit_through_the_next() {
    let bench = Bench::new(HOST, &[HOST]);
    let first = bench.get("/x");
    assert!(first.starts_with("HTTP/1.1 200 ") && first.ends_with("answer 0"), "{first}");
    assert_eq!(header(&first, "cache-status"), Some("foxy; fwd=uri-miss; fwd-status=200; stored"));
    let second = bench.get("/x");
    assert!(second.ends_with("answer 0"), "{second}");
    assert!(
        header(&second, "cache-status").is_some_and(|status| status.starts_with("foxy; hit")),
        "{second}"
    );
    let absolute = bench.proxy.get(&bench.origin.url("/x").replace("127.0.0.1", HOST), "");
    assert_eq!(absolute.body, b"answer 0", "the URL is the key, however it was asked for");
    assert_eq!((bench.origin.requests(), bench.proxy.count(Counter::Intercepted)), (1, 2));
}

#[test]
fn one_connection_inside_serves_many_requests() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.ours(), HOST);
    let authority = bench.authority(HOST);
    for path in ["/a", "/b"] {
        write!(client, "GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").expect("taken");
        let mut start = [0; 12];
        client.read_exact(&mut start).expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 200");
        let mut rest = Vec::new();
        while !rest.windows(7).any(|window| window == b"answer ") || rest.ends_with(b"answer ") {
            let mut byte = [0];
            client.read_exact(&mut byte).expect("the rest");
            rest.push(byte[0]);
        }
    }
    assert_eq!(bench.origin.requests(), 2);
    assert_eq!(bench.proxy.count(Counter::Connections), 1);
}

#[test]
fn a_hello_that_came_with_the_connect_is_heard() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut session = session(bench.ours(), HOST);
    let authority = bench.authority(HOST);
    let mut bytes = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes();
    session.write_tls(&mut bytes).expect("a hello");
    let mut stream = bench.proxy.connect().stream;
    stream.write_all(&bytes).expect("taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    let mut client = StreamOwned::new(session, stream);
    let answer = ask(&mut client, &format!("GET / HTTP/1.1\r\nHost: {authority}"));
    assert!(answer.ends_with("answer 0"), "{answer}");
}

#[test]
fn addresses_can_be_intercepted_too() {
    let bench = Bench::with("127.0.0.0/8", &["127.0.0.1"], "127.0.0.1", |_| {});
    let mut client = bench.enter("127.0.0.1", bench.ours(), "127.0.0.1");
    let authority = bench.authority("127.0.0.1");
    let answer = ask(&mut client, &format!("GET / HTTP/1.1\r\nHost: {authority}"));
    assert!(answer.ends_with("answer 0"), "{answer}");
}

#[test]
fn what_is_not_listed_or_not_permitted_is_carried_unseen() {
    for (permitted, listed) in [(HOST, "other.test"), ("other.test", HOST)] {
        let bench = Bench::new(permitted, &[listed]);
        let mut client = bench.enter(HOST, bench.signs_origin.certificate(), HOST);
        write!(client, "GET / HTTP/1.1\r\nHost: anything\r\n\r\n").expect("taken");
        client.read_exact(&mut [0; 12]).expect("the origin's own answer");
        assert_eq!(bench.proxy.count(Counter::Tunnels), 1, "{permitted} {listed}");
        assert_eq!(bench.proxy.count(Counter::Intercepted), 0);
        assert_eq!(bench.origin.requests(), 1);
    }
}

#[test]
fn a_request_for_another_host_is_misdirected_and_reaches_nobody() {
    let bench = Bench::new(HOST, &[HOST]);
    for (lines, status, reason) in [
        ("GET / HTTP/1.1\r\nHost: other.test", 421, "misdirected"),
        ("GET https://other.test/ HTTP/1.1\r\nHost: other.test", 421, "misdirected"),
        ("CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443", 405, "connect-inside-tls"),
    ] {
        let mut client = bench.enter(HOST, bench.ours(), HOST);
        let answer = ask(&mut client, lines);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(header(&answer, "cache-status"), Some(format!("foxy; detail={reason}").as_str()));
    }
    assert_eq!((bench.origin.requests(), bench.proxy.store.len()), (0, 0));
}

#[test]
fn a_bad_certificate_of_the_origin_is_told_and_nothing_kept() {
    let bench = Bench::with(HOST, &[HOST], "other.test", |_| {});
    let answer = bench.get("/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(header(&answer, "proxy-status"), Some("foxy; error=tls_certificate_error"));
    assert_eq!(header(&answer, "cache-status"), Some("foxy; detail=certificate-name-mismatch"));
    assert_eq!((bench.origin.requests(), bench.proxy.store.len()), (0, 0));
}

#[test]
fn a_hello_for_another_host_than_the_connect_is_closed_and_counted() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.ours(), "other.test");
    let refused = client.conn.complete_io(&mut client.sock).expect_err("no handshake");
    assert_ne!(refused.kind(), ErrorKind::WouldBlock, "closed, not left waiting");
    bench.wait_for(Counter::InterceptWrongName, 1);
}

#[test]
fn a_client_that_does_not_trust_the_authority_is_counted() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.signs_origin.certificate(), HOST);
    client.conn.complete_io(&mut client.sock).expect_err("not trusted");
    bench.wait_for(Counter::InterceptDistrusted, 1);
    assert_eq!(bench.proxy.count(Counter::Intercepted), 0);
}

#[test]
fn what_is_not_tls_is_closed_and_what_never_ends_let_go() {
    let bench =
        Bench::with(HOST, &[HOST], HOST, |settings| settings.client_handshake = Duration::from_millis(50));
    let cases =
        [(&b"SSH-2.0-x\r\n"[..], Counter::InterceptNotTls), (b"\x16\x03\x01", Counter::InterceptFailures)];
    for (bytes, counter) in cases {
        let (_, mut stream) = bench.connect(HOST);
        stream.write_all(bytes).expect("taken");
        assert!(is_closed(&mut stream));
        bench.wait_for(counter, 1);
    }
    assert_eq!(bench.origin.connections(), 0);
}

#[test]
fn a_forbidden_destination_is_refused_before_anything_is_intercepted() {
    let bench = Bench::with(HOST, &[HOST], HOST, |settings| settings.destinations.allowed = Vec::new());
    let (answer, _) = bench.connect(HOST);
    assert_eq!((answer.status, answer.cache_status()), (403, "foxy; detail=destination-forbidden"));
    let closed = Bench::with(HOST, &[HOST], HOST, |settings| settings.destinations.connect_ports = vec![443]);
    assert_eq!(closed.connect(HOST).0.status, 403);
    let mut plain = Client::on(bench.connect(HOST).1);
    assert_eq!(plain.read(), 0, "the connection is closed");
}
