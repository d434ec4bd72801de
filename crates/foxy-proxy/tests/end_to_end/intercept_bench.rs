//! Sets up tests of interception: an origin behind TLS, a proxy that intercepts connections to it,
//! and clients inside a CONNECT.

use crate::bench::{TestProxy, proxy_with};
use foxy_base::{HostPattern, clock};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::intercept::{Authority, Interception, MadeAuthority, NewAuthority, make};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{Authorities, OriginTls};
use foxy_testkit::certificates::{TestAuthority, client_trusting};
use foxy_testkit::client::{Answered, exchange};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

pub const HOST: &str = "localhost";

/// An origin behind TLS, and the certificate authority that signed the origin's certificate. The
/// proxy trusts this authority, and intercepts CONNECTs to the listed hosts.
pub struct Bench {
    pub origin: TestOrigin,
    pub signs_origin: TestAuthority,
    own: MadeAuthority,
    pub proxy: TestProxy,
}

impl Bench {
    pub fn new(permitted: &str, listed: &[&str]) -> Self {
        Self::with(permitted, listed, HOST, |_| {})
    }

    pub fn with(
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

    pub fn authority(&self, host: &str) -> String {
        format!("{host}:{}", self.origin.address.port())
    }

    pub fn ours(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.own.certificate.as_bytes()).expect("PEM")
    }

    /// Sends a CONNECT to `host`. Returns the answer and the connection.
    pub fn connect(&self, host: &str) -> (Answered, TcpStream) {
        let authority = self.authority(host);
        let mut client = self.proxy.connect();
        client
            .send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").as_bytes());
        let answer = client.answer(true);
        (answer, client.stream)
    }

    /// Opens TLS inside a CONNECT to `host`. The client trusts the authority `root`, and expects a
    /// certificate for `name`.
    pub fn enter(&self, host: &str, root: CertificateDer<'static>, name: &str) -> TlsClient {
        let (answer, stream) = self.connect(host);
        assert_eq!(answer.status, 200, "{}", answer.head);
        StreamOwned::new(session(root, name), stream)
    }

    /// Sends one GET inside a new intercepted CONNECT, and returns the answer.
    pub fn get(&self, path: &str) -> String {
        let mut client = self.enter(HOST, self.ours(), HOST);
        ask(&mut client, &format!("GET {path} HTTP/1.1\r\nHost: {}", self.authority(HOST)))
    }

    pub fn wait_for(&self, counter: Counter, count: u64) {
        until("the count", || (self.proxy.count(counter) >= count).then_some(()));
        assert_eq!(self.proxy.count(counter), count, "{counter:?}");
    }
}

pub fn session(root: CertificateDer<'static>, name: &str) -> ClientConnection {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(Arc::new(client_trusting([root], None)), name).expect("a session")
}

/// Sends one request, and reads until the proxy closes the connection.
pub fn ask(client: &mut TlsClient, lines: &str) -> String {
    let answer = exchange(client, &format!("{lines}\r\nConnection: close\r\n\r\n"));
    String::from_utf8(answer).expect("text")
}
