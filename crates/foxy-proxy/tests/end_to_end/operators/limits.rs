//! Tests the limits on requests and bytes per second that the operator's rules set for each client.

use crate::bench::{TestProxy, proxy_with};
use foxy_base::clock;
use foxy_proxy::core::rules::RulesInForce;
use foxy_rules::operator::{Effects, OperatorRule, OperatorRules};
use foxy_testkit::client::Client;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use std::time::Duration;

/// Starts a proxy with one rule. The proxy also permits CONNECT to the origin's port.
fn proxy(origin: &TestOrigin, then: Effects) -> TestProxy {
    let port = origin.address.port();
    let rule =
        OperatorRule { name: "limit".into(), when: Default::default(), unless: Vec::new(), then };
    let rules = RulesInForce::new(OperatorRules::new(vec![rule]).expect("a sound rule"));
    proxy_with(|settings| {
        settings.rules = rules;
        settings.destinations.connect_ports = vec![port];
    })
}

#[test]
fn a_client_that_asks_too_fast_is_refused_and_others_are_not() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let rate_limit = Some("2/h".parse().expect("a rate"));
    let proxy = proxy(&origin, Effects { rate_limit, ..Effects::default() });
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/x"));
    let mut client = proxy.connect_from([127, 0, 0, 2]);
    assert_eq!([client.ask(&request).status, client.ask(&request).status], [200, 200]);
    let refused = client.ask(&request);
    let expected = (429, "foxy; detail=rate-limited");
    assert_eq!((refused.status, refused.cache_status()), expected);
    let seconds: u32 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=1800).contains(&seconds), "at two requests an hour, {seconds} s");
    assert_eq!(proxy.connect_from([127, 0, 0, 3]).ask(&request).status, 200);
}

#[test]
fn a_limited_client_receives_whole_bodies_no_faster_than_its_rate() {
    let body: Vec<u8> = (0..96_u32 << 8).flat_map(u32::to_be_bytes).collect();
    let sent = body.clone();
    let origin = TestOrigin::start(move |_, _| ok("Cache-Control: max-age=600\r\n", &sent));
    let bandwidth_limit = Some("64K/s".parse().expect("a bandwidth"));
    let proxy = proxy(&origin, Effects { bandwidth_limit, ..Effects::default() });
    let get = |client: &mut Client, target: &str| {
        let started = clock::monotonic();
        let answer = client.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(answer.body == body, "the body has changed");
        // The rule limits the client to 64 KiB per second. The first piece comes at once, and all
        // 96 KiB after about 1.5 s.
        let time = clock::monotonic().since(started);
        assert!(time > Duration::from_secs(1), "96 KiB took {time:?}");
        answer.cache_status().to_owned()
    };
    let mut client = proxy.connect();
    assert_eq!(get(&mut client, &origin.url("/x")), "foxy; fwd=uri-miss; fwd-status=200; stored");
    assert!(get(&mut client, &origin.url("/x")).starts_with("foxy; hit"));
    client.send(format!("CONNECT {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.address).as_bytes());
    assert_eq!(client.answer(true).status, 200);
    get(&mut client, "/in-a-tunnel");
}
