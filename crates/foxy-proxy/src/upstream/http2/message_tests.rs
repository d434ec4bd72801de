//! Tests the conversion between foxy's messages and the messages of the HTTP/2 library.

use super::*;

fn lines(lines: &[(&str, &str)]) -> Headers {
    lines.iter().map(|&(name, value)| (name, value.as_bytes())).collect()
}

fn asked(target: &'static str, fields: &[(&str, &str)], body: BodyLength) -> Option<Request<()>> {
    let scheme = foxy_http::Scheme::Https;
    request(scheme, &Method::Get, &Bytes::from_static(target.as_bytes()), &lines(fields), body)
}

fn answered(status: u16, fields: &[(&str, &str)]) -> Response<()> {
    let mut response = Response::builder().status(status);
    for &(name, value) in fields {
        response = response.header(name, value);
    }
    response.body(()).expect("a response")
}

#[test]
fn host_becomes_the_authority_and_what_is_of_http1_stays_behind() {
    let fields = [
        ("Host", "a.test:8443"),
        ("X-A", "1"),
        ("Connection", "TE"),
        ("TE", "trailers"),
        ("Transfer-Encoding", "chunked"),
        ("X-A", "2"),
    ];
    let request = asked("/p?q", &fields, BodyLength::Chunked).expect("a request");
    assert_eq!(request.uri(), "https://a.test:8443/p?q");
    let mut seen: Vec<_> =
        request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("te", &b"trailers"[..]), ("x-a", b"1"), ("x-a", b"2")]);
}

#[test]
fn the_length_is_told_as_it_is_known() {
    let length = |body| {
        let fields = [("Host", "a.test"), ("Content-Length", "7")];
        asked("/", &fields, body).expect("a request").headers().get("content-length").cloned()
    };
    assert_eq!(length(BodyLength::Length(5)).expect("a length"), "5");
    assert_eq!(length(BodyLength::Length(0)).expect("a length"), "0");
    assert_eq!((length(BodyLength::Chunked), length(BodyLength::None)), (None, None));
}

#[test]
fn what_the_library_has_no_value_for_is_left_to_http1() {
    let host = [("Host", "a.test")];
    for target in ["/a`b", "/a#b", "/<", "x y"] {
        assert!(asked(target, &host, BodyLength::None).is_none(), "{target}");
    }
    for target in ["/", "*", "/a{b}|c^\"d?e"] {
        let request = asked(target, &host, BodyLength::None).expect(target);
        assert_eq!(request.uri().path_and_query().map(PathAndQuery::as_str), Some(target));
    }
    for authority in ["", "user@a.test", "a test"] {
        assert!(asked("/", &[("Host", authority)], BodyLength::None).is_none(), "{authority}");
    }
}

#[test]
fn a_response_is_framed_by_its_length_or_by_its_end() {
    let check = |method, status, fields: &[(&str, &str)], ended, expected| {
        let (head, length) =
            response(&method, &answered(status, fields), ended, &Limits::default())
                .expect("a head");
        assert_eq!((head.version, head.status, length), (Version::Http2, status, expected));
    };
    let five = [("content-length", "5")];
    check(Method::Get, 200, &five, false, BodyLength::Length(5));
    check(Method::Get, 200, &[], false, BodyLength::Chunked);
    check(Method::Get, 200, &[], true, BodyLength::Length(0));
    check(Method::Head, 200, &five, true, BodyLength::None);
    check(Method::Get, 304, &five, true, BodyLength::None);
    check(Method::Get, 204, &[], true, BodyLength::None);
}

#[test]
fn heads_beyond_the_limits_are_refused_by_name() {
    let limits = Limits { head: 100, headers: 2, trailers: 50, ..Limits::default() };
    let check = |status, fields: &[(&str, &str)]| {
        response(&Method::Get, &answered(status, fields), false, &limits).map(|_| ())
    };
    let long = "v".repeat(100);
    assert_eq!(check(200, &[("a", "1"), ("b", "2")]), Ok(()));
    assert_eq!(check(200, &[("a", "1"), ("b", "2"), ("b", "3")]), Err(DecodeError::TooManyHeaders));
    assert_eq!(check(200, &[("a", long.as_str())]), Err(DecodeError::HeadTooLarge));
    assert_eq!(check(600, &[]), Err(DecodeError::InvalidStatusLine));
    let fields = answered(200, &[("a", &long[..60])]);
    assert_eq!(trailers(fields.headers(), &limits), Err(DecodeError::TrailersTooLarge));
    assert_eq!(interim(&answered(101, &[]), &limits), Err(DecodeError::UnexpectedSwitch));
}

#[test]
fn trailers_lose_the_fields_they_must_not_have() {
    let fields = answered(200, &[("x-sum", "1"), ("set-cookie", "a=b")]);
    let left = trailers(fields.headers(), &Limits::default()).expect("small");
    assert_eq!(left, lines(&[("x-sum", "1")]));
}
