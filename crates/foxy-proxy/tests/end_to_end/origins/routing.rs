//! Tests which of a reverse proxy's origins receives a request, which of its servers, and with
//! which Host.

use super::bench::{dead, group, server, serving, serving_by};
use crate::explaining::explain;
use foxy_proxy::upstream::{GroupSettings, SentHost};
use foxy_rules::operator::{
    Conditions, Effects, NamedPattern, OperatorRule, OperatorRules, Upstream,
};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;

const FRESH: &str = "Cache-Control: max-age=600\r\n";

fn named(name: &'static str) -> TestOrigin {
    TestOrigin::start(move |head, _| {
        let host = header(head, "host").unwrap_or("-").to_owned();
        ok(FRESH, format!("{name} {host}").as_bytes())
    })
}

fn at(origin: &TestOrigin, name: &str, host: &str, path: &str) -> GroupSettings {
    let hosts = vec![host.parse().expect("a host")];
    GroupSettings { hosts, path: path.into(), ..group(name, &[origin.address]) }
}

#[test]
fn each_host_and_path_has_its_own_origin_and_its_own_stored_responses() {
    let [shop, api, docs] = ["shop", "api", "docs"].map(named);
    let proxy = serving(vec![
        at(&api, "api", "shop.test", "/api/"),
        at(&shop, "shop", "shop.test", ""),
        at(&docs, "docs", "*.docs.test", ""),
    ]);
    let get = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = proxy.connect().ask(&request);
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    for _ in 0..2 {
        assert_eq!(get("shop.test", "/x"), "shop shop.test");
        assert_eq!(get("shop.test", "/api/x"), "api shop.test");
        assert_eq!(get("a.docs.test", "/x"), "docs a.docs.test");
        assert_eq!(get("b.docs.test", "/x"), "docs b.docs.test");
    }
    assert_eq!([&shop, &api, &docs].map(TestOrigin::requests), [1, 1, 2], "the rest are hits");
}

#[test]
fn a_rule_chooses_the_origin() {
    let [shop, beta] = ["shop", "beta"].map(named);
    let value = Some("*beta=1*".parse().expect("a pattern"));
    let headers = vec![NamedPattern { name: "Cookie".into(), value }];
    let then = Effects {
        upstream: Some(Upstream::Origin("beta".into())),
        bypass: Some(true),
        ..Effects::default()
    };
    let rule = OperatorRule {
        name: "beta".into(),
        when: Conditions { headers, ..Conditions::default() },
        unless: Vec::new(),
        then,
    };
    let shared =
        OperatorRule { then: Effects { bypass: None, ..rule.then.clone() }, ..rule.clone() };
    assert!(OperatorRules::new(vec![shared]).is_err(), "all clients would share its response");
    let rules = OperatorRules::new(vec![rule]).expect("a sound rule");
    let origins = vec![at(&shop, "shop", "shop.test", ""), at(&beta, "beta", "beta.test", "")];
    let proxy = serving_by(origins, rules);
    let get = |line: &str| {
        let request = format!("GET /x HTTP/1.1\r\nHost: shop.test\r\n{line}\r\n");
        String::from_utf8_lossy(&proxy.connect().ask(&request).body).into_owned()
    };
    for _ in 0..2 {
        assert_eq!(get(""), "shop shop.test");
        assert_eq!(get("Cookie: a=2; beta=1\r\n"), "beta shop.test");
    }
    assert_eq!([&shop, &beta].map(TestOrigin::requests), [1, 2], "a bypass stores nothing");
}

#[test]
fn a_request_that_no_origin_serves_is_refused_with_the_reason() {
    let shop = named("shop");
    let proxy = serving(vec![at(&shop, "shop", "shop.test", "/a/")]);
    let refusal = |host: &str, path: &str| {
        let answer = proxy.connect().ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        (answer.status, answer.cache_status().to_owned())
    };
    assert_eq!(refusal("b.test", "/a/"), (421, "foxy; detail=unknown-host".into()));
    assert_eq!(refusal("a.shop.test", "/a/"), (421, "foxy; detail=unknown-host".into()));
    assert_eq!(refusal("shop.test", "/b"), (404, "foxy; detail=unknown-path".into()));
    assert_eq!(shop.requests(), 0);
}

#[test]
fn a_server_receives_the_host_that_the_operator_chose() {
    let shop = named("shop");
    let own = shop.address.to_string();
    for (send_host, expected) in [
        (SentHost::Kept, "shop a.test"),
        (SentHost::Server, &format!("shop {own}")),
        (SentHost::Fixed("inside.test".into()), "shop inside.test"),
    ] {
        let proxy = serving(vec![GroupSettings { send_host, ..group("shop", &[shop.address]) }]);
        let answer = proxy.connect().ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(String::from_utf8_lossy(&answer.body), expected);
        let requests = shop.heads.lock().expect("not poisoned");
        let forwarded = requests.last().and_then(|head| header(head, "x-forwarded-host"));
        assert_eq!(forwarded, Some("a.test"), "the client's Host stays known");
    }
}

#[test]
fn a_reload_sends_requests_to_other_servers() {
    let (old, new) = (named("old"), named("new"));
    let proxy = serving(vec![group("shop", &[old.address])]);
    let get = |path: &str| {
        proxy.connect().ask(&format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n")).body
    };
    assert_eq!(get("/1"), b"old a.test");
    proxy.proxy.handle().replace_origins(vec![group("shop", &[new.address])]);
    assert_eq!(get("/2"), b"new a.test");
    assert_eq!(get("/1"), b"old a.test", "stored responses stay");
}

#[test]
fn an_explanation_names_the_origin_and_its_servers() {
    let dead = dead();
    let proxy = serving(vec![group("shop", &[dead])]);
    let url = server(dead).to_string();
    let text = || explain(&proxy, "http://a.test/", "").to_string();
    let expected = format!("the origin shop has the servers {url}");
    assert!(text().contains(&format!("{expected}\n")), "{}", text());
    assert_eq!(proxy.connect().ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").status, 502);
    assert!(text().contains(&format!("{expected} (rests)\n")), "{}", text());
}
