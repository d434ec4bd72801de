//! Tests the forms of a request target, the methods that allow them, and the resulting Host.

use crate::support::request_events;
use bytes::Bytes;
use foxy_http::{Authority, DecodeError, Method, RequestEvent, Target, TargetForm};

#[track_caller]
fn parse(method: &Method, raw: &'static str) -> Result<Target, DecodeError> {
    Target::parse(method, Bytes::from_static(raw.as_bytes()))
}

/// Returns the authority, the target for an origin, and Host of a decoded request.
#[track_caller]
fn routed(request: &str) -> (String, String, String) {
    let (events, end) = request_events(request.as_bytes(), 1);
    let Some(RequestEvent::Head(head, _)) = events.first() else { panic!("{request:?}: {end:?}") };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let origin = head.origin_form().map(|target| text(&target)).unwrap_or_default();
    (
        text(head.authority().unwrap_or_default()),
        origin,
        text(head.headers.get("host").unwrap_or_default()),
    )
}

#[track_caller]
fn check_routed(request: &str, authority: &str, origin: &str, host: &str) {
    assert_eq!(
        routed(request),
        (authority.to_owned(), origin.to_owned(), host.to_owned()),
        "for {request:?}"
    );
}

#[test]
fn each_form_has_its_parts() {
    let absolute = parse(&Method::Get, "HTTP://h:80/p?q").expect("an absolute form");
    let parts = TargetForm::Absolute { scheme: b"HTTP", authority: b"h:80", path: b"/p?q" };
    assert_eq!(absolute.form(), parts);
    assert_eq!(
        parse(&Method::Get, "/p?q").expect("an origin form").form(),
        TargetForm::Origin(b"/p?q")
    );
    assert_eq!(
        parse(&Method::Connect, "h:443").expect("an authority").form(),
        TargetForm::Authority(b"h:443")
    );
    assert_eq!(parse(&Method::Options, "*").expect("an asterisk").form(), TargetForm::Asterisk);
}

#[test]
fn a_form_its_method_does_not_allow_is_refused() {
    for (method, raw) in
        [(Method::Get, "*"), (Method::Get, "h:443"), (Method::Get, "p"), (Method::Get, "")]
    {
        assert_eq!(parse(&method, raw), Err(DecodeError::InvalidTarget), "{method} {raw}");
    }
    for raw in ["/", "http://h/", "*", "h", "h:", "h:x", "u@h:443", "[::1]"] {
        assert_eq!(
            parse(&Method::Connect, raw),
            Err(DecodeError::InvalidAuthority),
            "CONNECT {raw}"
        );
    }
}

#[test]
fn a_target_with_a_fragment_is_refused() {
    for raw in ["/#", "/p#f", "/p?q#f", "http://h#f", "http://h/#", "http://h/p?q#f"] {
        assert_eq!(parse(&Method::Get, raw), Err(DecodeError::InvalidTarget), "{raw}");
    }
}

#[test]
fn an_absolute_form_needs_a_scheme_and_a_plain_authority() {
    for raw in ["http:/h/", "http:h", "1http://h/", "://h/", "urn:a:b", "mailto:a@b"] {
        assert_eq!(parse(&Method::Get, raw), Err(DecodeError::InvalidTarget), "{raw}");
    }
    for raw in [
        "http://",
        "http:///p",
        "http://u@h/",
        "http://u:p@h/",
        "http://h:/x:y@z/",
        "http://a b/",
        "http://h\\x/",
    ] {
        let parsed = parse(&Method::Get, raw);
        let fine = raw == "http://h:/x:y@z/";
        assert_eq!(parsed.is_ok(), fine, "{raw}: {parsed:?}");
    }
}

#[test]
fn an_authority_is_a_host_and_perhaps_a_port() {
    let parse = |text: &'static str| Authority::parse(text.as_bytes()).map(|it| (it.host, it.port));
    assert_eq!(parse("a-b_c.example"), Some(("a-b_c.example", None)));
    assert_eq!(parse("127.0.0.1:8080"), Some(("127.0.0.1", Some(8080))));
    assert_eq!(parse("[::1]:443"), Some(("[::1]", Some(443))));
    assert_eq!(parse("h:"), Some(("h", None)));
    for text in [
        "", ":80", "h:65536", "h:+1", "[::1", "[::1]x", "[]", "::1", "a%20b", "h:1:2", "h,g",
        "\u{e9}",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn a_target_authority_replaces_host() {
    check_routed("GET http://a/p HTTP/1.1\r\nHost: b\r\n\r\n", "a", "/p", "a");
    check_routed("GET http://a/p HTTP/1.1\r\nHost:\r\n\r\n", "a", "/p", "a");
    check_routed("GET http://a/p HTTP/1.0\r\n\r\n", "a", "/p", "a");
    check_routed("GET /p HTTP/1.1\r\nHost: b\r\n\r\n", "b", "/p", "b");
}

#[test]
fn an_empty_path_becomes_a_slash_for_an_origin() {
    check_routed("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "a", "/", "a");
    check_routed("GET http://a?q HTTP/1.1\r\nHost: a\r\n\r\n", "a", "/?q", "a");
    check_routed("OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", "a", "*", "a");
    check_routed("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "a", "*", "a");
    check_routed("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", "a:1", "", "a:1");
}
