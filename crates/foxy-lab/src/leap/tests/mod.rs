//! Tests of LEAP runs against servers in this process. Some servers answer correctly, and others
//! send faulty answers.

mod http2;
mod judging;
mod kept;
mod lost;
mod tls;
mod trailers;

use super::verdict::Fingerprint;
use super::*;
use foxy_http::Headers;
use foxy_testkit::http::read_request;
use foxy_testkit::origin::listen_in_order;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn answer(status: u16, body: &[u8], fields: &[(&str, &str)]) -> Answer {
    let headers: Headers = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let digest = xxhash_rust::xxh3::xxh3_128(body);
    let (length, decoding, framing) = (body.len() as u64, Decoding::Undone, Framing::Plain);
    Answer { status, headers, length, digest, decoding, framing, hit: None }
}

/// Starts a server that answers each request with `reply(request)`. If `reply` returns `None`, the
/// server does not answer.
pub(crate) fn server(reply: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> SocketAddr {
    let mut kept: Vec<TcpStream> = Vec::new();
    listen_in_order(move |mut client| {
        let request = read_request(&mut client).unwrap_or_default();
        match reply(&request) {
            Some(bytes) => client.write_all(&bytes).expect("sent"),
            None => kept.push(client),
        }
    })
}

fn path(request: &str) -> String {
    request.split(' ').nth(1).expect("a path").to_owned()
}

pub(crate) fn whole(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()).into_bytes()
}

/// The header fields in every answer of a correct server.
const FIELDS: &str = "Vary: Accept-Language\r\nETag: \"1\"\r\n";

fn body_of(path: &str) -> String {
    format!("the body of {path}")
}

pub(crate) fn honest() -> SocketAddr {
    server(|request| Some(whole(FIELDS, &body_of(&path(request)))))
}

fn asked(path: &str) -> Asked {
    Asked::get("o.test".into(), path.into(), Duration::ZERO)
}

pub(crate) fn run_of(paths: &[(&str, SocketAddr, Manner)]) -> LeapRun {
    let path = |&(name, address, manner): &(&str, SocketAddr, Manner)| Path {
        name: name.into(),
        address,
        manner,
    };
    let paths = paths.iter().map(path).collect();
    LeapRun { time_limit: Duration::from_secs(2), ..LeapRun::new(paths) }
}

/// Runs LEAP with requests for these URL paths, in this order. Returns the report and the log.
fn replay(run: &LeapRun, paths: &[&str]) -> (LeapReport, Vec<Line>) {
    let mut lines = Vec::new();
    let mut requests = paths.iter().map(|path| asked(path));
    let report = super::run(
        run,
        &asked("/probe"),
        &mut requests,
        &mut |line| lines.push(line.clone()),
        &mut |_| {},
    );
    (report.expect("run"), lines)
}

/// Runs LEAP with an origin, a correct proxy and the faulty proxy `liar`. The faulty proxy must
/// receive `verdict`. LEAP must find no fault in the correct proxy.
fn caught(liar: SocketAddr, paths: &[&str], verdict: Verdict, why: &str) {
    caught_beside(honest(), honest(), liar, paths, verdict, why);
}

fn caught_beside(
    origin: SocketAddr,
    proxy: SocketAddr,
    liar: SocketAddr,
    paths: &[&str],
    verdict: Verdict,
    why: &str,
) {
    let run = run_of(&[
        ("direct", origin, Manner::Direct),
        ("honest", proxy, Manner::Reverse),
        ("liar", liar, Manner::Reverse),
    ]);
    let (report, lines) = replay(&run, paths);
    let [direct, honest, liar] = &report.paths[..] else { panic!("three paths") };
    assert_eq!(honest.count(Verdict::Ok), paths.len() as u64, "{:?}", honest.examples);
    assert_eq!(direct.count(Verdict::Ok), paths.len() as u64, "{:?}", direct.examples);
    let example = liar.examples.first().expect("a lie");
    assert_eq!(example.verdict, verdict, "{example:?}");
    assert!(example.why.contains(why), "{example:?}");
    assert!(liar.examples.iter().all(|example| example.verdict == verdict), "{:?}", liar.examples);
    assert_eq!(lines.len(), 3 * paths.len());
    for line in lines {
        assert_eq!(Line::parse(&line.to_string()).map(|line| line.url), Some(line.url));
    }
}

#[test]
fn a_proxy_that_serves_stale_is_named() {
    let version = Arc::new(AtomicU64::new(0));
    let current = || {
        let version = Arc::clone(&version);
        server(move |_| Some(whole(FIELDS, &format!("version {}", version.load(Ordering::SeqCst)))))
    };
    let run = run_of(&[
        ("direct", current(), Manner::Direct),
        ("honest", current(), Manner::Reverse),
        ("liar", server(|_| Some(whole(FIELDS, "version 0"))), Manner::Reverse),
    ]);
    let mut requests = ["/a", "/a"].into_iter().map(asked);
    // The Multiplier (LEAP's request copier) calls `change` when it logs a request, before the next
    // request starts.
    let mut change = |_: &Line| version.store(1, Ordering::SeqCst);
    let report =
        super::run(&run, &asked("/probe"), &mut requests, &mut change, &mut |_| {}).expect("run");
    assert_eq!(report.paths[1].examples, []);
    let [example] = &report.paths[2].examples[..] else { panic!("{:?}", report.paths[2].examples) };
    assert_eq!(
        (example.verdict, example.why.as_str()),
        (Verdict::Stale, "the answer that was right for an earlier request")
    );
}

#[test]
fn a_proxy_that_truncates_is_named() {
    let liar = server(|request| {
        let answer = whole(FIELDS, &body_of(&path(request)));
        Some(answer[..answer.len() - 3].to_vec())
    });
    caught(liar, &["/a", "/b"], Verdict::Incomplete, "closed_early");
}

#[test]
fn a_proxy_that_truncates_and_says_so_in_its_length_is_named() {
    let liar = server(|request| Some(whole(FIELDS, &body_of(&path(request))[..5])));
    caught(liar, &["/a", "/b"], Verdict::BodyMismatch, "5 bytes instead of 14");
}

#[test]
fn a_proxy_that_mixes_variants_is_named() {
    let speaks =
        |request: &str| if request.contains("Accept-Language: de") { "Hallo" } else { "Hello" };
    let polyglot = move || server(move |request| Some(whole(FIELDS, speaks(request))));
    let run = run_of(&[
        ("direct", polyglot(), Manner::Direct),
        ("honest", polyglot(), Manner::Reverse),
        ("liar", server(|_| Some(whole(FIELDS, "Hello"))), Manner::Reverse),
    ]);
    let spoken = |language: &str| {
        let fields = [("Accept-Language", language.as_bytes())].into_iter().collect();
        Asked { message: Arc::new(Message { fields, ..Message::default() }), ..asked("/") }
    };
    let mut requests = ["en", "de", "en"].into_iter().map(spoken);
    let report =
        super::run(&run, &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
    assert_eq!(report.paths[1].examples, []);
    let [example] = &report.paths[2].examples[..] else { panic!("{:?}", report.paths[2].examples) };
    assert_eq!(
        (example.verdict, example.why.as_str()),
        (Verdict::BodyMismatch, "the body of http://o.test/ Accept-Language: en")
    );
}

#[test]
fn a_proxy_that_drops_a_header_is_named() {
    let liar = server(|request| Some(whole("ETag: \"1\"\r\n", &body_of(&path(request)))));
    caught(liar, &["/a", "/b"], Verdict::HeaderMismatch, "vary is missing");
}

#[test]
fn a_proxy_that_swaps_bodies_is_named() {
    let liar = server(|request| {
        let path = if path(request) == "/b" { "/a".to_owned() } else { path(request) };
        Some(whole(FIELDS, &body_of(&path)))
    });
    caught(liar, &["/a", "/b"], Verdict::BodyMismatch, "the body of http://o.test/a");
}

#[test]
fn a_proxy_that_never_answers_is_named_and_costs_only_its_own_row() {
    caught(server(|_| None), &["/a"], Verdict::Timeout, "timeout");
}

#[test]
fn proxies_that_refuse_or_talk_nonsense_are_named() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .expect("bound")
        .local_addr()
        .expect("an address");
    caught(closed, &["/a"], Verdict::Incomplete, "no_connection");
    caught(server(|_| Some(b"what?\r\n\r\n".to_vec())), &["/a"], Verdict::Incomplete, "not_http");
    caught(server(|_| Some(Vec::new())), &["/a"], Verdict::Incomplete, "unanswered");
}

#[test]
fn a_proxy_that_answers_errors_is_named() {
    let liar = server(|_| Some(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".to_vec()));
    caught(liar, &["/a"], Verdict::StatusCodeMismatch, "status 502 instead of 200");
}

#[test]
fn lesson_9_chunks_and_fields_that_change_by_themselves_are_no_lies() {
    let count = AtomicU64::new(0);
    let proxy = server(move |request| {
        let body = body_of(&path(request));
        let (first, rest) = body.split_at(3);
        let id = count.fetch_add(1, Ordering::SeqCst);
        let head = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Request: {id}\r\nAge: {id}\r\n\
             {FIELDS}\r\n"
        );
        Some(format!("{head}3\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n", rest.len()).into_bytes())
    });
    let count = AtomicU64::new(0);
    let origin = server(move |request| {
        let id = count.fetch_add(1, Ordering::SeqCst);
        Some(whole(&format!("X-Request: {id}\r\n{FIELDS}"), &body_of(&path(request))))
    });
    let liar = server(|request| Some(whole("", &body_of(&path(request)))));
    caught_beside(origin, proxy, liar, &["/a", "/b"], Verdict::HeaderMismatch, "etag is missing");
}

#[test]
fn without_the_origin_most_decide_and_an_even_split_accuses_nobody() {
    let liar = || server(|request| Some(whole("ETag: \"1\"\r\n", &path(request))));
    let reverse = Manner::Reverse;
    let (report, _) = replay(
        &run_of(&[("a", honest(), reverse), ("b", liar(), reverse), ("c", honest(), reverse)]),
        &["/x"],
    );
    let verdicts: Vec<u64> =
        report.paths.iter().map(|path| path.count(Verdict::BodyMismatch)).collect();
    assert_eq!((verdicts, report.by_origin), (vec![0, 1, 0], false));
    let (report, lines) =
        replay(&run_of(&[("a", honest(), reverse), ("b", liar(), reverse)]), &["/x"]);
    assert_eq!(report.paths.iter().map(|path| path.unjudged).collect::<Vec<_>>(), [1, 1]);
    assert!(lines.iter().all(|line| line.result == line::Result::Reference));
}

#[test]
fn an_origin_that_changes_its_mind_accuses_nobody() {
    let count = AtomicU64::new(0);
    let fickle =
        server(move |_| Some(whole(FIELDS, &count.fetch_add(1, Ordering::SeqCst).to_string())));
    let run = run_of(&[("direct", fickle, Manner::Direct), ("proxy", honest(), Manner::Reverse)]);
    let (report, _) = replay(&run, &["/a", "/b"]);
    assert_eq!((report.paths[1].unjudged, report.asked_again), (2, 2));
    assert_eq!(report.paths[1].examples, []);
}

#[test]
fn one_address_twice_gives_a_noise_floor_and_capacity_is_counted() {
    let address = honest();
    let reverse = Manner::Reverse;
    let run = run_of(&[("a", address, reverse), ("again", address, reverse)]);
    let (report, _) = replay(&run, &["/a"; 20]);
    let differences = report.differences();
    assert_eq!((differences.len(), differences[0].requests, differences[0].same), (1, 20, true));
    assert!(noise_floor(&differences).is_some());
    let full = LeapRun { most_in_flight: 0, pace: LeapPace::Rate(1000.0), ..run };
    let (report, _) = replay(&full, &["/a"; 5]);
    assert_eq!((report.requests, report.refused), (0, 5));
}

#[test]
fn forward_proxies_get_absolute_and_others_origin_form() {
    let run = run_of(&[("a", honest(), Manner::Forward), ("b", honest(), Manner::Reverse)]);
    let text = |path: usize| {
        let text = crate::leap::exchange::message::text(&run, &run.paths[path], &asked("/x?y"), 5);
        String::from_utf8(text.to_vec()).expect("text")
    };
    assert!(
        text(0).starts_with("GET http://o.test/x?y HTTP/1.1\r\nHost: o.test\r\n"),
        "{}",
        text(0)
    );
    assert!(text(1).starts_with("GET /x?y HTTP/1.1\r\nHost: o.test\r\n"), "{}", text(1));
}

#[test]
fn fingerprints_are_of_status_and_body() {
    let found = answer(200, b"a", &[("X", "1")]).fingerprint();
    assert_eq!(found, answer(200, b"a", &[]).fingerprint());
    assert_ne!(found, Fingerprint { status: 203, ..found });
}
