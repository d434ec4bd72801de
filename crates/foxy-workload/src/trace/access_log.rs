//! Parses lines of access logs: Squid's native format, and the Common and Combined Log Formats.

use super::skip::{self, Answer, Entry, Skip};
use foxy_base::log_time;

/// Parses a line of Squid's native log: `time elapsed client code/status bytes method URL user
/// hierarchy type`. The logged time is the end of the response. The logged bytes include the
/// response head.
pub(super) fn parse_squid(line: &str) -> Result<Entry<'_>, Skip> {
    let mut fields = line.split_ascii_whitespace();
    let mut field = || fields.next().ok_or(Skip::MissingField);
    let (time, elapsed, client, code) = (field()?, field()?, field()?, field()?);
    let (bytes, method, url) = (field()?, field()?, field()?);
    let time = log_time::parse(time).ok_or(Skip::BadTime)?;
    if elapsed.parse::<i64>().is_err() {
        return Err(Skip::BadTime);
    }
    let (code, status) = code.split_once('/').ok_or(Skip::BadStatus)?;
    let url = skip::url(url)?;
    let answer = skip::answer(method, status, bytes)?;
    if code.contains("ABORTED") {
        return Err(if matches!(answer, Answer::Other(..)) {
            Skip::NotGet
        } else {
            Skip::BrokenOff
        });
    }
    Ok(Entry { time, client, url, answer })
}

/// Parses a line of the Common Log Format: `host ident user [date] "method URL version" status
/// bytes`. Ignores later fields, as in the Combined format.
pub(super) fn parse_common(line: &str) -> Result<Entry<'_>, Skip> {
    let (client, rest) = line.trim_start().split_once(' ').ok_or(Skip::MissingField)?;
    let (_, rest) = rest.split_once('[').ok_or(Skip::MissingField)?;
    let (date, rest) = rest.split_once(']').ok_or(Skip::MissingField)?;
    let (_, rest) = rest.split_once('"').ok_or(Skip::MissingField)?;
    let (request, rest) = until_quote(rest).ok_or(Skip::MissingField)?;
    let mut fields = rest.split_ascii_whitespace();
    let (status, bytes) = fields.next().zip(fields.next()).ok_or(Skip::MissingField)?;
    let time = log_time::common_log(date).ok_or(Skip::BadTime)?;
    let mut words = request.split_ascii_whitespace();
    let method = words.next().ok_or(Skip::NoUrl)?;
    let url = skip::url(words.next().unwrap_or(""))?;
    Ok(Entry { time, client, url, answer: skip::answer(method, status, bytes)? })
}

/// Splits `text` at the next quote that no backslash escapes.
fn until_quote(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some((&text[..at], &text[at + 1..])),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squid_lines_are_gets_or_have_a_reason() {
        let get =
            |time, answer| Ok(Entry { time, client: "10.0.0.7", url: "http://a.test/x", answer });
        let whole = get(1_066_036_250_603_000, Answer::Whole(2153));
        let unchanged = get(1_066_036_251_000_000, Answer::NotModified);
        let cases = [
            (
                "1066036250.603    310 10.0.0.7 TCP_MISS/200 2153 GET http://a.test/x - DIRECT/a.test text/html",
                whole,
            ),
            (
                "1066036251.000 1 10.0.0.7 TCP_IMS_HIT/304 210 GET http://a.test/x - NONE/- -",
                unchanged,
            ),
            (
                "1066036251.000 1 10.0.0.7 TCP_MISS_ABORTED/200 9 GET http://a.test/x - - -",
                Err(Skip::BrokenOff),
            ),
            (
                "1066036251.000 1 10.0.0.7 TCP_TUNNEL/200 99 CONNECT a.test:443 - - -",
                Err(Skip::NotGet),
            ),
            (
                "1066036251.000 1 10.0.0.7 NONE/000 0 GET http://a.test/x - - -",
                Err(Skip::StatusNotUsed),
            ),
            (
                "1066036251.000 1 10.0.0.7 TCP_MISS 0 GET http://a.test/x - - -",
                Err(Skip::BadStatus),
            ),
            (
                "1066036251.000 1 10.0.0.7 TCP_MISS/200 some GET http://a.test/x - -",
                Err(Skip::BadSize),
            ),
            ("1066036251.000 1 10.0.0.7 TCP_MISS/200 5 GET - - -", Err(Skip::NoUrl)),
            ("yesterday 1 10.0.0.7 TCP_MISS/200 5 GET http://a.test/x", Err(Skip::BadTime)),
            ("1066036251.000 1 10.0.0.7 TCP_MISS/200", Err(Skip::MissingField)),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_squid(line), expected, "{line}");
        }
    }

    #[test]
    fn common_log_lines_are_gets_or_have_a_reason() {
        let get = |url, size| {
            Ok(Entry {
                time: 971_211_336_000_000,
                client: "10.0.0.7",
                url,
                answer: Answer::Whole(size),
            })
        };
        let cases = [
            (
                r#"10.0.0.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#,
                get("/a.gif", 2326),
            ),
            (
                r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET http://a.test/\"x HTTP/1.1" 200 - "http://b/" "M [en]" TCP_MISS:DIRECT"#,
                get(r#"http://a.test/\"x"#, 0),
            ),
            (
                r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "PATCH /a HTTP/1.0" 200 2326"#,
                Err(Skip::NotGet),
            ),
            (
                r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 206 26"#,
                Err(Skip::StatusNotUsed),
            ),
            (r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "-" 408 -"#, Err(Skip::NoUrl)),
            (r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "" 400 0"#, Err(Skip::NoUrl)),
            (r#"10.0.0.7 - - [noon] "GET /a HTTP/1.0" 200 26"#, Err(Skip::BadTime)),
            (
                r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" OK 26"#,
                Err(Skip::BadStatus),
            ),
            (
                r#"10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0 200 26"#,
                Err(Skip::MissingField),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_common(line), expected, "{line}");
        }
    }
}
