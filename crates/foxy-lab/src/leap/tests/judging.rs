//! Tests of verdicts while the origin changes. LEAP must blame a proxy for some differences from
//! the origin's answer, and excuse others.

use super::{run_of, server, whole};
use crate::leap::*;
use std::sync::atomic::{AtomicU64, Ordering};

fn path(request: &str) -> &str {
    request.split(' ').nth(1).expect("a path")
}

/// Sends requests for the URL paths in `paths`, one after the other, to the origin and to the
/// proxies.
fn replay(origin: SocketAddr, proxies: &[SocketAddr], paths: &[&str]) -> LeapReport {
    let proxies = proxies.iter().map(|&address| ("proxy", address, Manner::Reverse));
    let all: Vec<_> = std::iter::once(("direct", origin, Manner::Direct)).chain(proxies).collect();
    let asked = |path: &str| Asked::get("o.test".into(), path.into(), Duration::ZERO);
    let mut requests = paths.iter().map(|path| asked(path));
    crate::leap::run(&run_of(&all), &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {})
        .expect("run")
}

/// Returns LEAP's verdicts on a proxy with their reasons, in order.
fn said(path: &PathReport) -> Vec<(Verdict, &str)> {
    path.examples.iter().map(|example| (example.verdict, example.why.as_str())).collect()
}

#[test]
fn a_field_that_varies_at_one_url_is_checked_at_others_and_may_be_lost_at_none() {
    let count = AtomicU64::new(0);
    let tag = move |path: &str| match path {
        "/changes" => count.fetch_add(1, Ordering::Relaxed),
        _ => 0,
    };
    let origin = server(move |request| {
        Some(whole(&format!("ETag: \"{}\"\r\n", tag(path(request))), "body"))
    });
    let other = server(|_| Some(whole("ETag: \"other\"\r\n", "body")));
    let none = server(|_| Some(whole("", "body")));
    let report = replay(origin, &[other, none], &["/changes", "/stays"]);
    assert_eq!(said(&report.paths[1]), [(Verdict::HeaderMismatch, "etag has another value")]);
    assert_eq!(report.paths[1].examples[0].url, "http://o.test/stays");
    assert_eq!(said(&report.paths[2]), [(Verdict::HeaderMismatch, "etag is missing"); 2]);
}

fn says(body: &'static str) -> SocketAddr {
    server(move |_| Some(whole("", body)))
}

#[test]
fn a_body_that_another_program_has_too_may_be_what_the_origin_had_before() {
    let count = |report: &LeapReport, path: usize| {
        let unjudged = report.paths[path].unjudged_by_reason[Unjudged::SeenElsewhere as usize];
        (unjudged, report.paths[path].count(Verdict::BodyMismatch))
    };
    let (origin, one, other) = (says("after"), says("before"), says("before"));
    let report = replay(origin, &[one, other, says("never")], &["/a"]);
    assert_eq!([1, 2, 3].map(|path| count(&report, path)), [(1, 0), (1, 0), (0, 1)]);
    // LEAP excuses none of these cases: one server as two proxies, an empty body, the body of
    // another URL, and a Collector as parent proxy.
    assert_eq!(count(&replay(origin, &[one, one], &["/a"]), 1), (0, 1));
    assert_eq!(count(&replay(origin, &[says(""), says("")], &["/a"]), 1), (0, 1));
    let swapped = || server(|_| Some(whole("", "/a")));
    let by_path = server(|request| Some(whole("", path(request))));
    let report = replay(by_path, &[swapped(), swapped()], &["/a", "/b"]);
    assert_eq!(said(&report.paths[1]), [(Verdict::BodyMismatch, "the body of http://o.test/a")]);
    let run = run_of(&[
        ("direct", origin, Manner::Direct),
        ("one", one, Manner::Reverse),
        ("other", other, Manner::Reverse),
    ]);
    let alike = LeapRun { alike: vec![(1, 2)], ..run.clone() };
    let collected = LeapRun { wanted: Some(Arc::default()), ..run };
    for run in [alike, collected] {
        let asked = Asked::get("o.test".into(), "/a".into(), Duration::ZERO);
        let mut one = std::iter::once(asked.clone());
        let report =
            crate::leap::run(&run, &asked, &mut one, &mut |_| {}, &mut |_| {}).expect("run");
        assert_eq!(count(&report, 1), (0, 1));
    }
}

#[test]
fn a_field_that_the_origin_drops_when_asked_again_is_not_demanded_of_proxies() {
    let count = AtomicU64::new(0);
    let origin = server(move |_| {
        let first = count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Some(whole(if first { "Set-Cookie: a=b\r\n" } else { "" }, "body"))
    });
    let report =
        replay(origin, &[says("body"), server(|_| Some(whole("Vary: *\r\n", "body")))], &["/a"]);
    assert_eq!(
        report.paths[1].unjudged_by_reason[Unjudged::OriginVaries as usize],
        1,
        "{:?}",
        report.paths[1]
    );
    assert_eq!(report.paths[2].count(Verdict::HeaderMismatch), 1);
}

#[test]
fn a_proxy_whose_answer_breaks_off_as_the_origins_own_does_is_not_accused() {
    let short = || server(|_| Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()));
    let report = replay(short(), &[short(), server(|_| Some(b"what?\r\n\r\n".to_vec()))], &["/a"]);
    assert_eq!(said(&report.paths[0]), [(Verdict::Incomplete, "closed_early")]);
    assert_eq!(report.paths[1].unjudged_by_reason[Unjudged::OriginFailed as usize], 1);
    assert_eq!((report.paths[1].failed(), report.paths[1].count(Verdict::Incomplete)), (1, 0));
    assert_eq!(report.paths[2].count(Verdict::Incomplete), 1);
}
