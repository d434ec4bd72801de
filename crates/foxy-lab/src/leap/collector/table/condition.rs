//! Decides for a conditional request (RFC 9110 §13) whether the Collector (common parent proxy)
//! answers 304 from a stored answer. Also builds the header of the 304.

use foxy_http::{Headers, Method, ResponseHead};
use std::time::SystemTime;

/// Whether the copy that the request names equals the stored answer. Compares entity tags weakly,
/// or dates if the request has no tags.
pub fn is_unchanged(method: &Method, request: &Headers, answer: &ResponseHead) -> bool {
    if !matches!(method, Method::Get | Method::Head) || answer.status != 200 {
        return false;
    }
    if request.contains("if-match") || request.contains("if-unmodified-since") {
        return false;
    }
    if request.contains("if-none-match") {
        let own = answer.headers.get("etag").map(without_weakness);
        return request
            .tokens("if-none-match")
            .any(|tag| tag == b"*" || own.is_some_and(|own| without_weakness(tag) == own));
    }
    let (Some(since), Some(modified)) =
        (request.get("if-modified-since"), answer.headers.get("last-modified"))
    else {
        return false;
    };
    since == modified
        || time(since).zip(time(modified)).is_some_and(|(since, modified)| modified <= since)
}

fn without_weakness(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn time(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

pub fn not_modified(answer: &ResponseHead) -> ResponseHead {
    let mut head = ResponseHead::new(304);
    head.headers = answer.headers.clone();
    head.headers.retain(|name, _| {
        let name = name.to_ascii_lowercase();
        name == "content-location" || !name.starts_with("content-")
    });
    head
}

pub fn ask_about(answer: &ResponseHead, request: &mut Headers) {
    let pairs = [("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")];
    for (condition, validator) in pairs {
        if let Some(value) = answer.headers.get(validator) {
            request.set(condition, value);
        }
    }
}

pub fn has_validator(headers: &Headers) -> bool {
    headers.contains("etag") || headers.contains("last-modified")
}

/// Returns a stored head updated by a 304 (RFC 9111 §3.2). The fields of the 304 replace stored
/// fields, except fields that describe the body.
pub fn confirmed(answer: &ResponseHead, confirmation: &ResponseHead) -> ResponseHead {
    let mut head = answer.clone();
    head.headers.remove("age");
    for (name, value) in confirmation.headers.iter() {
        if !name.to_ascii_lowercase().starts_with("content-") {
            head.headers.set(name, value);
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&str, &str)]) -> Headers {
        fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
    }

    fn answer(lines: &[(&str, &str)]) -> ResponseHead {
        ResponseHead { headers: fields(lines), ..ResponseHead::new(200) }
    }

    const OLD: &str = "Tue, 27 Apr 2004 09:19:35 GMT";
    const NEW: &str = "Wed, 23 Jun 2004 20:52:01 GMT";

    #[test]
    fn tags_come_before_times_and_a_copy_as_new_as_the_answer_is_unchanged() {
        let stored = answer(&[("ETag", "\"a\""), ("Last-Modified", OLD)]);
        let check = |request: &[(&str, &str)], expected| {
            assert_eq!(
                is_unchanged(&Method::Get, &fields(request), &stored),
                expected,
                "{request:?}"
            );
        };
        check(&[("If-None-Match", "\"a\"")], true);
        check(&[("If-None-Match", "\"b\", W/\"a\"")], true);
        check(&[("If-None-Match", "*")], true);
        check(&[("If-None-Match", "\"b\""), ("If-Modified-Since", OLD)], false);
        check(&[("If-Modified-Since", OLD)], true);
        check(&[("If-Modified-Since", NEW)], true);
        check(&[("If-Modified-Since", "Mon, 26 Apr 2004 09:19:35 GMT")], false);
        check(&[("If-Modified-Since", "yesterday")], false);
        check(&[("If-Match", "\"a\"")], false);
        check(&[], false);
        assert!(!is_unchanged(&Method::Post, &fields(&[("If-None-Match", "*")]), &stored));
        let gone = ResponseHead { status: 404, ..stored };
        assert!(!is_unchanged(&Method::Get, &fields(&[("If-None-Match", "\"a\"")]), &gone));
    }

    #[test]
    fn a_304_describes_no_body_and_confirms_what_was_known() {
        let stored = answer(&[
            ("ETag", "\"a\""),
            ("Content-Length", "5"),
            ("Content-Type", "x/y"),
            ("Age", "9"),
        ]);
        let short = not_modified(&stored);
        assert_eq!((short.status, short.headers.len()), (304, 2));
        let news =
            ResponseHead { headers: fields(&[("Date", NEW), ("Content-Type", "z")]), ..short };
        let now = confirmed(&stored, &news);
        assert_eq!((now.status, now.headers.get_str("date")), (200, Some(NEW)));
        assert_eq!(
            (now.headers.get_str("content-type"), now.headers.get("age")),
            (Some("x/y"), None)
        );
    }

    #[test]
    fn an_answer_with_a_tag_or_a_time_can_be_asked_about() {
        let mut request = Headers::new();
        let stored = answer(&[("ETag", "\"a\""), ("Last-Modified", OLD)]);
        ask_about(&stored, &mut request);
        assert_eq!(request.get_str("if-none-match"), Some("\"a\""));
        assert_eq!(request.get_str("if-modified-since"), Some(OLD));
        assert!(has_validator(&stored.headers) && !has_validator(&Headers::new()));
    }
}
