//! Fuzzes the request decoder. Any bytes must cause no panic, and give equal events however they
//! are split. An accepted head, written and read again, must stay equal.
#![no_main]

use bytes::BytesMut;
use foxy_http::{DecodeError, RequestDecoder, RequestEvent, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let at_once = decode(input, input.len().max(1));
    assert_eq!(at_once, decode(input, 1), "splitting changed the events");
    for event in &at_once.0 {
        // `encode` writes HTTP/1.1, which requires Host. A head without Host is valid only in
        // HTTP/1.0, so the target skips it.
        if let RequestEvent::Head(head, length) = event
            && head.headers.contains("host")
        {
            let mut written = BytesMut::new();
            let target = head.target.raw();
            encode::request_head(&head.method, target, &head.headers, &mut written);
            let again = RequestDecoder::default().next(&mut written);
            let Ok(Some(RequestEvent::Head(read, again))) = again else { panic!("{head:?}: {again:?}") };
            assert_eq!(
                (&read.method, &read.target, &read.headers),
                (&head.method, &head.target, &head.headers)
            );
            assert_eq!(again, *length);
        }
    }
});

/// Decodes `input` in pieces of `step` bytes. Returns all events, with adjacent body pieces joined.
fn decode(input: &[u8], step: usize) -> (Vec<RequestEvent>, Result<(), DecodeError>) {
    let (mut decoder, mut buffer, mut events) = (RequestDecoder::default(), BytesMut::new(), Vec::new());
    for piece in input.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            match (decoder.next(&mut buffer), events.last_mut()) {
                (Ok(Some(RequestEvent::Body(bytes))), Some(RequestEvent::Body(before))) => {
                    *before = [before.as_ref(), &bytes].concat().into();
                }
                (Ok(Some(event)), _) => events.push(event),
                (Ok(None), _) => break,
                (Err(error), _) => return (events, Err(error)),
            }
        }
    }
    let end = decoder.eof(&buffer);
    (events, end)
}
