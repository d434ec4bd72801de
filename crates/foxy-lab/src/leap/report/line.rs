//! Writes and parses a line in the log of the Multiplier (LEAP's request copier). The format is
//! that of Figure 3 in the LEAP paper (paper 002 in docs/figures.md).

use crate::leap::Verdict;
use foxy_base::WallTime;
use foxy_http::Version;
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

/// LEAP's judgement of an answer, as the log shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Result {
    /// No judgement: the answer is itself the reference (the answer that counts as correct), or
    /// there is no reference. The log shows `{DUMMY,}`.
    Reference,
    /// The status of the reference (the answer that counts as correct), the status of the judged
    /// answer (0 without an answer), and the verdict.
    Judged(u16, u16, Verdict),
}

/// A log line about one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The start time of the request, to the second.
    pub at: WallTime,
    /// The process id of the program that wrote the line.
    pub process: u64,
    /// The number of the request, which all its copies share.
    pub number: u64,
    /// The name of the path (proxy or origin) that gave the answer.
    pub path: String,
    /// The time to the first byte. The log shows microseconds.
    pub first_byte: Duration,
    /// The time from the first byte to the last byte. The log shows microseconds.
    pub transfer: Duration,
    /// The length of the body in bytes.
    pub size: u64,
    /// The verdict on the answer.
    pub result: Result,
    /// The client's name or address.
    pub client: String,
    /// Whether the request was conditional (`If-None-Match` and similar).
    pub validation: bool,
    /// The client's HTTP version.
    pub version: Version,
    /// Method of the request.
    pub method: String,
    /// URL of the request.
    pub url: String,
}

struct Clocked(Duration);

impl fmt::Display for Clocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.as_secs(), self.0.subsec_micros())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.at.seconds()));
        // The log turns the HTTP date `Sun, 06 Nov 1994 08:49:37 GMT` into `Sun Nov 6 08:49:37
        // 1994`.
        let part = |from, to| date.get(from..to).unwrap_or("");
        let day = part(5, 7).trim_start_matches('0');
        write!(f, "{} {} {day:>2} {} {}:", part(0, 3), part(8, 11), part(17, 25), part(12, 16))?;
        write!(f, "(id={}:{}):LEAPRESULT: {}: ", self.process, self.number, self.path)?;
        write!(f, "{} {} {} ", Clocked(self.first_byte), Clocked(self.transfer), self.size)?;
        match self.result {
            Result::Reference => f.write_str("{DUMMY,}")?,
            Result::Judged(reference, own, verdict) => {
                write!(f, "{{{reference},{own},{},}}", verdict.name())?;
            }
        }
        let validation = if self.validation { "validation" } else { "non-validation" };
        let version = self.version.as_str();
        write!(f, " {} {validation} {version} {} {} {version}", self.client, self.method, self.url)
    }
}

impl Line {
    /// Parses a line. Returns `None` if the line is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.trim().split_once(":(id=")?;
        let at = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
        let (id, rest) = rest.split_once("):LEAPRESULT: ")?;
        let (process, number) = id.split_once(':')?;
        let (path, rest) = rest.split_once(": ")?;
        let mut words = rest.split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        let (first_byte, transfer) = (clocked(word()?)?, clocked(word()?)?);
        let size = word()?.parse().ok()?;
        let result = result(word()?)?;
        let client = word()?.to_owned();
        let validation = match word()? {
            "validation" => true,
            "non-validation" => false,
            _ => return None,
        };
        let version = version(word()?)?;
        let (method, url) = (word()?.to_owned(), word()?.to_owned());
        word()?.strip_prefix("HTTP/")?;
        let (process, number) = (process.parse().ok()?, number.parse().ok()?);
        let (at, path) = (WallTime::from_seconds(at.as_secs()), path.to_owned());
        let line = Self {
            at,
            process,
            number,
            path,
            first_byte,
            transfer,
            size,
            result,
            client,
            validation,
            version,
            method,
            url,
        };
        words.next().is_none().then_some(line)
    }
}

fn version(text: &str) -> Option<Version> {
    [Version::Http10, Version::Http11].into_iter().find(|version| version.as_str() == text)
}

fn clocked(text: &str) -> Option<Duration> {
    let (seconds, micros) = text.split_once(':')?;
    let micros: u32 = micros.parse().ok().filter(|&micros| micros < 1_000_000)?;
    Some(Duration::new(seconds.parse().ok()?, micros * 1000))
}

fn result(text: &str) -> Option<Result> {
    let inner = text.strip_prefix('{')?.strip_suffix(",}")?;
    if inner == "DUMMY" {
        return Some(Result::Reference);
    }
    let mut parts = inner.split(',');
    let mut status = || parts.next()?.parse().ok();
    let (reference, own) = (status()?, status()?);
    let verdict = Verdict::named(parts.next()?)?;
    parts.next().is_none().then_some(Result::Judged(reference, own, verdict))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four sample lines from the LEAP paper.
    const SAMPLES: [&str; 4] = [
        "Wed Apr 28 20:29:16 2004:(id=18972:2761927472):LEAPRESULT: Collector: 0:237527 0:725 2248 {DUMMY,} 192.168.0.101 \
         non-validation HTTP/1.1 GET http://www.google.com/ HTTP/1.1",
        "Wed Apr 28 20:29:16 2004:(id=18972:2761927472):LEAPRESULT: Proxy-1: 0:313149 0:372 2248 {200,200,OK,} 192.168.0.101 \
         non-validation HTTP/1.1 GET http://www.google.com/ HTTP/1.1",
        "Wed Apr 28 20:29:16 2004:(id=18972:2761927472):LEAPRESULT: Proxy-2: 0:432901 0:291 2248 {200,200,OK,} 192.168.0.101 \
         non-validation HTTP/1.1 GET http://www.google.com/ HTTP/1.1",
        "Wed Apr 28 20:29:16 2004:(id=18972:2761927472):LEAPRESULT: Proxy-3: 0:251789 0:453 2248 {200,200,OK,} 192.168.0.101 \
         non-validation HTTP/1.1 GET http://www.google.com/ HTTP/1.1",
    ];

    #[test]
    fn the_papers_sample_lines_read_and_write_back() {
        for sample in SAMPLES {
            let line = Line::parse(sample).expect(sample);
            assert_eq!(line.to_string(), sample);
        }
        let line = Line::parse(SAMPLES[0]).expect("a line");
        assert_eq!((line.transfer, line.result), (Duration::from_micros(725), Result::Reference));
    }

    #[test]
    fn every_verdict_and_the_first_of_a_month_write_and_read_back() {
        for verdict in Verdict::ALL {
            let line = Line {
                at: WallTime::from_seconds(783_648_000),
                result: Result::Judged(200, 0, verdict),
                validation: true,
                ..Line::parse(SAMPLES[1]).expect("a line")
            };
            let text = line.to_string();
            assert!(text.starts_with("Tue Nov  1 "), "{text}");
            assert_eq!(Line::parse(&text), Some(line));
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        for broken in ["", "Wed Apr 28 20:29:16 2004:(id=1:2):LEAPRESULT: x: 0:1"] {
            assert_eq!(Line::parse(broken), None, "{broken}");
        }
        assert_eq!(Line::parse(&SAMPLES[1].replace("OK", "FINE")), None);
        assert_eq!(Line::parse(&SAMPLES[1].replace("0:372", "0:1000000")), None);
        assert_eq!(Line::parse(&format!("{} more", SAMPLES[1])), None);
    }
}
