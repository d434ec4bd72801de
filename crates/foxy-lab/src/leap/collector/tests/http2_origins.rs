//! Tests with origins that use HTTP/2, by prior knowledge and over TLS.

use super::*;
use crate::leap::{Multiplier, Outgoing};
use crate::wire::tls::by_hand::{authority, origin};
use crate::{Origin as Verifying, OriginOptions};
use foxy_workload::{BodyCheck, BodyStream};

const SIZE: usize = 3_000_000;

/// Requests objects through both listeners of the Collector (common parent proxy). Checks every
/// byte.
fn check(collector: &Collector, url: &str) {
    let addresses = collector.addresses();
    for (id, to) in [(1, addresses[0]), (1, addresses[1]), (2, addresses[1])] {
        let got = get(to, &format!("{url}/o/{id}/{SIZE}/1"), "");
        let mut check = BodyCheck::new(BodyStream::new(id, 1), 0);
        check.take(&got.body);
        assert_eq!(
            (got.status, got.body.len(), check.wrong_bytes(), got.reset),
            (200, SIZE, 0, false),
            "{}",
            got.head
        );
    }
    let unchanged = get(addresses[0], &format!("{url}/o/3/10/1"), "If-None-Match: \"3-1\"\r\n");
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    assert_eq!(collector.report().fetches, 3);
    assert_eq!(collector.report().failures.iter().sum::<u64>(), 0);
}

#[test]
fn origins_are_asked_in_http2_by_prior_knowledge_and_every_byte_is_right() {
    let verifying = Verifying::start(OriginOptions { listen: HERE, threads: 1 }).expect("started");
    // The origin that speaks HTTP/2 is a pass-through proxy, which stores nothing. It forwards to
    // foxy's own origin over HTTP/1.1.
    let speaks = Multiplier::pass_through(Some(verifying.address())).expect("started");
    let collector = collector(2, |options| options.origin_http2 = true);
    check(&collector, &format!("http://{}", speaks.address()));
    assert_eq!(verifying.requests(), 3);
}

#[test]
fn origins_are_asked_in_http2_within_tls_and_every_byte_is_right() {
    let verifying = Verifying::start(OriginOptions { listen: HERE, threads: 1 }).expect("started");
    let (certificates, trust) = authority();
    let speaks = Multiplier::pass_through_tls(
        Some(verifying.address()),
        Some(certificates),
        Outgoing::default(),
        Duration::from_secs(60),
    );
    let speaks = speaks.expect("started");
    let collector = collector(2, |options| (options.origin_http2, options.trust) = (true, trust));
    check(&collector, &format!("https://{}", speaks.address()));
    assert_eq!(verifying.requests(), 3);
}

#[test]
fn a_body_goes_to_an_origin_in_http2_with_its_request() {
    let origin = Origin::new(|_, client| give(client, &whole(200, "", "taken")));
    let speaks = Multiplier::pass_through(Some(origin.address)).expect("started");
    let collector = collector(1, |options| options.origin_http2 = true);
    let text = format!(
        "POST http://{}/x HTTP/1.1\r\nHost: o\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
        speaks.address()
    );
    let got = exchange(TcpStream::connect(collector.addresses()[0]).expect("connected"), &text);
    assert_eq!((got.status, &*got.text()), (200, "taken"));
    let requests = origin.requests.lock().expect("not poisoned");
    assert!(
        requests.len() == 1 && requests[0].starts_with("POST /x ") && requests[0].ends_with("abc"),
        "{requests:?}"
    );
}

#[test]
fn an_origin_that_speaks_no_http2_is_an_error_that_says_why() {
    let (secure, trust) = origin();
    let plain = Origin::new(|_, client| {
        give(client, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        // Reads the remaining input before closing. Closing a socket with unread bytes resets the
        // connection, and the reset may destroy the answer.
        let _until_the_other_side_closes = std::io::copy(client, &mut std::io::sink());
    });
    let collector = collector(1, |options| (options.origin_http2, options.trust) = (true, trust));
    for (url, failure) in [
        (format!("https://127.0.0.1:{}/o/1/10/1", secure.address().port()), Failure::Handshake),
        (plain.url("/x"), Failure::NotHttp),
    ] {
        let got = get(collector.addresses()[0], &url, "");
        assert_eq!(got.status, 502, "{}", got.head);
        assert!(got.text().contains(failure.description()), "{failure:?}: {}", got.text());
    }
}
