//! Fuzzes the response decoder. Any bytes must cause no panic, and give equal events however they
//! are split. An accepted head, written and read again, must stay equal.
#![no_main]

use bytes::BytesMut;
use foxy_http::{DecodeError, Method, ResponseDecoder, ResponseEvent, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for method in [Method::Get, Method::Head, Method::Connect] {
        let at_once = decode(&method, input, input.len().max(1));
        assert_eq!(at_once, decode(&method, input, 1), "splitting changed the events");
        for event in &at_once.0 {
            if let ResponseEvent::Head(head, length) = event {
                let mut written = BytesMut::new();
                encode::response_head(head, &mut written);
                let mut decoder = ResponseDecoder::default();
                decoder.expect_upgrade(&method);
                let again = decoder.next(&mut written);
                let Ok(Some(ResponseEvent::Head(read, again))) = again else { panic!("{head:?}: {again:?}") };
                assert_eq!(
                    (&read.headers, read.status, &read.reason),
                    (&head.headers, head.status, &head.reason)
                );
                assert_eq!(again, *length);
            }
        }
    }
});

/// Decodes `input` in pieces of `step` bytes. Returns all events, with adjacent body pieces joined.
fn decode(method: &Method, input: &[u8], step: usize) -> (Vec<ResponseEvent>, Result<(), DecodeError>) {
    let (mut decoder, mut buffer, mut events) = (ResponseDecoder::default(), BytesMut::new(), Vec::new());
    decoder.expect_upgrade(method);
    for piece in input.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match (decoder.next(&mut buffer), events.last_mut()) {
                (Ok(Some(ResponseEvent::Body(bytes))), Some(ResponseEvent::Body(before))) => {
                    *before = [before.as_ref(), &bytes].concat().into();
                }
                (Ok(Some(event)), _) => events.push(event),
                (Ok(None), _) => break,
                (Err(error), _) => return (events, Err(error)),
            }
        }
    }
    let end = decoder.eof().map(|event| events.extend(event));
    (events, end)
}
