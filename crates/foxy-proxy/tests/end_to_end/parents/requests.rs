//! Tests the form of the requests that a parent proxy receives, and destinations that no parent may
//! receive.

use super::bench::{behind, behind_with, connect, detail, refused, use_parents};
use crate::bench::proxy_with;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::upstream::{OriginServer, Scheme};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::parent::TestParent;

#[test]
fn a_parent_receives_whole_urls_and_its_own_credentials() {
    let parent = TestParent::usual();
    let proxy = behind(&[parent.url("user:word@")]);
    let own = "Proxy-Authorization: Basic Y2xpZW50Og==\r\n";
    for url in ["http://a.test/x?y", "http://b.test:8080/", "http://a.test/x?y"] {
        let answer = proxy.get(url, own);
        assert_eq!((answer.status, &answer.body[..]), (200, &b"parent"[..]), "{url}");
        assert!(answer.header("via").contains("foxy-test"), "{}", answer.head);
    }
    let requests = parent.take_requests();
    let lines: Vec<_> = requests.iter().filter_map(|request| request.lines().next()).collect();
    let expected = ["GET http://a.test/x?y HTTP/1.1", "GET http://b.test:8080/ HTTP/1.1"];
    assert_eq!(lines, expected, "the third request is a hit");
    for request in &requests {
        assert_eq!(header(request, "proxy-authorization"), Some("Basic dXNlcjp3b3Jk"));
        assert_eq!(request.matches("Basic").count(), 1, "{request}");
        assert_eq!(header(request, "via"), Some("1.1 foxy-test"));
    }
    assert_eq!(proxy.count(Counter::ParentRequests), 2);
}

#[test]
fn a_parent_without_credentials_receives_none() {
    let parent = TestParent::usual();
    let proxy = behind(&[parent.url("")]);
    let own = "Proxy-Authorization: Basic Y2xpZW50Og==\r\n";
    assert_eq!(proxy.get("http://a.test/", own).status, 200);
    connect(&proxy, "a.test:1", own);
    for request in parent.take_requests() {
        assert_eq!(header(&request, "proxy-authorization"), None);
    }
}

#[test]
fn the_age_at_the_parent_counts() {
    let parent = TestParent::start(|_| ok("Cache-Control: max-age=60\r\nAge: 50\r\n", b"old"));
    let proxy = behind(&[parent.url("")]);
    proxy.get("http://a.test/", "");
    let hit = proxy.get("http://a.test/", "");
    assert!(
        hit.header("age").parse::<u64>().is_ok_and(|age| (50..60).contains(&age)),
        "{}",
        hit.head
    );
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
}

#[test]
fn an_options_request_for_a_server_has_no_path() {
    let parent = TestParent::usual();
    let proxy = behind(&[parent.url("")]);
    proxy.connect().ask("OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let request = parent.take_requests().remove(0);
    assert!(request.starts_with("OPTIONS http://a.test HTTP/1.1\r\n"), "{request}");
}

#[test]
fn a_reverse_proxy_reaches_its_origin_through_the_parent() {
    let parent = TestParent::usual();
    let origin = OriginServer { scheme: Scheme::Http, host: "10.0.0.1".into(), port: 81 };
    let proxy = proxy_with(|settings| {
        use_parents(settings, &[parent.url("")], |_| {});
        settings.mode = Mode::reverse(origin);
    });
    let answer = proxy.connect().ask("GET /x HTTP/1.1\r\nHost: public.test\r\n\r\n");
    assert_eq!(answer.body, b"parent");
    let request = parent.take_requests().remove(0);
    assert!(request.starts_with("GET http://10.0.0.1:81/x HTTP/1.1\r\n"), "{request}");
}

#[test]
fn no_parent_receives_a_private_address_or_this_machine() {
    let parent = TestParent::usual();
    let proxy = proxy_with(|settings| {
        use_parents(settings, &[parent.url("")], |_| {});
        settings.destinations.allowed = vec!["10.1.0.0/16".parse().expect("a block")];
    });
    for host in ["10.0.0.1", "[fd00::1]", "169.254.169.254", "localhost", "127.0.0.1", "[::1]"] {
        let expected = refused(403, "destination-forbidden");
        assert_eq!(detail(&proxy.get(&format!("http://{host}/"), "")), expected, "{host}");
        assert_eq!(detail(&connect(&proxy, &format!("{host}:443"), "")), expected, "{host}");
    }
    let odd = proxy.get("http://2130706433/", "");
    assert_eq!(detail(&odd), refused(502, "no-such-host"), "another form of 127.0.0.1");
    assert!(parent.take_requests().is_empty());
    assert_eq!(proxy.get("http://10.1.2.3/", "").body, b"parent", "the operator allows it");
}

#[test]
fn hosts_of_no_proxy_are_reached_directly() {
    let parent = TestParent::usual();
    let proxy = behind_with(&[parent.url("user:word@")], |settings| {
        settings.no_proxy = vec!["inside.test".parse().expect("a host")];
    });
    let origin = TestOrigin::start(|_, _| ok("", b"direct"));
    let answer = proxy.get(&origin.url("/"), "");
    assert_eq!(answer.body, b"direct", "a loopback address never goes to a parent");
    let heads = origin.heads.lock().expect("not poisoned").clone();
    assert!(heads[0].starts_with("GET / HTTP/1.1\r\n") && !heads[0].contains("Basic"), "{heads:?}");
    assert_eq!(proxy.get("http://a.inside.test/", "").status, 502, "no such host");
    assert!(parent.take_requests().is_empty());
    assert_eq!(proxy.count(Counter::ParentBypasses), 2);
}
