//! Tests which parent proxy receives a request, and the answer if no parent works.

use super::bench::{
    REFUSES_CREDENTIALS, behind, behind_with, connect, detail, refused, use_parents,
};
use crate::bench::proxy_with;
use crate::explaining::explain;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::upstream::{ParentChoice, ParentFallback};
use foxy_rules::operator::{Conditions, Effects, OperatorRule, OperatorRules, Upstream, Ways};
use foxy_testkit::http::ok;
use foxy_testkit::origin::listen;
use foxy_testkit::parent::{TestParent, dead_url};
use std::sync::atomic::{AtomicBool, Ordering};

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
fn a_parent_that_leads_back_is_a_loop() {
    let port = listen(|_| {}).port();
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
fn a_rule_chooses_the_parent_of_requests_and_tunnels() {
    let (usual, partner) = (TestParent::usual(), TestParent::usual());
    let ways =
        Ways { parents: vec![("127.0.0.1".into(), partner.address.port())], ..Ways::default() };
    let rule = |host: &str, ways: Ways| OperatorRule {
        name: host.into(),
        when: Conditions { hosts: vec![host.parse().expect(host)], ..Conditions::default() },
        unless: Vec::new(),
        then: Effects { upstream: Some(Upstream::Ways(ways.into())), ..Effects::default() },
    };
    let direct = Ways { direct: true, ..Ways::default() };
    let rules = OperatorRules::new(vec![rule("partner.test", ways), rule("near.test", direct)]);
    let rules = rules.expect("sound rules");
    let proxy = proxy_with(|settings| {
        use_parents(settings, &[usual.url(""), partner.url("")], |_| {});
        settings.rules = RulesInForce::new(rules);
        settings.destinations.connect_ports = (1..=u16::MAX).collect();
    });
    let port = partner.address.port();
    assert_eq!(proxy.get("http://partner.test/", "").status, 200);
    assert_eq!(connect(&proxy, &format!("partner.test:{port}"), "").status, 200);
    assert_eq!(detail(&proxy.get("http://near.test/", "")), refused(502, "no-such-host"));
    assert_eq!(proxy.get("http://a.test/", "").status, 200);
    assert_eq!((usual.take_requests().len(), partner.take_requests().len()), (1, 2));
    let text = explain(&proxy, "http://partner.test/other", "").to_string();
    assert!(text.contains("the rule matches and decides: upstream"), "{text}");
    assert!(text.contains(&format!("through the parent proxy {}", partner.url(""))), "{text}");
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

#[test]
fn a_stored_response_may_stand_in_for_a_parent_that_fails() {
    let refuses = AtomicBool::new(false);
    let parent = TestParent::start(move |_| {
        if refuses.swap(true, Ordering::SeqCst) {
            return REFUSES_CREDENTIALS.into();
        }
        ok("Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"a\"\r\n", b"old")
    });
    let proxy = behind(&[parent.url("")]);
    for _ in 0..2 {
        let answer = proxy.get("http://a.test/", "");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"old"[..]), "{}", answer.head);
    }
    assert_eq!(parent.take_requests().len(), 2);
    assert_eq!(proxy.count(Counter::StaleAnswers), 1);
}
