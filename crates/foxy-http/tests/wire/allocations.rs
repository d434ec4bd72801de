//! Checks the number of memory allocations per request. Answers from the memory cache are fast only
//! with few allocations.

use bytes::BytesMut;
use foxy_http::{RequestDecoder, RequestEvent};

const REQUEST: &[u8] =
    b"GET http://registry.example/pkg/left-pad-1.3.0.tgz HTTP/1.1\r\nHost: registry.example\r\n\
    User-Agent: npm/10.2\r\nAccept: */*\r\nAccept-Encoding: gzip, br\r\nConnection: keep-alive\r\n\r\n";

/// Decodes one whole request and drops its head, as the proxy does before the next request.
fn serve(decoder: &mut RequestDecoder, buffer: &mut BytesMut) {
    buffer.extend_from_slice(REQUEST);
    let head = decoder.next(buffer).expect("a valid request");
    assert!(matches!(head, Some(RequestEvent::Head(..))), "{head:?}");
    assert_eq!(decoder.next(buffer), Ok(Some(RequestEvent::End)));
}

#[test]
fn a_keep_alive_get_costs_one_allocation() {
    let (mut decoder, mut buffer) = (RequestDecoder::default(), BytesMut::with_capacity(4096));
    serve(&mut decoder, &mut buffer);
    let counted = allocation_counter::measure(|| serve(&mut decoder, &mut buffer));
    assert_eq!(counted.count_total, 1, "{counted:?}");
}

#[test]
fn the_first_request_of_a_connection_costs_three() {
    let (mut decoder, mut buffer) = (RequestDecoder::default(), BytesMut::with_capacity(4096));
    let counted = allocation_counter::measure(|| serve(&mut decoder, &mut buffer));
    assert_eq!(counted.count_total, 3, "{counted:?}");
}

#[test]
fn a_long_head_leaves_no_room_behind() {
    let (mut decoder, mut buffer) = (RequestDecoder::default(), BytesMut::new());
    let long = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "a".repeat(50_000));
    buffer.extend_from_slice(long.as_bytes());
    let counted = allocation_counter::measure(|| {
        assert!(decoder.next(&mut buffer).is_ok_and(|event| event.is_some()));
    });
    assert!(counted.bytes_current < 4096, "{counted:?}");
}
