//! Tests the log of transactions of a running foxy, ids of requests, and `Server-Timing`.

use crate::support::commands::foxy;
use crate::support::{Foxy, Origin, Response, request};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use serde_json::Value;
use std::path::Path;

/// Runs `foxy log --json` with more arguments. Returns the transactions.
fn transactions(ring: &Path, more: &[&str]) -> Vec<Value> {
    let (code, said, errors) = foxy(&[&["log", text(ring), "--json"], more].concat());
    assert_eq!(code, Some(0), "{errors}");
    said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Waits until `count` transactions meet the query.
fn wait_for(ring: &Path, query: &str, count: usize) -> Vec<Value> {
    until(&format!("{count} transactions with {query}"), || {
        let found = transactions(ring, &["-q", query]);
        (found.len() == count).then_some(found)
    })
}

fn get(foxy: &Foxy, url: &str, fields: &str) -> Response {
    let head = format!("GET {url} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    request(foxy.proxy, &head)
}

#[test]
fn the_ring_has_both_sides_of_a_request_and_no_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().join("transactions");
    let logging = ["--transaction-log", text(&ring), "--transaction-log-size", "1M"];
    let (foxy, origin) = (Foxy::start(&folder.path().join("store"), &logging), Origin::start());
    let url = origin.url("page");
    get(&foxy, &origin.url("secret").replace("http://", "http://user:word@"), "");
    get(&foxy, &url, "X-Request-Id: not-trusted\r\n");
    get(&foxy, &url, "");
    let refused = get(&foxy, "http://127.0.0.2:1/", "");
    assert_eq!(refused.status, 502);
    let misses = wait_for(&ring, "outcome = miss and path = /page", 1);
    assert!(misses[0]["origin.ttfb_us"].as_u64().is_some_and(|micros| micros > 0), "{misses:?}");
    assert_eq!(
        (&misses[0]["origin.status"], &misses[0]["reason"]),
        (&200.into(), &"uri-miss".into())
    );
    let hits = wait_for(&ring, "outcome = memory-hit and hit = yes and path = /page", 1);
    assert_eq!(hits[0].get("origin.ttfb_us"), None);
    let failed = wait_for(&ring, "status = 502 and error = yes and kept = error", 1);
    let id = failed[0]["id"].as_str().expect("an id");
    assert!(refused.body.ends_with(&format!("\nrequest {id}\n")), "{}", refused.body);
    assert_eq!(foxy.metric::<u64>("foxy_transaction_log_entries_lost_total"), 0);
    let all = transactions(&ring, &[]);
    let ids: std::collections::BTreeSet<_> = all.iter().map(|one| one["id"].to_string()).collect();
    assert_eq!(ids.len(), all.len(), "{all:?}");
    assert!(!std::fs::read(&ring).expect("a ring").windows(9).any(|nine| nine == b"user:word"));
    let (_, stats, _) = foxy_stats(&ring);
    assert!(stats.contains("origin-failed") && stats.contains("\nslowest\n"), "{stats}");
}

fn foxy_stats(ring: &Path) -> (Option<i32>, String, String) {
    foxy(&["log", "stats", text(ring)])
}

#[test]
fn a_trusted_client_gives_the_id_and_the_origin_receives_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().join("transactions");
    let trusting = [
        "--transaction-log",
        text(&ring),
        "--forwarded-from",
        "127.0.0.0/8",
        "--request-ids",
        "send",
    ];
    let foxy = Foxy::start(&folder.path().join("store"), &trusting);
    let origin = TestOrigin::start(|request, _| {
        let id = request.lines().find_map(|line| line.strip_prefix("X-Request-Id: "));
        ok("Cache-Control: max-age=9\r\n", id.unwrap_or_default().as_bytes())
    });
    let given = get(&foxy, &origin.url("/a"), "X-Request-Id: balancer-7\r\n");
    assert_eq!(given.body, "balancer-7");
    assert_eq!(wait_for(&ring, "id = balancer-7", 1)[0]["outcome"], "miss");
    let made = get(&foxy, &origin.url("/b"), "X-Request-Id: a\"b\r\n").body;
    assert_eq!(made.len(), 16, "{made}");
    wait_for(&ring, &format!("id = {made}"), 1);
}

#[test]
fn server_timing_answers_clients_that_may_ask() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |name: &str, more: &[&str]| Foxy::start(&folder.path().join(name), more);
    let origin = Origin::start();
    let timing = |foxy: &Foxy, fields: &str| {
        let answer = get(foxy, &origin.url("page"), fields);
        assert_eq!(answer.status, 200);
        answer.fields.get("server-timing").cloned()
    };
    const ASKS: &str = "Foxy-Explain: timing\r\n";
    let open = start("open", &["--purge-from", "127.0.0.0/8"]);
    assert_eq!(timing(&open, ""), None);
    let hit = timing(&open, ASKS).expect("a value");
    assert!(hit.starts_with("cache;desc=memory-hit, total;dur="), "{hit}");
    let shut = start("shut", &[]);
    assert_eq!(timing(&shut, ASKS), None);
    let always = start("always", &["--server-timing", "always"]);
    let miss = timing(&always, "").expect("a value");
    let parts: Vec<_> = miss.split(", ").map(|part| part.split("dur=").next()).collect();
    let expected = ["cache;desc=miss", "connect;", "origin;", "total;"].map(Some);
    assert_eq!(parts, expected, "{miss}");
}

#[test]
fn a_wrong_query_is_explained_where_it_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    std::fs::write(&log, "").expect("written");
    let (code, _, errors) = foxy(&["log", text(&log), "-q", "hit = no and statsu >= 500"]);
    assert_eq!(code, Some(2));
    let expected = "foxy: the query is wrong at column 14: no field is named \"statsu\"; did you \
                    mean status? `foxy log --fields` lists the fields\n  \
                    hit = no and statsu >= 500\n  \
                    \x20            ^\n";
    assert_eq!(errors, expected);
    let (code, said, _) = foxy(&["log", "--fields"]);
    assert!(code == Some(0) && said.contains("origin.ttfb"), "{said}");
    let (code, _, errors) = foxy(&["log"]);
    assert!(code == Some(2) && errors.contains("set transaction-log"), "{errors}");
}
