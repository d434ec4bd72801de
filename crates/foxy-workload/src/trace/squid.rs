//! Squid's native access.log: `time elapsed client code/status bytes method URL user hierarchy
//! type`. The time is when the answer was done, the bytes are what went to the client, its head
//! included.

use super::skip::{self, Answer, Entry, Skip};
use super::timestamp;

/// One line.
pub(super) fn parse(line: &str) -> Result<Entry<'_>, Skip> {
    let mut fields = line.split_ascii_whitespace();
    let mut field = || fields.next().ok_or(Skip::MissingField);
    let (time, elapsed, client, code) = (field()?, field()?, field()?, field()?);
    let (bytes, method, url) = (field()?, field()?, field()?);
    let time = timestamp::parse(time).ok_or(Skip::BadTime)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_gets_or_have_a_reason() {
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
            assert_eq!(parse(line), expected, "{line}");
        }
    }
}
