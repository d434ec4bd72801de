//! What proxies are accused of beside an origin that changes, and what they are not.

use super::tests::{run_of, server, whole};
use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The path that a request asks for.
fn path(request: &str) -> &str {
    request.split(' ').nth(1).expect("a path")
}

/// Asks the origin and these proxies for these paths, one after the other.
fn replay(origin: SocketAddr, proxies: &[SocketAddr], paths: &[&str]) -> LeapReport {
    let proxies = proxies.iter().map(|&address| ("proxy", address, Manner::Reverse));
    let all: Vec<_> = std::iter::once(("direct", origin, Manner::Direct)).chain(proxies).collect();
    let asked = |path: &str| Asked::get("o.test".into(), path.into(), Duration::ZERO);
    let mut requests = paths.iter().map(|path| asked(path));
    super::run(&run_of(&all), &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {}).expect("run")
}

/// What is said of a path, in order.
fn said(path: &PathReport) -> Vec<(Verdict, &str)> {
    path.examples.iter().map(|example| (example.verdict, example.why.as_str())).collect()
}

#[test]
fn a_field_that_changes_by_itself_at_one_url_is_checked_at_others_and_may_be_lost_at_none() {
    let count = AtomicU64::new(0);
    let tag = move |path: &str| match path {
        "/changes" => count.fetch_add(1, Ordering::Relaxed),
        _ => 0,
    };
    let origin = server(move |request| Some(whole(&format!("ETag: \"{}\"\r\n", tag(path(request))), "body")));
    let other = server(|_| Some(whole("ETag: \"other\"\r\n", "body")));
    let none = server(|_| Some(whole("", "body")));
    let report = replay(origin, &[other, none], &["/changes", "/stays"]);
    assert_eq!(said(&report.paths[1]), [(Verdict::HeaderMismatch, "etag is another")]);
    assert_eq!(report.paths[1].examples[0].url, "http://o.test/stays");
    assert_eq!(said(&report.paths[2]), [(Verdict::HeaderMismatch, "etag is missing"); 2]);
}
