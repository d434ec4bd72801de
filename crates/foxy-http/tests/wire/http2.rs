//! Tests heads from HTTP/2 fields, and refused HTTP/2 requests.

use foxy_http::http2::{Content, PseudoFields, request, trailers};
use foxy_http::{BodyLength, DecodeError, Limits, RequestHead, Version};

type Fields<'a> = &'a [(&'a str, &'a [u8])];

const GET: PseudoFields<'_> = PseudoFields {
    method: "GET",
    scheme: Some("https"),
    authority: Some("h:1"),
    path: Some("/p?q"),
};

fn read(
    pseudo: PseudoFields<'_>,
    fields: Fields<'_>,
    content: Content,
) -> Result<(RequestHead, BodyLength), DecodeError> {
    request(pseudo, fields.iter().copied(), content, &Limits::default())
}

#[track_caller]
fn check_refused(pseudo: PseudoFields<'_>, fields: Fields<'_>, expected: DecodeError) {
    assert_eq!(
        read(pseudo, fields, Content::None).expect_err("refused"),
        expected,
        "{pseudo:?} {fields:?}"
    );
}

#[test]
fn a_request_is_as_one_to_a_proxy() {
    let fields: Fields<'_> = &[
        ("cookie", b"a=1"),
        ("accept", b"*/*"),
        ("host", b"H:1"),
        ("cookie", b"b=2"),
        ("te", b"trailers"),
    ];
    let (head, length) = read(GET, fields, Content::None).expect("a request");
    assert_eq!((head.version, length), (Version::Http2, BodyLength::None));
    assert_eq!(head.target.raw(), "https://h:1/p?q");
    assert_eq!(head.origin_form().as_deref(), Some(&b"/p?q"[..]));
    let lines: Vec<_> = head.headers.iter().collect();
    let expected: Fields<'_> =
        &[("Host", b"h:1"), ("accept", b"*/*"), ("te", b"trailers"), ("cookie", b"a=1; b=2")];
    assert_eq!(lines, expected);
}

#[test]
fn without_authority_host_says_for_whom_it_is() {
    let bare = PseudoFields { authority: None, ..GET };
    let (head, _) = read(bare, &[("host", b"h")], Content::None).expect("a request");
    assert_eq!((head.authority(), &head.target.raw()[..]), (Some(&b"h"[..]), &b"/p?q"[..]));
    check_refused(bare, &[], DecodeError::MissingHost);
    check_refused(bare, &[("host", b"h"), ("host", b"h")], DecodeError::RepeatedHost);
    check_refused(bare, &[("host", b"a b")], DecodeError::InvalidHost);
}

#[test]
fn options_of_a_whole_server_and_connect_have_their_forms() {
    let whole = PseudoFields { method: "OPTIONS", path: Some("*"), ..GET };
    let (head, _) = read(whole, &[], Content::None).expect("a request");
    assert_eq!(head.origin_form().as_deref(), Some(&b"*"[..]));
    let connect = PseudoFields { method: "CONNECT", scheme: None, path: None, ..GET };
    let (head, length) = read(connect, &[], Content::Some).expect("a request");
    assert_eq!((head.authority(), length), (Some(&b"h:1"[..]), BodyLength::None));
    check_refused(
        PseudoFields { authority: Some("h"), ..connect },
        &[],
        DecodeError::InvalidAuthority,
    );
    check_refused(PseudoFields { path: Some("/"), ..connect }, &[], DecodeError::InvalidTarget);
    check_refused(connect, &[("content-length", b"1")], DecodeError::ConnectWithContent);
}

#[test]
fn content_without_a_length_is_chunked() {
    let post = PseudoFields { method: "POST", ..GET };
    let length = |fields, content| read(post, fields, content).map(|(_, length)| length);
    assert_eq!(length(&[], Content::Some), Ok(BodyLength::Chunked));
    assert_eq!(length(&[("content-length", b"5")], Content::Some), Ok(BodyLength::Length(5)));
    assert_eq!(length(&[("content-length", b"0")], Content::None), Ok(BodyLength::Length(0)));
    assert_eq!(length(&[("content-length", b"5")], Content::None), Err(DecodeError::TruncatedBody));
}

#[test]
fn what_no_line_of_http_1_1_may_be_is_refused() {
    for path in ["/a b", "/a\r\nx: y", "/\0", "/\x7f"] {
        check_refused(PseudoFields { path: Some(path), ..GET }, &[], DecodeError::InvalidTarget);
    }
    for path in ["", "*", "p", "@other/", ".other/", ":2/"] {
        check_refused(PseudoFields { path: Some(path), ..GET }, &[], DecodeError::InvalidTarget);
    }
    for authority in ["", "a b", "user@h", "h/x", "h?x", "h:x", "h\r\n"] {
        let pseudo = PseudoFields { authority: Some(authority), ..GET };
        assert!(read(pseudo, &[], Content::None).is_err(), "{authority:?}");
    }
    for method in ["", "G ET", "GET\r\n"] {
        check_refused(PseudoFields { method, ..GET }, &[], DecodeError::InvalidMethod);
    }
    for scheme in ["", "h ttp", "http://other/?"] {
        let pseudo = PseudoFields { scheme: Some(scheme), ..GET };
        assert!(read(pseudo, &[], Content::None).is_err(), "{scheme:?}");
    }
    for name in ["", "x y", "x:", "x\r\n", "X"] {
        check_refused(GET, &[(name, b"v")], DecodeError::InvalidHeaderName);
    }
    check_refused(GET, &[("x", b"a\0")], DecodeError::NulByte);
    for value in [&b"a\r\nb"[..], b"a\nb", b"\x01", b" a", b"a\t"] {
        check_refused(GET, &[("x", value)], DecodeError::InvalidHeaderValue);
    }
}

#[test]
fn fields_of_a_connection_and_another_host_are_refused() {
    for name in
        ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"]
    {
        check_refused(GET, &[(name, b"x")], DecodeError::ConnectionField);
    }
    check_refused(GET, &[("host", b"other")], DecodeError::HostDiffers);
    check_refused(GET, &[("host", b"h:1"), ("host", b"other")], DecodeError::HostDiffers);
    let twice: Fields<'_> = &[("content-length", b"0"), ("content-length", b"0")];
    check_refused(GET, twice, DecodeError::RepeatedContentLength);
}

#[test]
fn limits_are_those_of_http_1_1() {
    let limits = Limits::default();
    let long = "a".repeat(limits.request_line);
    let path = format!("/{long}");
    check_refused(PseudoFields { path: Some(&path), ..GET }, &[], DecodeError::RequestLineTooLong);
    check_refused(GET, &vec![("x", &b"y"[..]); limits.headers + 1], DecodeError::TooManyHeaders);
    check_refused(GET, &[("x", &vec![b'y'; limits.head])], DecodeError::HeadTooLarge);
}

#[test]
fn trailers_lose_what_they_must_not_say() {
    let found = |fields: Fields<'_>| trailers(fields.iter().copied(), &Limits::default());
    let kept =
        found(&[("x-sum", b"1"), ("host", b"other"), ("content-length", b"5")]).expect("trailers");
    assert_eq!(kept.iter().collect::<Vec<_>>(), [("x-sum", &b"1"[..])]);
    assert_eq!(found(&[("transfer-encoding", b"chunked")]), Err(DecodeError::ConnectionField));
    let long = vec![b'y'; Limits::default().trailers];
    assert_eq!(found(&[("x", &long)]), Err(DecodeError::TrailersTooLarge));
}
