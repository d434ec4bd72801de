//! Tests tunnels through parent proxies, for https origins and for CONNECT.

use super::bench::{
    FORBIDDEN, GATEWAY_TIMEOUT, REFUSES_CREDENTIALS, UNAVAILABLE, behind, connect, detail, refused,
    use_parents,
};
use crate::bench::proxy_with;
use crate::intercept_bench::{Bench, ask};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::upstream::{Authorities, OriginTls};
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::{TestOrigin, listen};
use foxy_testkit::parent::{TestParent, usual_answer};
use std::time::Duration;

#[test]
fn an_https_origin_is_reached_through_a_tunnel_of_its_own() {
    let authority = TestAuthority::new();
    let origin = |name: &str| {
        TestOrigin::start_tls(authority.sign(&[name]).server(), |_, _| ok("", b"secure"))
    };
    let (one, other) = (origin("a.test"), origin("b.test"));
    let parent = TestParent::usual();
    let proxy = proxy_with(|settings| {
        use_parents(settings, &[parent.url("user:word@")], |_| {});
        let mut trusted = Authorities::none();
        trusted.add_pem(authority.pem().as_bytes()).expect("a certificate");
        settings.upstream.tls = OriginTls::trusting(trusted);
    });
    let own = "Proxy-Authorization: Basic Y2xpZW50Og==\r\n";
    for (origin, host) in [(&one, "a.test"), (&one, "a.test"), (&other, "b.test")] {
        let url = origin.url("/").replace("127.0.0.1", host);
        assert_eq!(proxy.get(&url, own).body, b"secure", "{url}");
    }
    assert_eq!((one.connections(), one.requests(), other.requests()), (1, 2, 1));
    let requests = parent.take_requests();
    assert_eq!(requests.len(), 2, "the second request uses the first tunnel again");
    let port = one.address.port();
    assert!(
        requests[0].starts_with(&format!("CONNECT a.test:{port} HTTP/1.1\r\n")),
        "{requests:?}"
    );
    assert_eq!(header(&requests[0], "proxy-authorization"), Some("Basic dXNlcjp3b3Jk"));
    assert_eq!(header(&requests[0], "via"), Some("1.1 foxy-test"));
    let heads = one.heads.lock().expect("not poisoned");
    assert!(!heads.iter().any(|head| head.contains("Basic")), "{heads:?}");
}

#[test]
fn a_clients_tunnel_goes_through_the_parent() {
    let origin = TestOrigin::start(|_, _| ok("", b"inside"));
    let parent = TestParent::usual();
    let proxy = behind(&[parent.url("user:word@")]);
    let authority = format!("a.test:{}", origin.address.port());
    let mut client = proxy.connect();
    let request = format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nVia: 1.1 earlier\r\n\
         Proxy-Authorization: Basic Y2xpZW50Og==\r\n\r\n"
    );
    client.send(request.as_bytes());
    assert_eq!(client.answer(true).status, 200);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").body, b"inside");
    let request = parent.take_requests().remove(0);
    assert!(request.contains("Via: 1.1 earlier\r\nVia: 1.1 foxy-test\r\n"), "{request}");
    assert_eq!(header(&request, "proxy-authorization"), Some("Basic dXNlcjp3b3Jk"));
    assert_eq!(request.matches("Basic").count(), 1, "{request}");
}

#[test]
fn an_intercepted_host_is_reached_through_the_parent() {
    let parent = TestParent::usual();
    let url = parent.url("");
    let bench = Bench::with("a.test", &["a.test"], "a.test", |settings| {
        use_parents(settings, &[url], |_| {});
    });
    let mut client = bench.enter("a.test", bench.ours(), "a.test");
    let lines = format!("GET / HTTP/1.1\r\nHost: {}", bench.authority("a.test"));
    let answer = ask(&mut client, &lines);
    assert!(answer.ends_with("answer 0"), "{answer}");
    assert_eq!(parent.take_requests().len(), 1);
}

#[test]
fn a_parent_that_opens_no_tunnel_is_named() {
    for (answer, expected) in [
        (UNAVAILABLE, refused(502, "parent-failed")),
        (GATEWAY_TIMEOUT, refused(504, "parent-timeout")),
        (FORBIDDEN, refused(403, "parent-refused")),
        ("HTTP/1.1 508 Loop Detected\r\n\r\n", refused(508, "parent-loop")),
        ("SSH-2.0-x\r\n\r\n", refused(502, "parent-failed")),
        ("", refused(502, "parent-failed")),
    ] {
        let parent = TestParent::with_answer(answer);
        let proxy = behind(&[parent.url("")]);
        assert_eq!(detail(&connect(&proxy, "a.test:443", "")), expected, "{answer}");
        assert_eq!(detail(&proxy.get("https://a.test/", "")), expected, "{answer}");
    }
}

#[test]
fn the_next_parent_opens_the_tunnel_that_the_first_cannot() {
    let second = TestParent::usual();
    let authority = format!("a.test:{}", second.address.port());
    for answer in [UNAVAILABLE, GATEWAY_TIMEOUT, REFUSES_CREDENTIALS, ""] {
        let first = TestParent::with_answer(answer);
        let proxy = behind(&[first.url(""), second.url("")]);
        assert_eq!(connect(&proxy, &authority, "").status, 200, "{answer}");
    }
    let silent = listen(|_stream| std::thread::sleep(Duration::from_secs(60)));
    let proxy = behind(&[format!("http://{silent}"), second.url("")]);
    for number in 0..2 {
        assert_eq!(connect(&proxy, &authority, "").status, 200, "request {number}");
    }
    assert_eq!(proxy.count(Counter::ParentFailovers), 1, "the silent parent comes last now");
}

#[test]
fn a_tunnel_that_fails_does_not_put_the_parent_out_of_use() {
    let parent = TestParent::start(|request| {
        if request.starts_with("CONNECT dead.test:") {
            UNAVAILABLE.into()
        } else {
            usual_answer(request)
        }
    });
    let proxy = behind(&[parent.url("")]);
    for _ in 0..3 {
        assert_eq!(detail(&connect(&proxy, "dead.test:443", "")), refused(502, "parent-failed"));
        assert_eq!(proxy.get("http://a.test/", "Cache-Control: no-cache\r\n").body, b"parent");
    }
}
