//! Tests explanations: foxy's prediction of how it would answer a request. An explanation must
//! predict the next answer, must change nothing, and must contact no origin.

use crate::bench::{TestProxy, forward_proxy, proxy_with};
use foxy_proxy::cache::purge::{Named, Strength};
use foxy_proxy::explain::{Explanation, Outcome};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use std::net::IpAddr;

pub fn explain(proxy: &TestProxy, url: &str, lines: &str) -> Explanation {
    explain_from(proxy, [127, 0, 0, 1], ("GET", url), lines)
}

fn explain_from(
    proxy: &TestProxy,
    client: [u8; 4],
    asked: (&str, &str),
    lines: &str,
) -> Explanation {
    let fields = lines.lines().filter_map(|line| line.split_once(": "));
    let fields: Vec<_> = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(proxy.proxy.handle().explain(asked, &fields, IpAddr::from(client).into()))
}

fn names(explanation: &Explanation) -> String {
    explanation.steps.iter().map(|step| step.name()).collect::<Vec<_>>().join(" ")
}

fn check(proxy: &TestProxy, url: &str, lines: &str, expected: &str) {
    assert_eq!(names(&explain(proxy, url, lines)), expected, "{url} {lines:?}");
}

fn purge(proxy: &TestProxy, url: &str, strength: Strength) {
    let scopes = Named::Url.scopes(url).expect("a URL");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(proxy.proxy.handle().purge(&scopes, strength)).expect("purged");
}

#[test]
fn a_request_is_explained_at_each_turn_of_what_is_stored() {
    let origin = TestOrigin::start(|head, _| match header(head, "if-none-match") {
        Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec(),
        None => ok("Cache-Control: max-age=600\r\nETag: \"a\"\r\n", b"body"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    check(&proxy, &url, "", "key not-stored fetch");
    check(&proxy, &url, "Cache-Control: only-if-cached", "key not-stored refuse");
    proxy.get(&url, "");
    let found = explain(&proxy, &url, "");
    assert_eq!(names(&found), "key stored not-purged lifetime age fresh reuse hit");
    let shown = found.stored.expect("stored");
    assert_eq!((shown.length, shown.lifetime), (4, 600));
    assert!(String::from_utf8_lossy(&shown.head).contains("ETag: \"a\"\r\n"));
    let asked_anew = "key stored not-purged lifetime age request-no-cache request-no-cache \
                      if-unreachable validate";
    check(&proxy, &url, "Cache-Control: no-cache", asked_anew);
    purge(&proxy, &url, Strength::Soft);
    check(
        &proxy,
        &url,
        "",
        "key stored purged-softly lifetime age stale stale if-unreachable validate",
    );
    assert_eq!(origin.requests(), 1, "no origin was asked");
    assert!(proxy.get(&url, "").cache_status().starts_with("foxy; fwd=stale; fwd-status=304"));
    check(&proxy, &url, "", "key stored not-purged lifetime age fresh reuse hit");
    let all = Named::Site.scopes(&format!("http://{}", origin.address)).expect("a site");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(proxy.proxy.handle().purge(&all, Strength::Hard)).expect("purged");
    check(&proxy, &url, "", "key stored purged fetch");
    assert!(proxy.get(&url, "").cache_status().starts_with("foxy; fwd=uri-miss"));
}

#[test]
fn variants_and_what_the_cache_is_not_asked_about_are_explained() {
    let origin =
        TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\nVary: Accept\r\n", b"body"));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "Accept: a/b\r\n");
    check(&proxy, &url, "Accept: a/b", "key vary stored not-purged lifetime age fresh reuse hit");
    check(&proxy, &url, "Accept: c/d", "key vary not-stored fetch");
    check(&proxy, &url, "If-Match: \"a\"", "bypass fetch");
    check(&proxy, "/x", "", "bad-request refuse");
    let explanation = explain(&proxy, "gopher://a.test/", "");
    assert!(
        matches!(explanation.steps.last(), Some(step) if step.name() == "refuse"),
        "{explanation}"
    );
}

#[test]
fn a_client_that_may_not_use_the_proxy_is_told_so() {
    let proxy = proxy_with(|settings| {
        settings.allow_client = vec!["192.0.2.0/24".parse().expect("a block")].into();
    });
    let explained = |client| names(&explain_from(&proxy, client, ("GET", "http://192.0.2.9/"), ""));
    assert_eq!(explained([192, 0, 2, 1]), "key not-stored fetch");
    assert_eq!(explained([198, 51, 100, 1]), "client-not-allowed refuse");
}

#[test]
fn a_tunnel_and_a_purge_are_explained_as_such() {
    let proxy = forward_proxy();
    let explained = |asked| names(&explain_from(&proxy, [127, 0, 0, 1], asked, ""));
    assert_eq!(explained(("CONNECT", "192.0.2.9:443")), "connect tunnel");
    assert_eq!(explained(("PURGE", "http://a.test/")), "purge-request purge");
}

#[test]
fn a_request_with_foxy_explain_is_answered_by_its_explanation_for_those_who_may() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"body"));
    let near = proxy_with(|settings| {
        settings.purge_from = vec!["127.0.0.0/8".parse().expect("a block")].into()
    });
    let url = origin.url("/x");
    let answer = near.get(&url, "Foxy-Explain: 1\r\n");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!((answer.status, answer.cache_status()), (200, "foxy; detail=explained"));
    assert!(text.contains("RFC 9111 §2"), "{text}");
    assert!(text.contains(&format!("the cache key is {url}\n")), "{text}");
    assert!(
        text.ends_with(&format!(
            "{}\n",
            Outcome::Fetch(foxy_proxy::core::outcome::ForwardReason::UriMiss)
        )),
        "{text}"
    );
    assert_eq!(origin.requests(), 0);
    let nobody = forward_proxy();
    assert_eq!(nobody.get(&url, "Foxy-Explain: 1\r\n").body, b"body");
    assert_eq!(origin.requests(), 1);
}

#[test]
fn why_the_last_answer_was_not_kept_is_explained_until_one_is() {
    let origin = TestOrigin::start(|_, number| match number {
        0 => ok("Cache-Control: no-store\r\n", b"body"),
        1 => ok("Cache-Control: max-age=60\r\n", &[b'x'; 3000]),
        _ => ok("Cache-Control: max-age=60\r\n", b"body"),
    });
    let proxy = proxy_with(|settings| settings.object_limit = 2000);
    let url = origin.url("/x");
    check(&proxy, &url, "", "key not-stored fetch");
    proxy.get(&url, "");
    let explained = explain(&proxy, &url, "");
    assert_eq!(names(&explained), "key not-stored response-no-store fetch");
    assert_eq!(explained.steps[2].section(), "RFC 9111 §5.2.2.5");
    let text = explained.steps[2].to_string();
    assert!(
        text.starts_with("the last answer (200, ")
            && text.ends_with("was not stored: the response says no-store"),
        "{text}"
    );
    proxy.get(&url, "");
    check(&proxy, &url, "", "key not-stored too-large fetch");
    proxy.get(&url, "");
    check(&proxy, &url, "", "key stored not-purged lifetime age fresh reuse hit");
}

#[test]
fn a_forbidden_destination_is_explained_as_a_refusal() {
    let proxy = forward_proxy();
    let explained = |asked| names(&explain_from(&proxy, [127, 0, 0, 1], asked, ""));
    let refused = "destination-forbidden refuse";
    assert_eq!(explained(("GET", "http://10.0.0.1/")), format!("key not-stored {refused}"));
    assert_eq!(explained(("POST", "http://10.0.0.1/")), format!("method invalidates {refused}"));
    assert_eq!(explained(("CONNECT", "10.0.0.1:443")), format!("connect {refused}"));
    assert_eq!(explained(("CONNECT", "192.0.2.9:22")), format!("connect {refused}"));
    let text = explain(&proxy, "http://10.0.0.1/", "").to_string();
    assert!(text.contains("the host resolves to a private address; to allow it, add"), "{text}");
    assert!(text.contains("foxy answers 403: "), "{text}");
    assert_eq!(proxy.get("http://10.0.0.1/", "").status, 403);
}

#[test]
fn an_invalidation_is_explained_until_a_response_is_stored() {
    let origin = TestOrigin::start(|head, _| match head.starts_with("POST") {
        true => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        false => ok("Cache-Control: max-age=60\r\n", b"body"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let posted = explain_from(&proxy, [127, 0, 0, 1], ("POST", &url), "");
    assert_eq!(names(&posted), "method invalidates fetch");
    let host = url.split('/').nth(2).expect("an authority");
    proxy.connect().ask(&format!("POST {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let explained = explain(&proxy, &url, "");
    assert_eq!(names(&explained), "key not-stored invalidated fetch");
    let text = explained.steps[2].to_string();
    assert!(text.starts_with("the last answer (204, "), "{text}");
    proxy.get(&url, "");
    check(&proxy, &url, "", "key stored not-purged lifetime age fresh reuse hit");
}
