//! Tests of TLS on both sides of the Collector (common parent proxy): tunnels and TLS from proxies,
//! and TLS to origins. The tests check added delays and failures.

use super::*;
use crate::wire::tls::by_hand::{authority, origin, secure};
use crate::wire::tls::{HandshakeFailure, Trust};
use crate::{Origin as Verifying, OriginOptions};
use foxy_workload::{BodyCheck, BodyStream};

fn request(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Whether the answer is the requested object. Compares every byte.
fn is_object(got: &Got, id: u64, size: usize) -> bool {
    let mut check = BodyCheck::new(BodyStream::new(id, 1), 0);
    check.take(&got.body);
    (got.status, got.body.len(), check.wrong_bytes(), got.reset) == (200, size, 0, false)
}

#[test]
fn tunnels_tls_to_the_collector_and_https_urls_are_one_exchange_with_the_origin() {
    let ((origin, trusted), (certificates, trust)) = (origin(), authority());
    let collector = collector(3, |options| {
        (options.certificates, options.trust) = (Some(certificates), trusted);
    });
    let (to, host) =
        (collector.addresses().to_owned(), format!("127.0.0.1:{}", origin.address().port()));
    let text = request(&host, "/o/1/3000/1");
    let got = [
        exchange(secure(to[0], Some(&host), "127.0.0.1", &trust), &text),
        exchange(secure(to[1], None, "localhost", &trust), &text),
        get(to[2], &format!("https://{host}/o/1/3000/1"), ""),
    ];
    for got in &got {
        assert!(is_object(got, 1, 3000), "{got:?}");
    }
    let report = collector.stop();
    assert_eq!((origin.requests(), report.requests(), report.fetches), (1, 3, 1));
    assert_eq!((report.not_entered, report.refused), ([0; 6], [0; Refusal::ALL.len()]));
}

#[test]
fn a_tunnel_to_the_collector_means_the_origin_behind_it_and_carries_many_requests() {
    let ((origin, trusted), (certificates, trust)) = (origin(), authority());
    let collector = collector(1, |options| {
        (options.certificates, options.trust) = (Some(certificates), trusted);
        options.origin = Some(SocketAddr::new(HERE.ip(), origin.address().port()));
    });
    let to = collector.addresses()[0];
    let host = to.to_string();
    let kept = format!("GET /o/1/10/1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let text = format!("{kept}{}", request(&host, "/o/2/10/1"));
    let got = exchange(secure(to, Some(&host), "127.0.0.1", &trust), &text);
    assert_eq!(
        (got.status, got.text().matches("HTTP/1.1 200 ").count()),
        (200, 1),
        "the second comes after the first"
    );
    assert_eq!(origin.requests(), 2);
}

/// The Collector (common parent proxy) adds a round trip each for the connection, the TLS handshake
/// and the first byte. A hit must wait for all three.
#[test]
fn the_handshake_is_part_of_the_connection_that_a_hit_pays_for() {
    let (origin, trusted) = origin();
    let round_trip = Duration::from_millis(20);
    let collector = collector(2, |options| {
        (options.trust, options.round_trip) = (trusted, round_trip);
    });
    for &to in collector.addresses() {
        let got = get(to, &format!("https://127.0.0.1:{}/o/1/10/1", origin.address().port()), "");
        assert!(is_object(&got, 1, 10) && got.last >= 3 * round_trip, "{got:?}");
    }
    assert_eq!(origin.requests(), 1);
    assert!(collector.report().connect.at(0.5) >= 40_000, "in microseconds");
}

#[test]
fn an_origin_without_trusted_tls_costs_its_own_row_and_says_why() {
    let (origin, trusted) = origin();
    let port = origin.address().port();
    let plain = Verifying::start(OriginOptions { listen: HERE, threads: 1 }).expect("started");
    let hangs = TcpListener::bind(HERE).expect("bound");
    let collector = collector(1, |options| {
        (options.trust, options.time_limit) = (trusted, Duration::from_millis(1500));
    });
    let distrusting = super::collector(1, |_| {});
    for (collector, url, failure) in [
        (&distrusting, format!("https://127.0.0.1:{port}/o/1/10/1"), Failure::Certificate),
        (&collector, format!("https://127.0.0.2:{port}/o/1/10/1"), Failure::Certificate),
        (&collector, format!("https://{}/", plain.address()), Failure::Handshake),
        (
            &collector,
            format!("https://{}/", hangs.local_addr().expect("bound")),
            Failure::HandshakeTimeout,
        ),
    ] {
        let before = collector.report().failed(failure);
        let got = get(collector.addresses()[0], &url, "");
        assert_eq!(got.status, failure.status(), "{url}: {}", got.head);
        let said = got.field("Proxy-Status").unwrap_or_default();
        assert!(
            said.contains(failure.proxy_status()) && got.text().contains(failure.description()),
            "{got:?}"
        );
        assert_eq!(collector.report().failed(failure), before + 1);
        let got = get(collector.addresses()[0], &url, "");
        assert_eq!(
            (got.status, collector.report().failed(failure)),
            (failure.status(), before + 1),
            "asked once"
        );
    }
    let got = get(collector.addresses()[0], &format!("https://127.0.0.1:{port}/o/1/10/1"), "");
    assert!(is_object(&got, 1, 10), "{got:?}");
}

#[test]
fn tunnels_that_cannot_be_are_refused_by_name() {
    let (certificates, trust) = authority();
    let collector = collector(1, |options| options.certificates = Some(certificates));
    let to = collector.addresses()[0];
    let tunnel = |host: &str| format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let within = |connect: Option<&str>, text: &str| {
        exchange(secure(to, connect, "127.0.0.1", &trust), text)
    };
    for (got, reason) in [
        (send(to, &tunnel("a.test:443")), Refusal::NotVouched),
        (within(None, &tunnel("127.0.0.1:443")), Refusal::TunnelWithin),
        (within(Some("127.0.0.1:444"), &request("127.0.0.1:445", "/")), Refusal::Misdirected),
        (within(Some("127.0.0.1:444"), &request("127.0.0.1", "/")), Refusal::Misdirected),
    ] {
        assert_eq!(got.status, reason.status(), "{reason:?}: {}", got.head);
        assert!(got.text().contains(reason.description()), "{}", got.text());
        assert!(collector.report().refused(reason) > 0, "{reason:?}");
    }
}

#[test]
fn a_proxy_whose_tls_does_not_come_about_costs_its_own_connection_and_is_counted() {
    let (certificates, trust) = authority();
    let collector = collector(1, |options| {
        (options.certificates, options.time_limit) =
            (Some(certificates), Duration::from_millis(1500));
    });
    let to = collector.addresses()[0];
    let host = "127.0.0.1:443";
    let nobody = Trust::default();
    let in_vain = |tunnel, name, trust| {
        let mut stream = secure(to, tunnel, name, trust);
        let _its_end_is_waited_for =
            stream.write_all(b"x").and_then(|()| stream.read_to_end(&mut Vec::new()));
    };
    in_vain(Some(host), "localhost", &trust);
    in_vain(None, "a.test", &trust);
    in_vain(Some(host), "127.0.0.1", &nobody);
    let mut plain = secure(to, Some(host), "127.0.0.1", &trust).sock;
    give(&mut plain, b"GET / HTTP/1.1\r\n\r\n");
    let _its_end_is_waited_for = plain.read_to_end(&mut Vec::new());
    let mut hangs = secure(to, Some(host), "127.0.0.1", &trust).sock;
    assert_eq!(hangs.read_to_end(&mut Vec::new()).ok(), Some(0), "it is closed in time");
    let mut leaves = secure(to, Some(host), "127.0.0.1", &trust).sock;
    give(&mut leaves, &[22, 3, 1]);
    drop(leaves);
    while collector.report().not_entered.iter().sum::<u64>() < 6 {
        std::thread::yield_now();
    }
    assert_eq!(collector.report().not_entered, [1; HandshakeFailure::ALL.len()]);
}
