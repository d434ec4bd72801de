//! Tests parent proxies that speak TLS. The parent is another foxy, which itself has a parent.

use super::bench::{connect, detail, refused, use_parents};
use crate::bench::{TestProxy, proxy_with};
use crate::tls::clients::certificates;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::upstream::{Authorities, OriginTls};
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::parent::TestParent;

/// Starts a foxy with a TLS listener, whose certificate is for `name`.
fn secure_parent(authority: &TestAuthority, name: &str, further: &TestParent) -> TestProxy {
    proxy_with(|settings| {
        settings.via_name = "outer".into();
        settings.listen_tls = vec![([127, 0, 0, 1], 0).into()];
        settings.client_tls = Some(ClientTls::new(certificates(&[&authority.sign(&[name])])));
        settings.destinations.connect_ports = (1..=u16::MAX).collect();
        use_parents(settings, &[further.url("")], |_| {});
    })
}

fn behind(parent: &TestProxy, authority: &TestAuthority) -> TestProxy {
    proxy_with(|settings| {
        let url = format!("https://user:word@{}", parent.proxy.addresses()[1]);
        use_parents(settings, &[url], |_| {});
        let mut trusted = Authorities::none();
        trusted.add_pem(authority.pem().as_bytes()).expect("a certificate");
        settings.upstream.tls = OriginTls::trusting(trusted);
        settings.destinations.connect_ports = (1..=u16::MAX).collect();
    })
}

#[test]
fn requests_and_tunnels_go_through_a_parent_with_tls() {
    let (authority, further) = (TestAuthority::new(), TestParent::usual());
    let body: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    let sent = body.clone();
    let server = authority.sign(&["a.test"]).server();
    let origin = TestOrigin::start_tls(server, move |_, _| ok("", &sent));
    let parent = secure_parent(&authority, "127.0.0.1", &further);
    let proxy = behind(&parent, &authority);
    for path in ["/a", "/b"] {
        assert_eq!(proxy.get(&format!("http://a.test{path}"), "").body, b"parent");
    }
    let counts = |kind| parent.count(kind);
    assert_eq!(counts(Counter::Requests), 2);
    let url = origin.url("/").replace("127.0.0.1", "a.test");
    for _ in 0..2 {
        let answer = proxy.get(&url, "Cache-Control: no-store\r\n");
        assert!(answer.status == 200 && answer.body == body, "TLS inside TLS");
    }
    assert_eq!(origin.connections(), 1);
    let plain = TestOrigin::start(|_, _| ok("", b"inside"));
    let authority = format!("a.test:{}", plain.address.port());
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let mut client = proxy.connect();
    client.send(request.as_bytes());
    assert_eq!(client.answer(true).status, 200);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").body, b"inside");
}

#[test]
fn a_parent_with_a_wrong_certificate_receives_nothing() {
    let (authority, further) = (TestAuthority::new(), TestParent::usual());
    let wrong_name = secure_parent(&authority, "b.test", &further);
    let untrusted = secure_parent(&TestAuthority::new(), "127.0.0.1", &further);
    for parent in [wrong_name, untrusted] {
        let proxy = behind(&parent, &authority);
        let expected = refused(502, "parent-tls");
        assert_eq!(detail(&proxy.get("http://a.test/", "")), expected);
        let proxy = behind(&parent, &authority);
        assert_eq!(detail(&connect(&proxy, "a.test:443", "")), expected);
        assert_eq!(parent.count(Counter::Requests), 0);
    }
}
