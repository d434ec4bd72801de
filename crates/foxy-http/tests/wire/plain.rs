//! Tests ordinary messages: each kind of body, pipelining, trailers, interim responses, tunnels.

use crate::support::{lines, request_events, response_events, show_request, show_response};
use foxy_http::Method;

#[track_caller]
fn check_request(input: &str, expected: &str) {
    assert_eq!(show_request(input.as_bytes()), expected, "for {input:?}");
}

#[track_caller]
fn check_response(method: Method, input: &str, expected: &str) {
    assert_eq!(show_response(&method, input.as_bytes()), expected, "for {input:?}");
}

#[test]
fn a_get_has_no_body() {
    check_request("GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a?b none | end");
}

#[test]
fn a_length_delimits_the_body_and_the_next_request_follows() {
    check_request(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / length=3 | body abc | end | GET /2 none | end",
    );
}

#[test]
fn chunks_are_joined_and_trailers_follow() {
    check_request(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n",
        "POST / chunked | body abc0123456789 | trailers X-Sum: 1 | end",
    );
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    check_request("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / none | end");
}

#[test]
fn headers_keep_case_order_and_duplicates() {
    let (events, end) =
        request_events(b"GET / HTTP/1.1\r\nhOsT: h\r\nB: 1\r\na:2  \r\nB:\r\n\r\n", 7);
    let Some(foxy_http::RequestEvent::Head(head, _)) = events.first() else {
        panic!("{events:?}, {end:?}")
    };
    assert_eq!(lines(&head.headers), "hOsT: h\nB: 1\na: 2\nB: \n");
}

#[test]
fn a_response_body_ends_by_length_by_last_chunk_or_by_close() {
    check_response(
        Method::Get,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "200 length=2 | body hi | end",
    );
    check_response(
        Method::Get,
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "200 chunked | body hi | end",
    );
    check_response(
        Method::Get,
        "HTTP/1.0 200 OK\r\n\r\nhi there",
        "200 until-close | body hi there | end",
    );
}

#[test]
fn a_response_to_head_has_no_body_but_keeps_its_length_header() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    check_response(Method::Head, std::str::from_utf8(input).expect("ASCII"), "200 none | end");
    let (events, _) = response_events(&Method::Head, input, 1);
    let Some(foxy_http::ResponseEvent::Head(head, _)) = events.first() else {
        panic!("{events:?}")
    };
    assert_eq!(head.headers.get("content-length"), Some(&b"9"[..]));
}

#[test]
fn interim_responses_come_before_the_final_one() {
    check_response(
        Method::Post,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "interim 100 | interim 103 | 200 length=0 | end",
    );
}

#[test]
fn a_successful_connect_opens_a_tunnel_and_a_refused_one_does_not() {
    check_response(
        Method::Connect,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x16\x03",
        "200 tunnel | end",
    );
    check_response(
        Method::Connect,
        "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno",
        "403 length=2 | body no | end",
    );
}
