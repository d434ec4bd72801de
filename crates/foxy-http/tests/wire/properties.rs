//! Property tests with generated messages. Splitting the bytes must not change the result, and the
//! decoder must read back the encoder's output.

use crate::support::{request_events, response_events};
use bytes::Bytes;
use foxy_http::{
    BodyLength, Headers, Method, RequestEvent, ResponseEvent, ResponseHead, encode, framing,
};
use proptest::prelude::*;

fn method() -> impl Strategy<Value = Method> {
    "GET|POST|PUT|PATCH|DELETE|[A-Z!#$*+.^_`|~-]{1,9}"
        .prop_map(|text| Method::parse(&text).expect("a token"))
        .prop_filter("CONNECT has another target", |method| *method != Method::Connect)
}

fn target() -> impl Strategy<Value = String> {
    r#"/[!"$-~]{0,40}|http://[a-z0-9.-]{1,10}(:[0-9]{1,4})?(/[!"$-~]{0,20})?"#
}

/// Generates random header lines that do not concern framing or routing.
fn headers() -> impl Strategy<Value = Headers> {
    let value = prop::collection::vec(any::<u8>(), 0..20);
    prop::collection::vec(("X-[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,10}", value), 0..12).prop_map(|lines| {
        let mut headers = Headers::new();
        lines.iter().for_each(|(name, value)| headers.append(name, value));
        headers
    })
}

#[derive(Clone, Debug)]
enum Body {
    Absent,
    Length(Vec<u8>),
    Chunks(Vec<Vec<u8>>, Headers),
}

impl Body {
    fn length(&self) -> BodyLength {
        match self {
            Self::Absent => BodyLength::None,
            Self::Length(bytes) => BodyLength::Length(bytes.len() as u64),
            Self::Chunks(..) => BodyLength::Chunked,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => {}
            Self::Length(bytes) => out.extend_from_slice(bytes),
            Self::Chunks(chunks, trailers) => {
                chunks.iter().for_each(|chunk| encode::chunk(chunk, out));
                encode::last_chunk(trailers, out);
            }
        }
    }

    /// Returns the whole body and the trailers that the decoder must return.
    fn parts(&self) -> (Vec<u8>, Headers) {
        match self {
            Self::Absent => (Vec::new(), Headers::new()),
            Self::Length(bytes) => (bytes.clone(), Headers::new()),
            Self::Chunks(chunks, trailers) => (chunks.concat(), trailers.clone()),
        }
    }
}

fn body() -> impl Strategy<Value = Body> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        Just(Body::Absent),
        bytes().prop_map(Body::Length),
        (prop::collection::vec(bytes(), 0..5), headers())
            .prop_map(|(chunks, trailers)| Body::Chunks(chunks, trailers)),
    ]
}

fn request_bytes(
    method: &Method,
    target: &str,
    mut headers: Headers,
    body: &Body,
) -> (Headers, Vec<u8>) {
    let host =
        target.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or("h");
    headers.append("Host", host);
    framing::set_body_length(&mut headers, body.length());
    let mut out = Vec::new();
    encode::request_head(method, target.as_bytes(), &headers, &mut out);
    body.write(&mut out);
    (headers, out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_request_is_read_again(method in method(), target in target(), headers in headers(), body in body(), step in 1usize..40) {
        let (headers, out) = request_bytes(&method, &target, headers, &body);
        let (events, end) = request_events(&out, step);
        prop_assert_eq!(end, Ok(()));
        let mut events = events.into_iter();
        let Some(RequestEvent::Head(head, length)) = events.next() else { return Err(TestCaseError::fail("no head")) };
        prop_assert_eq!((&head.method, head.target.raw().as_ref()), (&method, target.as_bytes()));
        prop_assert_eq!(&head.headers, &headers);
        prop_assert_eq!(length, body.length());
        let (bytes, trailers) = body.parts();
        let mut expected = Vec::new();
        if !bytes.is_empty() { expected.push(RequestEvent::Body(Bytes::from(bytes))); }
        if !trailers.is_empty() { expected.push(RequestEvent::Trailers(trailers)); }
        expected.push(RequestEvent::End);
        prop_assert_eq!(events.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_written_response_is_read_again(status in 200u16..600, mut headers in headers(), body in body(), step in 1usize..40) {
        prop_assume!(!matches!(status, 204 | 304) || matches!(body, Body::Absent));
        framing::set_body_length(&mut headers, body.length());
        let head = ResponseHead { headers, ..ResponseHead::new(status) };
        let mut out = Vec::new();
        encode::response_head(&head, &mut out);
        body.write(&mut out);
        let (events, end) = response_events(&Method::Get, &out, step);
        prop_assert_eq!(end, Ok(()));
        let (bytes, trailers) = body.parts();
        let length = match body.length() {
            BodyLength::None if !matches!(status, 204 | 304) => BodyLength::UntilClose,
            length => length,
        };
        let mut expected = vec![ResponseEvent::Head(head, length)];
        if !bytes.is_empty() { expected.push(ResponseEvent::Body(Bytes::from(bytes))); }
        if !trailers.is_empty() { expected.push(ResponseEvent::Trailers(trailers)); }
        expected.push(ResponseEvent::End);
        prop_assert_eq!(events, expected);
    }

    #[test]
    fn where_the_bytes_are_split_does_not_matter(
        method in method(), target in target(), headers in headers(), body in body(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"\r\n\0 \t:;,0aZ\xff"[..])), 0..3),
        step in 1usize..60,
    ) {
        let (_, mut out) = request_bytes(&method, &target, headers, &body);
        out.extend_from_within(..);
        for (place, byte) in damage {
            let place = place.index(out.len());
            out[place] = byte;
        }
        prop_assert_eq!(request_events(&out, out.len()), request_events(&out, step));
        out.splice(..0, *b"HTTP/1.1 200 OK\r\nX: ");
        prop_assert_eq!(response_events(&method, &out, out.len()), response_events(&method, &out, step));
    }
}
