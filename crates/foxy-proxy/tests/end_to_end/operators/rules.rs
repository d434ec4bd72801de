//! Tests the effects of the operator's rules on clients, the cache and the origin.

use crate::bench::{TestProxy, proxy_with};
use crate::explaining::explain;
use foxy_proxy::cache::purge::{Named, Strength};
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::settings::ServerTiming;
use foxy_proxy::upstream::{OriginServer, Scheme};
use foxy_rules::operator::{
    Access, Conditions, Effects, FieldEdits, NamedPattern, OperatorRule, OperatorRules, Redirect,
    Rewrite,
};
use foxy_testkit::http::{ok, read_head};
use foxy_testkit::origin::{TestOrigin, listen};
use std::io::Write;
use std::net::IpAddr;
use std::sync::mpsc;

fn rules(list: Vec<(&str, Conditions, Effects)>) -> OperatorRules {
    let rule = |(name, when, then): (&str, _, _)| {
        let name = name.to_owned();
        OperatorRule { name, when, unless: Vec::new(), then }
    };
    OperatorRules::new(list.into_iter().map(rule).collect()).expect("sound rules")
}

fn proxy(list: Vec<(&str, Conditions, Effects)>) -> TestProxy {
    let rules = RulesInForce::new(rules(list));
    proxy_with(|settings| settings.rules = rules)
}

fn path(pattern: &str) -> Conditions {
    Conditions { paths: vec![pattern.parse().expect("a pattern")], ..Conditions::default() }
}

fn client(network: &str) -> Conditions {
    Conditions { clients: vec![network.parse().expect("a network")], ..Conditions::default() }
}

fn access(access: Access) -> Effects {
    Effects { access: Some(access), ..Effects::default() }
}

#[test]
fn a_denied_path_stays_denied_in_every_spelling() {
    let origin = TestOrigin::start(|_, _| ok("", b"secret"));
    let message = Some("ask the help desk".to_owned());
    let proxy = proxy(vec![("private", path("/private/*"), access(Access::Deny { message }))]);
    for spelling in [
        "/private/x",
        "/a/../private/x",
        "//private/x",
        "/%70rivate/x",
        "/private%2Fx",
        "/./private/x",
        "/\\private/x",
        "/a/..;/private/x",
        "/private;a/x",
    ] {
        let answer = proxy.get(&origin.url(spelling), "");
        let expected = (403, "foxy; detail=denied-by-rule");
        assert_eq!((answer.status, answer.cache_status()), expected, "{spelling}");
        assert!(answer.body.starts_with(b"foxy: ask the help desk (denied-by-rule)\nrequest "));
    }
    assert_eq!(origin.requests(), 0);
    assert_eq!(proxy.get(&origin.url("/public"), "").status, 200);
    assert_eq!(proxy.proxy.handle().rules().counts(), [("private".to_owned(), 9)]);
}

#[test]
fn a_scheme_in_the_target_avoids_no_rule_of_a_reverse_proxy() {
    let origin = TestOrigin::start(|_, _| ok("", b"secret"));
    let plain = Conditions { schemes: vec!["http".to_owned()], ..Conditions::default() };
    let list = vec![("only-tls", plain, access(Access::Deny { message: None }))];
    let rules = RulesInForce::new(rules(list));
    let proxy = proxy_with(|settings| {
        let server = origin.address;
        let (host, port) = (server.ip().to_string(), server.port());
        settings.mode = Mode::reverse(OriginServer { scheme: Scheme::Http, host, port });
        settings.rules = rules;
    });
    for target in ["/x", "http://a.test/x", "https://a.test/x"] {
        let answer = proxy.connect().ask(&format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        let expected = (403, "foxy; detail=denied-by-rule");
        assert_eq!((answer.status, answer.cache_status()), expected, "{target}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_field_name_with_underscores_does_not_imitate_a_field_that_a_rule_changes() {
    let origin = TestOrigin::start(|head, _| ok("", head.as_bytes()));
    let set = vec![("X-Remote-User".to_owned(), "none".to_owned())];
    let remove = vec!["X-Admin".to_owned()];
    let fields = Effects { request_fields: Some(FieldEdits { set, remove }), ..Effects::default() };
    let proxy = proxy(vec![("fields", Conditions::default(), fields)]);
    let forged = "X_Remote_User: evil\r\nX-Remote_User: evil\r\nx_admin: evil\r\nX_Other: kept\r\n";
    let seen = proxy.get(&origin.url("/x"), forged).body;
    let seen = String::from_utf8_lossy(&seen);
    assert!(!seen.contains("evil"), "{seen}");
    assert!(seen.contains("X-Remote-User: none") && seen.contains("X_Other: kept"), "{seen}");
}

#[test]
fn a_list_that_allows_refuses_all_other_requests() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let proxy = proxy(vec![("office", client("127.0.0.2/32"), access(Access::Allow))]);
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/x"));
    assert_eq!(proxy.connect_from([127, 0, 0, 2]).ask(&request).status, 200);
    let refused = proxy.connect_from([127, 0, 0, 3]).ask(&request);
    assert_eq!(refused.cache_status(), "foxy; detail=not-allowed-by-rule");
    let tunnel = "CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n";
    let refused = proxy.connect_from([127, 0, 0, 3]).ask(tunnel);
    assert_eq!(refused.cache_status(), "foxy; detail=not-allowed-by-rule");
}

fn counts(proxy: &TestProxy) -> Vec<(String, u64)> {
    proxy.proxy.handle().rules().counts()
}

#[test]
fn each_rule_that_applies_is_counted_once_for_a_request() {
    let origin = TestOrigin::start(|_, _| {
        ok("Content-Type: text/html\r\nCache-Control: max-age=600\r\n", b"x")
    });
    let query_ignore = Some(vec!["sig".parse().expect("a pattern")]);
    let set = vec![("X-Rule".to_owned(), "1".to_owned())];
    let response_fields = Some(FieldEdits { set, ..FieldEdits::default() });
    let html = Conditions {
        content_types: vec!["text/html".parse().expect("a pattern")],
        ..Conditions::default()
    };
    let lifetime = |seconds| Effects { fresh_at_least: Some(seconds), ..Effects::default() };
    let proxy = proxy(vec![
        ("key", path("/x"), Effects { query_ignore, ..Effects::default() }),
        ("field", path("/x"), Effects { response_fields, ..Effects::default() }),
        ("type", html, lifetime(900)),
        ("late", path("/x"), lifetime(60)),
        ("other", path("/y"), lifetime(60)),
    ]);
    let is_counted = |expected: [u64; 5], what: &str| {
        let found: Vec<u64> = counts(&proxy).into_iter().map(|(_, count)| count).collect();
        assert_eq!(found, expected, "{what}");
    };
    proxy.get(&origin.url("/x?sig=1"), "");
    is_counted([1, 1, 1, 0, 0], "a miss: `type` decides before `late`");
    assert!(proxy.get(&origin.url("/x?sig=2"), "").cache_status().contains("hit"));
    is_counted([2, 2, 2, 0, 0], "a hit");
    let post =
        format!("POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", origin.url("/x"));
    proxy.connect().ask(&post);
    is_counted([3, 3, 2, 0, 0], "the response to a POST is not for the cache");
}

#[test]
fn a_floor_makes_a_response_without_a_lifetime_a_hit() {
    let origin = TestOrigin::start(|_, _| ok("ETag: \"a\"\r\n", b"x"));
    let floor = Effects { fresh_at_least: Some(600), ..Effects::default() };
    let proxy = proxy(vec![("floor", path("/x"), floor)]);
    proxy.get(&origin.url("/x"), "");
    let hit = proxy.get(&origin.url("/x"), "");
    assert!(hit.cache_status().starts_with("foxy; hit; ttl="), "{}", hit.cache_status());
    proxy.get(&origin.url("/y"), "");
    let other = proxy.get(&origin.url("/y"), "");
    assert!(other.cache_status().starts_with("foxy; fwd=stale"), "{}", other.cache_status());
}

#[test]
fn ignored_parameters_reach_the_origin_but_not_the_key() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let query_ignore = Some(vec!["sig".parse().expect("a pattern")]);
    let proxy = proxy(vec![("signed", path("/x"), Effects { query_ignore, ..Effects::default() })]);
    proxy.get(&origin.url("/x?sig=1&v=2"), "");
    assert!(origin.heads.lock().expect("heads")[0].starts_with("GET /x?sig=1&v=2 "));
    assert!(proxy.get(&origin.url("/x?sig=9&v=2"), "").cache_status().contains("hit"));
    assert!(proxy.get(&origin.url("/x?sig=9&v=3"), "").cache_status().contains("uri-miss"));
    let post = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        origin.url("/x?v=2&sig=7")
    );
    proxy.connect().ask(&post);
    let after = proxy.get(&origin.url("/x?sig=1&v=2"), "");
    assert!(after.cache_status().contains("uri-miss"), "the POST invalidated the URL");
}

#[test]
fn a_bypass_neither_uses_nor_fills_the_cache() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let bypass = Effects { bypass: Some(true), ..Effects::default() };
    let proxy = proxy(vec![("fresh", client("127.0.0.2/32"), bypass)]);
    let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url("/x"));
    for expected in [1, 2] {
        let answer = proxy.connect_from([127, 0, 0, 2]).ask(&request);
        assert!(answer.cache_status().starts_with("foxy; fwd=bypass"), "{answer:?}");
        assert_eq!(origin.requests(), expected);
    }
    proxy.get(&origin.url("/x"), "");
    assert!(proxy.get(&origin.url("/x"), "").cache_status().contains("hit"));
}

#[test]
fn a_rule_decides_which_answers_tell_their_times() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let told = |times| Effects { server_timing: Some(times), ..Effects::default() };
    let list =
        vec![("quiet", path("/q"), told(false)), ("slow", client("127.0.0.2/32"), told(true))];
    let names = |address: [u8; 4], target: &str, proxy: &TestProxy| {
        let request = format!("GET {} HTTP/1.1\r\nHost: a\r\n\r\n", origin.url(target));
        let answer = proxy.connect_from(address).ask(&request);
        answer.header("server-timing").split(';').next().unwrap_or_default().to_owned()
    };
    let asked = proxy(list.clone());
    for (address, target, expected) in
        [([127, 0, 0, 2], "/x", "cache"), ([127, 0, 0, 3], "/x", ""), ([127, 0, 0, 2], "/q", "")]
    {
        assert_eq!(names(address, target, &asked), expected, "{address:?} {target}");
    }
    let explained = explain(&asked, &origin.url("/q"), "").to_string();
    assert!(explained.contains("quiet") && explained.contains("server-timing"), "{explained}");
    let list = RulesInForce::new(rules(list));
    let always = proxy_with(|settings| {
        settings.rules = list;
        settings.server_timing = ServerTiming::Always;
    });
    assert_eq!(names([127, 0, 0, 3], "/x", &always), "cache");
    assert_eq!(names([127, 0, 0, 3], "/q", &always), "");
}

#[test]
fn paths_and_fields_are_changed_on_both_sides() {
    let origin =
        TestOrigin::start(|_, _| ok("Set-Cookie: a=b\r\nCache-Control: private\r\n", b"x"));
    let edits = |remove: &[&str], set: &[(&str, &str)]| {
        let set = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Some(FieldEdits { remove: remove.iter().map(|name| (*name).into()).collect(), set })
    };
    let rewrite = Some(Rewrite::new("/old/(.*)", "/new/$1").expect("sound"));
    let request_fields = edits(&["Cookie"], &[("X-Tenant", "seven")]);
    let response_fields = edits(&["Set-Cookie"], &[("Cache-Control", "max-age=60")]);
    let all = Effects { rewrite, request_fields, response_fields, ..Effects::default() };
    let proxy = proxy(vec![("all", Conditions::default(), all)]);
    let answer = proxy.get(&origin.url("/old/a?q"), "Cookie: c\r\n");
    assert_eq!(answer.header("set-cookie"), "");
    let head = origin.heads.lock().expect("heads")[0].clone();
    assert!(head.starts_with("GET /new/a?q "), "{head}");
    assert!(head.contains("X-Tenant: seven\r\n") && !head.contains("Cookie"), "{head}");
    let hit = proxy.get(&origin.url("/new/a?q"), "");
    assert!(hit.cache_status().contains("hit"), "the edited response may be stored: {hit:?}");
}

#[test]
fn a_response_of_a_forbidden_type_is_not_stored_and_the_explanation_names_the_rule() {
    let origin = TestOrigin::start(|_, _| {
        ok("Content-Type: Video/MP4; a=b\r\nCache-Control: max-age=600\r\n", b"x")
    });
    let video = vec!["video/*".parse().expect("a pattern")];
    let when = Conditions { content_types: video, ..Conditions::default() };
    let never = Effects { store: Some(false), ..Effects::default() };
    let proxy = proxy(vec![("no-video", when, never)]);
    proxy.get(&origin.url("/x"), "");
    assert!(proxy.get(&origin.url("/x"), "").cache_status().contains("uri-miss"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let handle = proxy.proxy.handle();
    let (url, local) = (origin.url("/x"), IpAddr::from([127, 0, 0, 1]).into());
    let explanation = runtime.block_on(handle.explain(("GET", &url), &[], local)).to_string();
    assert!(explanation.contains("no-video"), "{explanation}");
    assert!(explanation.contains("a rule of the operator forbids storage"), "{explanation}");
}

#[test]
fn new_rules_take_effect_at_once() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let proxy = proxy(Vec::new());
    let url = origin.url("/x");
    proxy.get(&url, "");
    let handle = proxy.proxy.handle();
    handle.rules().replace(rules(vec![(
        "closed",
        path("/x"),
        access(Access::Deny { message: None }),
    )]));
    assert_eq!(proxy.get(&url, "").status, 403);
    handle.rules().replace(OperatorRules::default());
    assert!(proxy.get(&url, "").cache_status().contains("hit"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let scopes = Named::Url.scopes(&url).expect("a URL");
    runtime.block_on(handle.purge(&scopes, Strength::Hard)).expect("purged");
    assert!(proxy.get(&url, "").cache_status().contains("uri-miss"));
}

#[test]
fn no_rewriting_leads_to_a_denied_path() {
    let origin = TestOrigin::start(|_, _| ok("", b"secret"));
    let rewrite = Some(Rewrite::new("/old/(.*)", "/$1").expect("sound"));
    let deny = access(Access::Deny { message: None });
    let proxy = proxy(vec![
        ("private", path("/secret*"), deny),
        ("old", path("/old/*"), Effects { rewrite, ..Effects::default() }),
    ]);
    assert_eq!(proxy.get(&origin.url("/old/secret"), "").status, 403);
    assert_eq!(counts(&proxy), [("private".to_owned(), 1), ("old".to_owned(), 1)]);
    let explained = explain(&proxy, &origin.url("/old/secret"), "").to_string();
    assert!(explained.contains("the rule matches the new path and refuses it"), "{explained}");
    assert_eq!(proxy.get(&origin.url("/old/x"), "").status, 200);
}

#[test]
fn a_field_that_depends_on_the_client_never_changes_a_shared_answer() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let header = vec![NamedPattern { name: "X-Evil".into(), value: None }];
    let set = vec![("X-User".to_owned(), "admin".to_owned())];
    let fields = Some(FieldEdits { set, ..FieldEdits::default() });
    let bypass = |bypass| Effects { bypass: Some(bypass), ..Effects::default() };
    let proxy = proxy(vec![
        ("first", path("/x"), bypass(false)),
        (
            "fields",
            Conditions { headers: header, ..Conditions::default() },
            Effects { request_fields: fields, ..bypass(true) },
        ),
    ]);
    let evil = proxy.get(&origin.url("/x"), "X-Evil: 1\r\n");
    assert!(evil.cache_status().starts_with("foxy; fwd=bypass"), "{evil:?}");
    assert!(proxy.get(&origin.url("/x"), "").cache_status().contains("uri-miss"));
}

#[test]
fn a_redirect_needs_no_origin_and_yields_to_a_denial() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"));
    let redirect = Redirect::new(301, None, "https://$host$request_uri").expect("sound");
    let to_tls = Effects { redirect: Some(redirect), ..Effects::default() };
    let proxy = proxy(vec![
        ("private", path("/old/private"), access(Access::Deny { message: None })),
        ("tls", path("/old/*"), to_tls),
    ]);
    let answer = proxy.get(&origin.url("/old/a?b=1"), "");
    let found = (answer.status, answer.header("location"), answer.cache_status());
    let location = "https://127.0.0.1/old/a?b=1";
    assert_eq!(found, (301, location, "foxy; detail=redirected-by-rule"));
    let explained = explain(&proxy, &origin.url("/old/a?b=1"), "").to_string();
    assert!(explained.contains(location), "{explained}");
    assert!(explained.contains("foxy answers 301 with the new URL"), "{explained}");
    let post =
        format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", origin.url("/old/b"));
    let mut client = proxy.connect();
    assert_eq!(client.ask(&post).status, 301);
    assert_eq!(client.ask(&post).status, 301, "the body was read");
    assert_eq!(proxy.get(&origin.url("/old/private"), "").status, 403);
    assert_eq!(origin.requests(), 0);
    assert_eq!(proxy.get(&origin.url("/new"), "").status, 200);
}

#[test]
fn a_tag_that_a_rule_hides_from_clients_still_purges() {
    let origin =
        TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\nSurrogate-Key: news\r\n", b"x"));
    let remove = vec!["Surrogate-Key".to_owned()];
    let response_fields = Some(FieldEdits { remove, ..FieldEdits::default() });
    let hide = Effects { response_fields, ..Effects::default() };
    let proxy = proxy(vec![("hide", Conditions::default(), hide)]);
    for expected in ["uri-miss", "hit"] {
        let answer = proxy.get(&origin.url("/x"), "");
        assert!(answer.cache_status().contains(expected), "{answer:?}");
        assert_eq!(answer.header("surrogate-key"), "");
        assert!(!format!("{answer:?}").contains("news"), "{answer:?}");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let scopes = Named::Tag.scopes("news").expect("a tag");
    runtime.block_on(proxy.proxy.handle().purge(&scopes, Strength::Hard)).expect("purged");
    assert!(proxy.get(&origin.url("/x"), "").cache_status().contains("uri-miss"));
}

#[test]
fn no_client_removes_a_field_that_a_rule_sets() {
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let set = vec![("X-Sec".to_owned(), "yes".to_owned())];
    let request_fields = Some(FieldEdits { set, ..FieldEdits::default() });
    let all = Effects { request_fields, ..Effects::default() };
    let proxy = proxy(vec![("all", Conditions::default(), all)]);
    proxy.get(&origin.url("/x"), "Connection: X-Sec, keep-alive\r\n");
    let head = origin.heads.lock().expect("heads")[0].clone();
    assert!(head.contains("X-Sec: yes\r\n"), "{head}");
}

#[test]
fn no_trailer_has_the_name_of_a_request_field_that_a_rule_changes() {
    let (sender, received) = mpsc::channel();
    let origin = listen(move |mut stream| {
        let head = read_head(&mut stream);
        let body = read_head(&mut stream);
        sender.send((head, body)).expect("the test waits");
        stream.write_all(&ok("", b"x")).expect("the proxy reads");
    });
    let set = vec![("X-Sec".to_owned(), "yes".to_owned())];
    let request_fields = Some(FieldEdits { set, remove: vec!["X-Secret".to_owned()] });
    let all = Effects { request_fields, ..Effects::default() };
    let proxy = proxy(vec![("all", Conditions::default(), all)]);
    let request = format!(
        "POST http://{origin}/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\nx-sec: no\r\nX-SECRET: 1\r\nX-Sum: 9\r\n\r\n"
    );
    assert_eq!(proxy.connect().ask(&request).status, 200);
    let (head, body) = received.recv().expect("a request");
    assert!(head.is_some_and(|head| head.contains("X-Sec: yes\r\n")));
    assert_eq!(body.as_deref(), Some("2\r\nhi\r\n0\r\nX-Sum: 9\r\n\r\n"));
}
