//! Tests that the decoder refuses requests that two parsers could read differently.
//! docs/http-hazards.md lists these hazards.

use crate::support::show_request;

/// Returns a POST with the extra header lines `lines` and a chunked body of `abc`.
fn post(lines: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: h\r\n{lines}\r\n3\r\nabc\r\n0\r\n\r\n")
}

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(show_request(input.as_bytes()), expected, "for {input:?}");
}

#[test]
fn content_length_with_transfer_encoding_is_refused() {
    for lines in [
        "Content-Length: 13\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 13\r\n",
        "content-length: 13\r\ntransfer-encoding: CHUNKED\r\n",
    ] {
        check(&post(lines), "400 LengthAndTransferEncoding");
    }
}

#[test]
fn content_lengths_that_differ_are_refused() {
    check(&post("Content-Length: 3\r\nContent-Length: 4\r\n"), "400 RepeatedContentLength");
    check(&post("Content-Length: 3, 4\r\n"), "400 RepeatedContentLength");
}

#[test]
fn a_content_length_given_twice_is_refused_even_if_equal() {
    check(&post("Content-Length: 5\r\nContent-Length: 5\r\n"), "400 RepeatedContentLength");
    check(&post("Content-Length: 5, 5\r\n"), "400 RepeatedContentLength");
}

#[test]
fn a_content_length_that_is_no_plain_number_is_refused() {
    for value in
        ["+5", "-5", "0x5", "5 5", "5;", "", "5.0", "1e1", "18446744073709551616", "\u{ff15}"]
    {
        check(&post(&format!("Content-Length: {value}\r\n")), "400 InvalidContentLength");
    }
}

#[test]
fn transfer_encoding_in_http_1_0_is_refused() {
    check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 TransferEncodingInHttp10");
}

#[test]
fn a_blank_before_a_header_colon_is_refused() {
    check(&post("Transfer-Encoding : chunked\r\n"), "400 InvalidHeaderName");
    check(&post("TE\t: trailers\r\n"), "400 InvalidHeaderName");
}

#[test]
fn a_transfer_encoding_that_does_not_end_in_chunked_is_refused() {
    for value in [
        "gzip",
        "identity",
        "chunked, gzip",
        "chunked;x=1",
        "xchunked",
        "chunked\"",
        "",
        ",",
        "chunked,",
        "chunked, ",
    ] {
        check(&post(&format!("Transfer-Encoding: {value}\r\n")), "400 ChunkedNotLast");
    }
}

#[test]
fn a_coding_before_chunked_is_not_implemented() {
    check(&post("Transfer-Encoding: gzip, chunked\r\n"), "501 UnsupportedTransferCoding");
    check(&post("Transfer-Encoding: , chunked\r\n"), "501 UnsupportedTransferCoding");
    check(
        &post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        "501 UnsupportedTransferCoding",
    );
}

#[test]
fn chunked_twice_is_refused() {
    check(&post("Transfer-Encoding: chunked, chunked\r\n"), "400 RepeatedChunked");
    check(
        &post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        "400 RepeatedChunked",
    );
}

#[test]
fn a_control_byte_around_chunked_is_refused() {
    check(&post("Transfer-Encoding: \x0bchunked\r\n"), "400 InvalidHeaderValue");
}

#[test]
fn a_connect_with_content_is_refused() {
    let connect = |lines: &str| format!("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n{lines}\r\n");
    check(&connect("Content-Length: 3\r\n"), "400 ConnectWithContent");
    check(&connect("Transfer-Encoding: chunked\r\n"), "400 ConnectWithContent");
    check(&connect("Content-Length: 0\r\n"), "CONNECT h:443 length=0 | end");
    check(&connect(""), "CONNECT h:443 none | end");
}

#[test]
fn a_bare_line_feed_in_a_head_is_refused() {
    check("GET / HTTP/1.1\nHost: h\r\n\r\n", "400 BareLineFeed");
    check("GET / HTTP/1.1\r\nHost: h\n\r\n", "400 BareLineFeed");
    check("GET / HTTP/1.1\r\nHost: h\r\n\n", "400 BareLineFeed");
    check("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 BareLineFeed");
}

#[test]
fn a_carriage_return_alone_in_a_head_is_refused() {
    check("GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n", "400 BareCarriageReturn");
    check("GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", "400 BareCarriageReturn");
    check("\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 BareCarriageReturn");
}

#[test]
fn a_nul_in_a_head_is_refused() {
    check("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", "400 NulByte");
    check("GET / HTTP/1.1\r\nHost: h\0\r\n\r\n", "400 NulByte");
}

#[test]
fn obsolete_folding_is_refused() {
    check("GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", "400 ObsoleteFold");
    check("GET / HTTP/1.1\r\n Host: h\r\n\r\n", "400 ObsoleteFold");
    check(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "400 ObsoleteFold",
    );
}

#[test]
fn http_1_1_without_host_is_refused() {
    check("GET / HTTP/1.1\r\n\r\n", "400 MissingHost");
    check("GET http://h/ HTTP/1.1\r\n\r\n", "400 MissingHost");
    check("GET / HTTP/1.0\r\n\r\n", "GET / none | end");
}

#[test]
fn two_hosts_are_refused_even_if_equal() {
    check("GET / HTTP/1.1\r\nHost: h\r\nhost: h\r\n\r\n", "400 RepeatedHost");
    check("GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400 RepeatedHost");
    check("GET / HTTP/1.0\r\nHost: h\r\nHost: g\r\n\r\n", "400 RepeatedHost");
}

#[test]
fn a_host_that_is_no_authority_is_refused() {
    for host in [
        "", "a b", "a, b", "user@h", "h:x", "h:65536", "h:1:2", "[::1", "[::g]", "::1", "h/", "h?",
        "h#", "\u{e9}",
    ] {
        check(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), "400 InvalidHost");
    }
}

#[test]
fn odd_bytes_in_a_target_are_kept_as_they_came() {
    for path in ["/\"{}|^`\\<>", "/a?b=[c]&d={e}", "/%zz%00", "//double//slash", "/\u{e9}"] {
        let shown = path.as_bytes().escape_ascii();
        check(
            &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
            &format!("GET {shown} none | end"),
        );
    }
}

#[test]
fn a_blank_in_a_target_is_refused() {
    check("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidTarget");
    check("GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidTarget");
    check("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidTarget");
    check("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidTarget");
}

#[test]
fn a_request_line_of_another_shape_is_refused() {
    check("GET /\r\nHost: h\r\n\r\n", "400 InvalidTarget");
    check("GET\r\nHost: h\r\n\r\n", "400 InvalidRequestLine");
    check("GE(T / HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidMethod");
    check(" GET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 InvalidMethod");
    check("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "400 InvalidRequestLine");
}

#[test]
fn other_versions_are_refused() {
    for version in ["HTTP/0.9", "HTTP/1.2", "HTTP/2.0"] {
        check(&format!("GET / {version}\r\nHost: h\r\n\r\n"), "505 UnsupportedVersion");
    }
    for version in ["http/1.1", "HTTP/1", "HTTP/1.10", "HTTP/11", "HTTP"] {
        check(&format!("GET / {version}\r\nHost: h\r\n\r\n"), "400 InvalidRequestLine");
    }
}

#[test]
fn a_first_line_of_another_protocol_is_known_as_that() {
    for line in
        ["INVALID CONNECTION PREFACE", "OPTIONS * RTSP/1.0", "INVITE sip:a@b SIP/2.0", "GET / FTP"]
    {
        check(&format!("{line}\r\nHost: h\r\n\r\n"), "400 OtherProtocol");
    }
}

#[test]
fn a_header_line_without_a_name_or_a_colon_is_refused() {
    for line in [": x", "x", "x y: z", "(x): y", "\u{e9}: y"] {
        check(&post(&format!("{line}\r\n")), "400 InvalidHeaderName");
    }
    check(&post("X: a\x7fb\r\n"), "400 InvalidHeaderValue");
}

#[test]
fn after_an_error_nothing_more_is_read() {
    let input = "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut decoder = foxy_http::RequestDecoder::default();
    let mut buffer = bytes::BytesMut::from(input);
    assert_eq!(decoder.next(&mut buffer), Err(foxy_http::DecodeError::MissingHost));
    assert_eq!(decoder.next(&mut buffer), Err(foxy_http::DecodeError::MissingHost));
    assert_eq!(decoder.eof(&buffer), Err(foxy_http::DecodeError::MissingHost));
}

#[test]
fn a_client_that_closes_within_a_request_is_noticed() {
    check("GET / HTTP/1.1\r\nHost", "400 TruncatedHead");
    check(
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab",
        "POST / length=3 | body ab | 400 TruncatedBody",
    );
    check(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n",
        "POST / chunked | body ab | 400 TruncatedBody",
    );
    check("", "");
}
