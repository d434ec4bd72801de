//! Tests of chunked answers with trailers. The Collector (common parent proxy) drops the trailers
//! for every proxy.

use super::*;

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";

#[test]
fn initiator_joiner_and_later_proxy_get_the_whole_body_without_trailers() {
    let origin = Origin::new(|_, client| {
        give(client, format!("{HEAD}6\r\nfirst \r\n").as_bytes());
        std::thread::sleep(Duration::from_millis(20));
        give(client, b"6\r\nsecond\r\n0\r\nX-S");
        std::thread::sleep(Duration::from_millis(20));
        give(client, b"um: 1\r\n\r\n");
    });
    let collector = collector(3, |_| {});
    let url = origin.url("/x");
    let mut answers = all_at_once(&collector, |to| get(to, &url, "TE: trailers\r\n"));
    answers.extend(collector.addresses().iter().map(|&to| get(to, &url, "")));
    for answer in answers {
        assert!(answer.status == 200 && answer.field("trailer").is_none(), "{}", answer.head);
        let text = answer.text();
        let pieces: String = text.split("\r\n").skip(1).step_by(2).collect();
        assert_eq!(pieces, "first second", "{text:?}");
        assert!(text.ends_with("\r\n0\r\n\r\n") && !answer.reset, "{text:?}");
    }
    let report = collector.report();
    assert_eq!((origin.count(), report.fetches, report.aborted, report.surplus), (1, 1, 0, 0));
    assert_eq!(report.failures.iter().sum::<u64>(), 0);
}

#[test]
fn an_answer_that_breaks_off_within_its_trailers_breaks_off_for_all() {
    let origin =
        Origin::new(|_, client| give(client, format!("{HEAD}2\r\nok\r\n0\r\nX-S").as_bytes()));
    let collector = collector(2, |_| {});
    for &to in collector.addresses() {
        let answer = get(to, &origin.url("/x"), "");
        assert!(!answer.text().ends_with("0\r\n\r\n"), "{:?}", answer.text());
    }
    assert_eq!(collector.report().failed(Failure::ClosedEarly), 1);
}
