//! Tests responses after which foxy and its peer could disagree where the next message begins. The
//! decoder refuses or repairs such a response, or closes its connection.

use crate::support::{lines, response_events, show_response};
use bytes::BytesMut;
use foxy_http::{
    CloseReason, DecodeError, Limits, Method, NotReusable, ResponseDecoder, ResponseEvent,
};

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(show_response(&Method::Get, input.as_bytes()), expected, "for {input:?}");
}

/// Returns the headers of the final head, and whether the connection can be used again.
#[track_caller]
fn headers_and_reuse(method: Method, input: &str) -> (String, Result<(), NotReusable>) {
    let (mut decoder, mut buffer, mut headers) =
        (ResponseDecoder::default(), BytesMut::from(input), String::new());
    decoder.expect(&method);
    while let Some(event) = decoder.next(&mut buffer).expect("a valid response") {
        match event {
            ResponseEvent::Head(head, _) => headers = lines(&head.headers),
            ResponseEvent::End => break,
            _ => {}
        }
    }
    (headers, decoder.reusable(&buffer))
}

#[test]
fn transfer_encoding_wins_over_content_length_and_the_connection_ends() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    check(input, "200 chunked | body x | end");
    let expected = (
        "Transfer-Encoding: chunked\n".to_owned(),
        Err(NotReusable::Closing(CloseReason::AmbiguousLength)),
    );
    assert_eq!(headers_and_reuse(Method::Get, input), expected);
}

#[test]
fn equal_content_lengths_become_one() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(headers_and_reuse(Method::Get, input), ("Content-Length: 2\n".to_owned(), Ok(())));
}

#[test]
fn lengths_that_differ_or_are_no_numbers_are_refused() {
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "RepeatedContentLength",
    );
    for value in ["+2", "", "2,", "0x2", "2 2"] {
        check(
            &format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nabc"),
            "InvalidContentLength",
        );
    }
}

#[test]
fn transfer_encodings_but_one_chunked_are_refused() {
    let with =
        |value: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n0\r\n\r\n");
    check(&with("gzip"), "ChunkedNotLast");
    check(&with("gzip, chunked"), "UnsupportedTransferCoding");
    check(&with("chunked, chunked"), "RepeatedChunked");
    check(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "TransferEncodingInHttp10",
    );
}

#[test]
fn a_304_loses_its_length_and_extra_bytes_end_the_connection() {
    let x = "X: y\n".to_owned();
    let input = "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\nX: y\r\n\r\n";
    assert_eq!(headers_and_reuse(Method::Get, input), (x.clone(), Ok(())));
    let extra = format!("{input}hi");
    assert_eq!(headers_and_reuse(Method::Get, &extra), (x.clone(), Err(NotReusable::ExtraBytes)));
    let input = "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n";
    assert_eq!(headers_and_reuse(Method::Get, input), (x, Ok(())));
}

#[test]
fn a_body_announced_where_none_may_be_ends_the_connection() {
    let announced = Err(NotReusable::Closing(CloseReason::BodyNotAllowed));
    let reuse = |status: &str, line: &str| {
        let head = format!("HTTP/1.1 {status} x\r\n{line}X: y\r\n\r\n");
        let later =
            if status == "204" { "" } else { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" };
        headers_and_reuse(Method::Get, &format!("{head}{later}")).1
    };
    for status in ["204", "100", "103"] {
        for line in [
            "Content-Length: 2",
            "Content-Length: 0, 2",
            "Content-Length: x",
            "Transfer-Encoding: chunked",
        ] {
            assert_eq!(reuse(status, &format!("{line}\r\n")), announced, "{status} with {line}");
        }
        assert_eq!(reuse(status, "Content-Length: 0\r\n"), Ok(()), "{status} with a length of 0");
        assert_eq!(reuse(status, ""), Ok(()), "{status}");
    }
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(
        headers_and_reuse(Method::Head, length).1,
        Ok(()),
        "the length of what a GET would give"
    );
}

#[test]
fn bytes_without_a_request_are_refused() {
    let mut decoder = ResponseDecoder::default();
    let mut buffer = BytesMut::from("HTTP/1.1 408 Request Timeout\r\n\r\n");
    assert_eq!(decoder.next(&mut buffer), Err(DecodeError::UnexpectedResponse));
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n",
        "200 length=1 | body x | end | UnexpectedResponse",
    );
}

#[test]
fn bytes_before_a_status_line_are_refused() {
    check("\r\nHTTP/1.1 200 OK\r\n\r\n", "InvalidStatusLine");
    check("xHTTP/1.1 200 OK\r\n\r\n", "InvalidStatusLine");
}

#[test]
fn a_status_line_of_another_shape_is_refused() {
    for line in [
        "HTTP/1.1 20",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 099 x",
        "HTTP/1.1 600 x",
        "HTTP/1.1 2000 x",
        "HTTP/1.1 abc",
    ] {
        check(&format!("{line}\r\n\r\n"), "InvalidStatusLine");
    }
    check("HTTP/2 200\r\n\r\n", "UnsupportedVersion");
    check("ICY 200 OK\r\n\r\n", "InvalidStatusLine");
}

#[test]
fn a_reason_phrase_is_kept_as_it_came() {
    let (events, _) = response_events(&Method::Get, b"HTTP/1.1 404 Pas trouv\xc3\xa9 !\r\n\r\n", 1);
    let Some(ResponseEvent::Head(head, _)) = events.first() else { panic!("{events:?}") };
    assert_eq!(&head.reason[..], b"Pas trouv\xc3\xa9 !");
}

#[test]
fn obsolete_folding_is_unfolded() {
    let (headers, _) = headers_and_reuse(
        Method::Get,
        "HTTP/1.1 200 OK\r\nX: a\r\n\tb\r\n  c\r\nContent-Length:\r\n 0\r\nY: \r\n \r\n\r\n",
    );
    assert_eq!(headers, "X: a  \\tb    c\nContent-Length: 0\nY: \n");
    check("HTTP/1.1 200 OK\r\n X: a\r\n\r\n", "ObsoleteFold");
}

#[test]
fn bare_line_ends_and_nul_bytes_are_refused() {
    check("HTTP/1.1 200 OK\nX: y\r\n\r\n", "BareLineFeed");
    check("HTTP/1.1 200 OK\r\nX: y\rz\r\n\r\n", "BareCarriageReturn");
    check("HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "NulByte");
    check("HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "InvalidHeaderName");
}

#[test]
fn a_101_is_refused_unless_an_upgrade_was_asked_for() {
    let input = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x01\x02";
    check(input, "UnexpectedSwitch");
    let (mut decoder, mut buffer) = (ResponseDecoder::default(), BytesMut::from(input));
    decoder.expect_upgrade(&Method::Get);
    assert!(
        matches!(decoder.next(&mut buffer), Ok(Some(ResponseEvent::Head(head, foxy_http::BodyLength::Tunnel))) if head.status == 101)
    );
    assert_eq!(decoder.next(&mut buffer), Ok(Some(ResponseEvent::End)));
    assert_eq!(decoder.next(&mut buffer), Ok(None));
    assert_eq!(&buffer[..], b"\x01\x02");
    assert_eq!(decoder.reusable(&buffer), Err(NotReusable::Closing(CloseReason::Tunnel)));
}

#[test]
fn endless_interim_responses_are_refused() {
    let input = "HTTP/1.1 102 Processing\r\n\r\n".repeat(Limits::default().interim_responses + 1);
    assert!(
        show_response(&Method::Get, input.as_bytes())
            .ends_with("interim 102 | TooManyInterimResponses")
    );
}

#[test]
fn an_origin_that_closes_early_is_noticed() {
    check("", "TruncatedHead");
    check("HTTP/1.1 200 OK\r\nContent-", "TruncatedHead");
    check("HTTP/1.1 100 Continue\r\n\r\n", "interim 100 | TruncatedHead");
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "200 length=3 | body ab | TruncatedBody",
    );
}

#[test]
fn a_connection_is_reusable_only_between_whole_responses() {
    let mut decoder = ResponseDecoder::default();
    let mut buffer = BytesMut::new();
    assert_eq!(decoder.reusable(&buffer), Ok(()));
    decoder.expect(&Method::Get);
    assert_eq!(decoder.reusable(&buffer), Err(NotReusable::Unfinished));
    buffer.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    while decoder.next(&mut buffer) != Ok(Some(ResponseEvent::End)) {}
    assert_eq!(decoder.reusable(&buffer), Ok(()));
}

#[test]
fn a_response_says_whether_its_connection_ends() {
    let reuse = |input: &str| headers_and_reuse(Method::Get, input).1;
    let asked = Err(NotReusable::Closing(CloseReason::Asked));
    assert_eq!(reuse("HTTP/1.1 204 x\r\nConnection: x, Close\r\n\r\n"), asked);
    assert_eq!(reuse("HTTP/1.0 204 x\r\nConnection: keep-alive, close\r\n\r\n"), asked);
    assert_eq!(reuse("HTTP/1.0 204 x\r\n\r\n"), Err(NotReusable::Closing(CloseReason::Http10)));
    assert_eq!(reuse("HTTP/1.0 204 x\r\nConnection: Keep-Alive\r\n\r\n"), Ok(()));
}
