//! The Common Log Format and whatever puts more fields behind it, as the Combined one does:
//! `host ident user [date] "method URL version" status bytes ...`.

use super::skip::{self, Entry, Skip};
use super::timestamp;

/// One line.
pub(super) fn parse(line: &str) -> Result<Entry<'_>, Skip> {
    let (client, rest) = line.trim_start().split_once(' ').ok_or(Skip::MissingField)?;
    let (_, rest) = rest.split_once('[').ok_or(Skip::MissingField)?;
    let (date, rest) = rest.split_once(']').ok_or(Skip::MissingField)?;
    let (_, rest) = rest.split_once('"').ok_or(Skip::MissingField)?;
    let (request, rest) = until_quote(rest).ok_or(Skip::MissingField)?;
    let mut fields = rest.split_ascii_whitespace();
    let (status, bytes) = fields.next().zip(fields.next()).ok_or(Skip::MissingField)?;
    let time = timestamp::common_log(date).ok_or(Skip::BadTime)?;
    let mut words = request.split_ascii_whitespace();
    let method = words.next().ok_or(Skip::NoUrl)?;
    let url = skip::url(words.next().unwrap_or(""))?;
    Ok(Entry { time, client, url, answer: skip::answer(method, status, bytes)? })
}

/// What stands before the next quote that no backslash precedes, and what stands after it.
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
    use crate::trace::skip::Answer;

    #[test]
    fn lines_are_gets_or_have_a_reason() {
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
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
