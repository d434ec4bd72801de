//! Tests with proxies that speak HTTP/2 with the Collector (common parent proxy).

use super::*;
use crate::wire::REQUEST_ID;
use crate::wire::tls::by_hand::{authority, http2, origin};
use foxy_workload::{BodyCheck, BodyStream};

fn is_object(body: &[u8], id: u64, size: usize) -> bool {
    let mut check = BodyCheck::new(BodyStream::new(id, 1), 0);
    check.take(body);
    (body.len(), check.wrong_bytes()) == (size, 0)
}

#[test]
fn http2_by_prior_knowledge_in_tls_and_in_tunnels_is_one_exchange_with_http1() {
    let ((origin, trusted), (certificates, trust)) = (origin(), authority());
    let collector = collector(4, |options| {
        (options.certificates, options.trust) = (Some(certificates), trusted);
    });
    let (to, host) =
        (collector.addresses().to_owned(), format!("localhost:{}", origin.address().port()));
    let url = format!("https://{host}/o/1/300000/1");
    let asked = |number: u64| {
        http::Request::get(&url).header(REQUEST_ID, number).body("").expect("a request")
    };
    let got = [
        http2(to[0], None, asked(7)),
        http2(to[1], Some((None, &trust)), asked(8)),
        http2(to[2], Some((Some(&host), &trust)), asked(9)),
    ];
    for (got, number) in got.iter().zip(7_u64..) {
        assert!(
            got.status == 200 && is_object(&got.body, 1, 300_000),
            "{} {:?}",
            got.status,
            got.fields
        );
        assert_eq!(got.fields[REQUEST_ID], number.to_string());
        assert!(got.fields.get("connection").is_none() && got.fields.get("via").is_some());
    }
    assert!(is_object(&get(to[3], &url, "").body, 1, 300_000));
    let report = collector.stop();
    assert_eq!((origin.requests(), report.requests(), report.fetches), (1, 4, 1));
    assert!(report.proxies.iter().all(|proxy| proxy.bytes > 300_000), "{:?}", report.proxies);
}

#[test]
fn a_stream_carries_a_request_body_and_answers_in_chunks_or_without_a_length() {
    let origin = Origin::new(|request, client| {
        assert!(request.ends_with("\r\n\r\nname=value"), "{request}");
        let chunked = request.starts_with("POST /chunked");
        let (fields, body) = if chunked {
            ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n")
        } else {
            ("", "abc")
        };
        give(client, format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}").as_bytes());
    });
    let collector = collector(1, |_| {});
    for path in ["/chunked", "/until-close"] {
        let request = http::Request::post(origin.url(path)).body("name=value").expect("a request");
        let got = http2(collector.addresses()[0], None, request);
        assert_eq!((got.status, &got.body[..], got.reset), (200, &b"abc"[..], false));
        assert!(got.fields.get("transfer-encoding").is_none());
    }
}

#[test]
fn a_body_that_breaks_off_resets_its_stream_and_a_refusal_ends_only_its_own() {
    let origin =
        Origin::new(|_, client| give(client, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"));
    let collector = collector(1, |_| {});
    let to = collector.addresses()[0];
    let got = http2(to, None, crate::wire::tls::by_hand::get(&origin.url("/x")));
    assert!(got.reset, "{got:?}");
    let got = http2(to, None, crate::wire::tls::by_hand::get("ftp://a.test/"));
    assert_eq!((got.status, got.reset), (Refusal::OtherScheme.status(), false));
    assert_eq!(
        String::from_utf8_lossy(&got.body).trim_end(),
        format!("foxy collector: {}", Refusal::OtherScheme.description())
    );
    let got = http2(to, None, crate::wire::tls::by_hand::get("http://user:word@127.0.0.1/"));
    assert_eq!((got.status, got.reset), (Refusal::NotHttp.status(), false), "RFC 9113 §8.3.1");
    let report = collector.report();
    assert_eq!(report.refused(Refusal::NotHttp), 1);
    assert_eq!(
        (report.aborted, report.refused(Refusal::OtherScheme), report.failed(Failure::ClosedEarly)),
        (1, 1, 1)
    );
}
