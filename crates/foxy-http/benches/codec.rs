//! Measures the codec's work when the proxy answers from memory: it decodes one GET, writes one
//! response head, and reads one response. `cargo bench -p foxy-http` prints nanoseconds per round.
//! To count instructions, run the program under `valgrind --tool=callgrind`, with the number of
//! rounds as its argument. Every round also checks its result.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use bytes::BytesMut;
use foxy_base::clock;
use foxy_http::{
    Method, Persistence, RequestDecoder, RequestEvent, ResponseDecoder, ResponseEvent,
    ResponseHead, encode,
};

const REQUEST: &[u8] = b"GET http://registry.example/pkg/left-pad-1.3.0.tgz HTTP/1.1\r\nHost: registry.example\r\n\
    User-Agent: npm/10.2 node/v22\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\n\r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 05:00:00 GMT\r\nServer: x\r\nContent-Type: a/b\r\n\
    ETag: \"0123456789abcdef\"\r\nCache-Control: public, max-age=31536000\r\nContent-Length: 16\r\n\r\n0123456789abcdef";

/// Number of rounds. Optimised builds need many rounds for stable figures. Debug builds only test
/// the code, so few rounds suffice.
const ROUNDS: u64 = if cfg!(debug_assertions) { 1000 } else { 200_000 };

fn main() {
    let rounds =
        std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(ROUNDS);
    report("decode a GET", rounds, decode_requests);
    report("write a kept head", rounds, write_heads);
    report("decode a response", rounds, decode_responses);
}

fn report(name: &str, rounds: u64, run: fn(u64)) {
    run(rounds / 10);
    let start = clock::monotonic();
    run(rounds);
    let nanoseconds = clock::monotonic().0 - start.0;
    println!("{name:>20}: {:>6.1} ns", nanoseconds as f64 / rounds as f64);
}

fn decode_requests(rounds: u64) {
    let (mut decoder, mut buffer) = (RequestDecoder::default(), BytesMut::with_capacity(16 << 10));
    for _ in 0..rounds {
        buffer.extend_from_slice(REQUEST);
        let Ok(Some(RequestEvent::Head(head, _))) = decoder.next(&mut buffer) else {
            panic!("a valid request")
        };
        assert_eq!(Persistence::of(head.version, &head.headers), Persistence::KeepAlive);
        assert_eq!(head.authority(), Some(&b"registry.example"[..]));
        assert_eq!(decoder.next(&mut buffer), Ok(Some(RequestEvent::End)));
    }
}

fn write_heads(rounds: u64) {
    let mut head = ResponseHead::new(200);
    for (name, value) in
        [("ETag", "\"0123456789abcdef\""), ("Content-Type", "a/b"), ("Content-Length", "16")]
    {
        head.headers.append(name, value);
    }
    let mut kept = Vec::new();
    encode::status_line(head.status, &head.reason, &mut kept);
    encode::header_lines(&head.headers, &mut kept);
    let mut out = BytesMut::with_capacity(16 << 10);
    for _ in 0..rounds {
        out.clear();
        out.extend_from_slice(&kept);
        encode::header_line("Age", b"17", &mut out);
        encode::end_of_head(&mut out);
        assert_eq!(out.len(), kept.len() + "Age: 17\r\n\r\n".len());
    }
}

fn decode_responses(rounds: u64) {
    let (mut decoder, mut buffer) = (ResponseDecoder::default(), BytesMut::with_capacity(16 << 10));
    for _ in 0..rounds {
        buffer.extend_from_slice(RESPONSE);
        decoder.expect(&Method::Get);
        let mut bytes = 0;
        loop {
            match decoder.next(&mut buffer) {
                Ok(Some(ResponseEvent::Body(body))) => bytes += body.len(),
                Ok(Some(ResponseEvent::End)) => break,
                other => assert!(matches!(other, Ok(Some(ResponseEvent::Head(..)))), "{other:?}"),
            }
        }
        assert_eq!(bytes, 16);
        assert_eq!(decoder.reusable(&buffer), Ok(()));
    }
}
