//! Parses lines of foxy's JSON access log (`access-log-format = "json"`).

use super::skip::{self, Entry, Skip};
use foxy_base::log_time;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// The JSON members of a log line that a trace needs.
#[derive(Deserialize)]
struct JsonLine<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    client: Cow<'a, str>,
    /// Reason why foxy cut the response short. It is null for a complete response.
    cut: Option<IgnoredAny>,
    status: u16,
    body_bytes: u64,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    url: Cow<'a, str>,
}

/// Parses a line and passes the resulting entry to `take`. The size in the entry is the number of
/// body bytes, from the member `body_bytes`. A line without this member gives an error.
pub(super) fn parse<T>(
    line: &str,
    take: impl FnOnce(Entry<'_>) -> Result<T, Skip>,
) -> Result<T, Skip> {
    let line: JsonLine<'_> = serde_json::from_str(line).map_err(|_| Skip::MissingField)?;
    let time = log_time::parse(&line.time).ok_or(Skip::BadTime)?;
    let url = skip::url(&line.url)?;
    let status = format!("{:03}", line.status);
    let answer = skip::answer(&line.method, &status, &line.body_bytes.to_string())?;
    if line.cut.is_some() {
        return Err(Skip::BrokenOff);
    }
    take(Entry { time, client: &line.client, url, answer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::skip::Answer;

    fn parsed(line: &str) -> Result<(i64, String, String, Answer), Skip> {
        parse(line, |entry| Ok((entry.time, entry.client.into(), entry.url.into(), entry.answer)))
    }

    #[test]
    fn json_lines_are_gets_or_have_a_reason() {
        let line = concat!(
            r#"{"time":"2001-09-09T01:46:40.250Z","elapsed_us":5,"client":"10.0.0.7","cut":null,"#,
            r#""status":200,"bytes":300,"body_bytes":100,"method":"GET","#,
            r#""url":"http://a.test/\u00e9","referer":null}"#
        );
        let (time, client) = (1_000_000_000_250_000, "10.0.0.7".to_owned());
        let expected = (time, client, "http://a.test/é".to_owned(), Answer::Whole(100));
        assert_eq!(parsed(line), Ok(expected));
        let cases = [
            (line.replace(r#""cut":null"#, r#""cut":"client-left""#), Skip::BrokenOff),
            (line.replace("GET", "CONNECT"), Skip::NotGet),
            (line.replace(":200", ":404"), Skip::StatusNotUsed),
            (line.replace("2001-09-09T", "never"), Skip::BadTime),
            (line.replace(r#""url""#, r#""name""#), Skip::MissingField),
            (line[..50].to_owned(), Skip::MissingField),
        ];
        for (line, reason) in cases {
            assert_eq!(parsed(&line), Err(reason), "{line}");
        }
    }
}
