//! Tests parent proxies: the form of requests to a parent, tunnels, fail over, and destinations
//! that no parent may receive.

use crate::bench::{TestProxy, proxy_with};
use crate::explaining::explain;
use crate::intercept_bench::{Bench, ask};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::mode::{Mode, ReverseOrigin};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{
    Authorities, OriginTls, ParentChoice, ParentFallback, ParentSettings, Parents, Scheme,
};
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::client::Answered;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::{TestOrigin, listen};
use foxy_testkit::parent::{TestParent, dead_url, usual_answer};
use std::sync::Arc;
use std::time::Duration;

const REFUSES_CREDENTIALS: &str = "HTTP/1.1 407 Proxy Authentication Required\r\n\
     Proxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
const GATEWAY_TIMEOUT: &str = "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 0\r\n\r\n";

fn use_parents(settings: &mut ProxySettings, urls: &[String], change: fn(&mut ParentSettings)) {
    let parents = urls.iter().map(|url| url.parse().expect("a parent")).collect();
    let mut chosen = ParentSettings { parents, ..ParentSettings::default() };
    change(&mut chosen);
    settings.upstream.parents = Parents::new(chosen, &settings.via_name, 7).map(Arc::new);
}

fn behind_with(urls: &[String], change: fn(&mut ParentSettings)) -> TestProxy {
    proxy_with(|settings| {
        use_parents(settings, urls, change);
        settings.destinations.connect_ports = (1..=u16::MAX).collect();
        settings.upstream.connect_timeout = Duration::from_millis(500);
    })
}

fn behind(urls: &[String]) -> TestProxy {
    behind_with(urls, |_| {})
}

fn connect(proxy: &TestProxy, authority: &str, lines: &str) -> Answered {
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n");
    let mut client = proxy.connect();
    client.send(request.as_bytes());
    client.answer(true)
}

fn detail(answer: &Answered) -> (u16, String) {
    (answer.status, answer.cache_status().to_owned())
}

fn refused(status: u16, reason: &str) -> (u16, String) {
    (status, format!("foxy; detail={reason}"))
}

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
fn a_reverse_proxy_reaches_its_origin_through_the_parent() {
    let parent = TestParent::usual();
    let origin = ReverseOrigin { scheme: Scheme::Http, host: "10.0.0.1".into(), port: 81 };
    let proxy = proxy_with(|settings| {
        use_parents(settings, &[parent.url("")], |_| {});
        settings.mode = Mode::Reverse { origin };
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

#[test]
fn the_next_parent_answers_if_the_first_accepts_no_connection() {
    let parent = TestParent::usual();
    let proxy = behind(&[dead_url(), parent.url("")]);
    let post = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(proxy.connect().ask(post).body, b"parent");
    assert_eq!(connect(&proxy, &format!("a.test:{}", parent.address.port()), "").status, 200);
    let requests = parent.take_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].ends_with("\r\n\r\nhi"), "{requests:?}");
    assert_eq!(proxy.count(Counter::ParentFailovers), 1, "the first parent rests meanwhile");
    assert_eq!(proxy.count(Counter::ParentsDown), 1);
}

#[test]
fn without_a_working_parent_requests_are_refused() {
    let proxy = behind(&[dead_url(), dead_url()]);
    let expected = refused(502, "parent-unreachable");
    let answer = proxy.get("http://a.test/", "");
    assert_eq!(detail(&answer), expected);
    assert_eq!(answer.header("proxy-status"), "foxy; error=destination_unavailable");
    assert_eq!(detail(&connect(&proxy, "a.test:443", "")), expected);
    assert_eq!(detail(&proxy.get("https://a.test/", "")), expected);
    assert_eq!(proxy.count(Counter::ParentRefusals), 3);
}

#[test]
fn only_a_setting_permits_a_direct_connection_instead() {
    let proxy = behind_with(&[dead_url()], |settings| {
        settings.fallback = ParentFallback::Direct;
    });
    assert_eq!(detail(&proxy.get("http://a.test/", "")), refused(502, "no-such-host"));
    assert_eq!(proxy.count(Counter::ParentFallbacks), 1);
}

#[test]
fn a_refusal_of_the_credentials_never_reaches_the_client() {
    let parent = TestParent::with_answer(REFUSES_CREDENTIALS);
    let proxy = behind(&[parent.url("user:wrong@")]);
    let expected = refused(502, "parent-credentials");
    let answer = proxy.get("http://a.test/", "");
    assert_eq!(detail(&answer), expected);
    assert_eq!(answer.header("proxy-authenticate"), "");
    let proxy = behind(&[parent.url("user:wrong@")]);
    assert_eq!(detail(&connect(&proxy, "a.test:443", "")), expected);
}

#[test]
fn a_request_with_a_body_is_sent_to_one_parent_only() {
    let (first, second) = (TestParent::with_answer(REFUSES_CREDENTIALS), TestParent::usual());
    let proxy = behind(&[first.url(""), second.url("")]);
    let post = "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(detail(&proxy.connect().ask(post)), refused(502, "parent-credentials"));
    assert!(second.take_requests().is_empty());
    let proxy = behind(&[first.url(""), second.url("")]);
    assert_eq!(proxy.get("http://a.test/", "").body, b"parent", "a GET may be sent again");
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

#[test]
fn a_parent_that_leads_back_is_a_loop() {
    let port = foxy_testkit::origin::listen(|_| {}).port();
    let proxy = proxy_with(|settings| {
        settings.listen = vec![([127, 0, 0, 9], port).into()];
        use_parents(settings, &[format!("http://127.0.0.9:{port}")], |_| {});
    });
    let answer = proxy.get("http://a.test/", "");
    assert_eq!(detail(&answer), refused(508, "parent-loop"));

    let through = |url: String| {
        proxy_with(|settings| {
            use_parents(settings, &[url], |_| {});
            settings.destinations.connect_ports = vec![443];
        })
    };
    let relay =
        TestParent::start(|_| b"HTTP/1.1 508 Loop Detected\r\nContent-Length: 0\r\n\r\n".to_vec());
    let proxy = through(relay.url(""));
    let again = "Via: 1.1 foxy-test\r\n";
    assert_eq!(detail(&connect(&proxy, "a.test:443", again)), refused(508, "loop"));
    assert_eq!(detail(&proxy.get("http://a.test/", again)), refused(508, "loop"));
    assert_eq!(proxy.get("http://a.test/", "").status, 508, "the parent's own refusal");
}

#[test]
fn an_explanation_names_the_way_of_a_fetch() {
    let proxy = behind(&["http://user:word@proxy.test:3128".into(), dead_url()]);
    for (url, expected) in [
        ("http://a.test/", "a fetch goes through the parent proxy http://***@proxy.test:3128"),
        ("http://127.0.0.1/", "no parent proxy receives requests to this host"),
    ] {
        let text = explain(&proxy, url, "").to_string();
        assert!(text.contains(expected), "{text}");
    }
    proxy.get("http://a.test/", "");
    let text = explain(&proxy, "http://a.test/", "").to_string();
    assert!(text.contains("parent-unreachable       no parent proxy works\n"), "{text}");
}

#[test]
fn rendezvous_hashing_gives_each_url_one_parent() {
    let (one, other) = (TestParent::usual(), TestParent::usual());
    let proxy = behind_with(&[one.url(""), other.url("")], |settings| {
        settings.choice = ParentChoice::Rendezvous;
    });
    let ask = |number: usize| {
        let url = format!("http://a.test/{number}");
        assert_eq!(proxy.get(&url, "Cache-Control: no-store\r\n").status, 200);
    };
    (0..32).for_each(ask);
    let (first, second) = (one.take_requests().len(), other.take_requests().len());
    assert!(first > 4 && second > 4 && first + second == 32, "{first} and {second}");
    for _ in 0..3 {
        ask(0);
    }
    let again = [one.take_requests().len(), other.take_requests().len()];
    assert!(again == [3, 0] || again == [0, 3], "{again:?}");
}
