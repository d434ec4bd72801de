//! Tests of the Multiplier (LEAP's request copier) with proxies and clients that speak HTTP/2. All
//! servers run in this process.

use super::{honest, run_of, server, whole};
use crate::leap::multiplier::passthrough::TIME_LIMIT;
use crate::leap::*;
use crate::load::options::{LoadOptions, Mode, Protocol, Stop};
use crate::wire::tls::Trust;
use crate::wire::tls::by_hand::{authority, get, http2, origin};
use crate::{Origin, OriginOptions};
use bytes::Bytes;
use foxy_http::Scheme;
use foxy_testkit::origin::listen_in_order;
use foxy_workload::Workload;
use h2::Reason;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Starts a Multiplier (LEAP's request copier) that accepts clients. It sends each request to an
/// origin and to an HTTP/2 proxy.
fn front(origin: SocketAddr, proxy: SocketAddr, outgoing: Outgoing) -> (Multiplier, Trust) {
    let (certificates, own) = authority();
    let mut run = run_of(&[("direct", origin, Manner::Direct), ("proxy", proxy, Manner::Forward)]);
    (run.outgoing, run.time_limit) = (outgoing, Duration::from_secs(5));
    let front = Front { certificates: Some(certificates), ..Front::here().expect("a port") };
    (Multiplier::start(run, front).expect("started"), own)
}

/// Sends requests over HTTP/2 through the Multiplier (LEAP's request copier) and checks every byte.
/// The Multiplier uses HTTP/2 with the proxy, and the proxy uses HTTP/1.1 with the origin.
fn through(tls: bool) {
    let (secure, trusted) = origin();
    let plain = Origin::start(OriginOptions { listen: HERE, threads: 1 }).expect("started");
    let port = if tls { &secure } else { &plain }.address().port();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let (certificates, proxy_trust) = authority();
    let proxy =
        Multiplier::pass_through_tls(None, Some(certificates), Outgoing::new(&trusted), TIME_LIMIT);
    let proxy = proxy.expect("started");
    let mut trust = trusted.clone();
    trust.add_all(&proxy_trust);
    let (multiplier, own) = front(to, proxy.address(), Outgoing::http2(&trust));
    let mode = Mode::Forward { origin: to.to_string() };
    let options =
        LoadOptions::new(multiplier.address(), mode, Workload::find("zipf").expect("known"));
    let (protocol, stop) = (Protocol::Http2, Stop::Requests(40));
    let tls = tls.then_some(own);
    let options = LoadOptions { protocol, tls, stop, clients: 4, ..options };
    let load = crate::load::run(&options, &mut |_| {}).expect("load runs");
    assert_eq!((load.answers, load.failed(), load.wrong_bytes), (40, 0, 0));
    let report = multiplier.stop().expect("served");
    for path in &report.paths {
        assert_eq!(path.count(Verdict::Ok), 40, "{}: {:?}", path.name, path.examples);
    }
    assert_eq!(proxy.stop().expect("served").paths[0].answers, 40);
}

#[test]
fn clients_and_proxies_speak_http2_by_prior_knowledge_and_every_byte_is_right() {
    through(false);
}

#[test]
fn clients_and_proxies_speak_http2_in_tunnels_and_every_byte_is_right() {
    through(true);
}

/// Starts an HTTP/2 server that begins each answer and then resets the stream of the answer.
fn resets() -> SocketAddr {
    let listener = TcpListener::bind(HERE).expect("bound");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            listener.set_nonblocking(true).expect("set");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut frames = h2::server::handshake(client).await.expect("HTTP/2");
                    while let Some(Ok((_, mut respond))) = frames.accept().await {
                        let head = http::Response::builder()
                            .header("content-length", 9)
                            .body(())
                            .expect("a head");
                        let mut body = respond.send_response(head, false).expect("sent");
                        body.send_data(Bytes::from_static(b"half"), false).expect("sent");
                        tokio::spawn(async move {
                            // Gives the kernel time to send the bytes. An immediate reset would
                            // discard them.
                            tokio::time::sleep(Duration::from_millis(20)).await;
                            body.send_reset(Reason::INTERNAL_ERROR);
                        });
                    }
                });
            }
        });
    });
    address
}

/// Starts an HTTP/2 server that answers `streams` requests per connection, with trailers. Then it
/// closes the connection. Returns its address and its counter of connections.
fn counting(streams: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(HERE).expect("bound");
    let address = listener.local_addr().expect("an address");
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            listener.set_nonblocking(true).expect("set");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut frames = h2::server::handshake(client).await.expect("HTTP/2");
                    let mut left = streams;
                    while let Some(Ok((_, mut respond))) = frames.accept().await {
                        let head = http::Response::builder().header("content-length", 2).body(());
                        let mut body =
                            respond.send_response(head.expect("a head"), false).expect("sent");
                        body.send_data(Bytes::from_static(b"ok"), false).expect("sent");
                        let sum =
                            (http::HeaderName::from_static("x-sum"), http::HeaderValue::from(1));
                        body.send_trailers([sum].into_iter().collect()).expect("sent");
                        left -= 1;
                        if left == 0 {
                            frames.graceful_shutdown();
                        }
                    }
                });
            }
        });
    });
    (address, count)
}

#[test]
fn http2_connections_are_kept_for_the_next_request_and_replaced_when_closed() {
    // Each path (proxy or origin) receives 12 requests: two probes and ten requests of the test.
    for (streams, connections, kept) in [(100, 1, 10), (4, 3, 8)] {
        let (address, count) = counting(streams);
        let mut run =
            run_of(&[("direct", honest(), Manner::Direct), ("proxy", address, Manner::Reverse)]);
        (run.outgoing, run.connections) = (Outgoing::http2(&Trust::default()), Connections::Kept);
        let asked = |path: String| Asked::get("o.test".into(), path, Duration::ZERO);
        let mut requests = (0..10).map(|number| asked(format!("/{number}")));
        let probe = asked("/probe".into());
        let report =
            crate::leap::run(&run, &probe, &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
        let proxy = &report.paths[1];
        assert_eq!((proxy.answers, proxy.failed()), (10, 0), "{:?}", proxy.examples);
        assert_eq!(count.load(Ordering::Relaxed), connections, "of {streams} streams each");
        let closed = proxy.carriages[Carriage::KeptThenNew as usize];
        let new = proxy.carriages[Carriage::New as usize] + closed;
        assert_eq!((proxy.carriages[Carriage::Kept as usize], new), (kept, 10 - kept), "{streams}");
    }
}

#[test]
fn without_being_told_to_each_request_of_http2_has_a_connection_of_its_own() {
    let (address, count) = counting(100);
    let mut run =
        run_of(&[("direct", honest(), Manner::Direct), ("proxy", address, Manner::Reverse)]);
    run.outgoing = Outgoing::http2(&Trust::default());
    let asked = || Asked::get("o.test".into(), "/a".into(), Duration::ZERO);
    let mut requests = std::iter::repeat_with(asked).take(3);
    crate::leap::run(&run, &asked(), &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
    assert_eq!(count.load(Ordering::Relaxed), 5);
}

/// Starts a server that answers HTTP/2 clients with HTTP/1 text and keeps the connection open.
fn talks_text() -> SocketAddr {
    let mut kept = Vec::new();
    listen_in_order(move |mut client| {
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("sent");
        kept.push(client);
    })
}

#[test]
fn a_proxy_that_resets_hangs_or_speaks_no_http2_costs_its_own_row_and_is_named() {
    let silent = TcpListener::bind(HERE).expect("bound");
    let closes = server(|_| Some(Vec::new()));
    for (address, failure, verdict) in [
        (resets(), PathFailure::Reset, Verdict::Incomplete),
        (silent.local_addr().expect("an address"), PathFailure::Timeout, Verdict::Timeout),
        (talks_text(), PathFailure::NotHttp, Verdict::Incomplete),
        (closes, PathFailure::Unanswered, Verdict::Incomplete),
    ] {
        let mut run =
            run_of(&[("direct", honest(), Manner::Direct), ("bad", address, Manner::Reverse)]);
        run.time_limit = Duration::from_secs(1);
        run.outgoing = Outgoing::http2(&Trust::default());
        let asked = |path: &str| Asked::get("o.test".into(), path.into(), Duration::ZERO);
        let mut requests = ["/a", "/b"].into_iter().map(asked);
        let report =
            crate::leap::run(&run, &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {})
                .expect("run");
        let [direct, bad] = &report.paths[..] else { panic!("two paths") };
        assert_eq!((direct.count(Verdict::Ok), direct.failed()), (2, 0), "{failure:?}");
        assert_eq!(
            (bad.count(verdict), bad.failures[failure as usize]),
            (2, 2),
            "{failure:?}: {:?}",
            bad.examples
        );
    }
}

#[test]
fn a_request_of_http2_is_copied_as_one_of_http1_with_its_body_and_says_so_in_via() {
    let (say, said) = channel();
    let origin = server(move |text| {
        let _nobody_listens = say.send(text.to_owned());
        Some(whole("", "ok"))
    });
    let (multiplier, _) = front(origin, honest(), Outgoing::default());
    let request = http::Request::post(format!("http://{origin}/form")).header("cookie", "a=b");
    let request = request.header("content-length", 3).body("x=1").expect("a request");
    let got = http2(multiplier.address(), None, request);
    assert_eq!((got.status, &got.body[..]), (200, &b"ok"[..]));
    let asked = said.recv().expect("asked");
    assert!(
        asked.starts_with("POST /form HTTP/1.1\r\n") && asked.contains("\r\nVia: 2 foxy-leap-"),
        "{asked}"
    );
    assert!(
        asked.contains("\r\ncookie: a=b\r\n") && asked.contains("\r\nContent-Length: 3\r\n"),
        "{asked}"
    );
    drop(multiplier.stop());
}

#[test]
fn a_broken_answer_resets_the_clients_stream_and_a_refusal_ends_only_its_own() {
    let short = server(|_| Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()));
    let (multiplier, own) = front(short, honest(), Outgoing::default());
    let to = multiplier.address();
    let got = http2(to, None, get(&format!("http://{short}/a")));
    assert!(got.reset, "{got:?}");
    let refused = |got: crate::wire::tls::by_hand::Got, reason: FrontRefusal| {
        let text = format!("foxy leap: {}\n", reason.description());
        assert_eq!(
            (got.status, String::from_utf8_lossy(&got.body).into_owned()),
            (reason.status(), text)
        );
    };
    refused(http2(to, None, get("http://far.test/")), FrontRefusal::FarHost);
    let tunnel = Some((Some("localhost:444"), &own));
    refused(http2(to, tunnel, get("https://localhost:445/")), FrontRefusal::Misdirected);
    let clients = multiplier.stop().expect("served").clients.expect("clients");
    assert_eq!(clients.broken, 1);
    assert_eq!(
        (clients.refused(FrontRefusal::FarHost), clients.refused(FrontRefusal::Misdirected)),
        (1, 1)
    );
}

#[test]
fn a_proxy_that_chooses_no_http2_within_tls_is_named() {
    let (origin, trusted) = origin();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, origin.address().port()));
    let mut run = run_of(&[("direct", to, Manner::Direct), ("http1", to, Manner::Reverse)]);
    run.outgoing = Outgoing::http2(&trusted);
    let authority: Arc<str> = to.to_string().into();
    let asked = |path: &str| {
        Asked::get(Arc::clone(&authority), path.into(), Duration::ZERO).over(Scheme::Https)
    };
    let mut requests = std::iter::once(asked("/o/1/10/1"));
    let report =
        crate::leap::run(&run, &asked("/o/2/10/1"), &mut requests, &mut |_| {}, &mut |_| {})
            .expect("run");
    assert_eq!(
        (
            report.paths[0].count(Verdict::Ok),
            report.paths[1].failures[PathFailure::Handshake as usize]
        ),
        (1, 1)
    );
}
