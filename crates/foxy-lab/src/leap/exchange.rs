//! One copy of a request: a connection of its own, timed, the body digested as it comes (R109, R110).

use super::body::BodyDigest;
use super::{Answer, Asked, LeapRun, Manner, Path};
use crate::REQUEST_ID;
use bytes::BytesMut;
use foxy_base::{Instant, clock};
use foxy_http::{Headers, Limits, Method, ResponseDecoder, ResponseEvent, ResponseHead};
use std::fmt::Write as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes asked of the socket at a time.
const READ: usize = 64 << 10;

/// Why there is no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    NoConnection,
    /// The connection was closed before anything came.
    Unanswered,
    /// It ended within the answer.
    Closed,
    /// What came is not HTTP.
    NotHttp,
    /// Not whole within the time limit.
    Timeout,
}

impl Failure {
    /// Every failure, in the order of a report's counts.
    pub const ALL: [Self; 5] =
        [Self::NoConnection, Self::Unanswered, Self::Closed, Self::NotHttp, Self::Timeout];

    /// Its name in tables and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoConnection => "no_connection",
            Self::Unanswered => "unanswered",
            Self::Closed => "closed_early",
            Self::NotHttp => "not_http",
            Self::Timeout => "timeout",
        }
    }
}

/// What an exchange took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Until the connection was there.
    pub connect: Duration,
    /// Until the first byte of the answer, with the connection.
    pub first_byte: Duration,
    /// From the first byte to the last.
    pub transfer: Duration,
}

impl Times {
    /// Until the last byte, or the failure.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.first_byte + self.transfer
    }
}

/// What came of one copy.
#[derive(Clone, Debug)]
pub struct Copied {
    /// What it took.
    pub times: Times,
    /// Body bytes that came.
    pub bytes: u64,
    /// The answer, or why there is none.
    pub outcome: Result<Answer, Failure>,
}

/// What is sent.
pub fn text(run: &LeapRun, path: &Path, asked: &Asked, number: u64) -> String {
    let (authority, target) = (&asked.authority, &asked.path);
    let mut text = match path.manner {
        Manner::Forward => format!("GET http://{authority}{target} HTTP/1.1\r\n"),
        Manner::Reverse | Manner::Direct => format!("GET {target} HTTP/1.1\r\n"),
    };
    let _a_string_takes_all = write!(text, "Host: {authority}\r\nConnection: close\r\n");
    if run.numbered {
        let _a_string_takes_all = write!(text, "{REQUEST_ID}: {number}\r\n");
    }
    if let Some(line) = &asked.line {
        text.extend([line, "\r\n"]);
    }
    text + "\r\n"
}

/// Asks, as request `number`.
pub async fn ask(run: &LeapRun, path: &Path, asked: &Asked, number: u64) -> Copied {
    let mut reading = Reading::new();
    let text = text(run, path, asked, number);
    let outcome = timeout(run.time_limit, reading.exchange(path, &text)).await;
    let outcome = outcome.unwrap_or(Err(Failure::Timeout));
    let now = clock::monotonic();
    let first = reading.first.unwrap_or(now);
    let times = Times {
        connect: reading.connected.unwrap_or(now).since(reading.begun),
        first_byte: first.since(reading.begun),
        transfer: now.since(first),
    };
    let bytes = reading.bytes;
    let outcome = outcome.and_then(|()| reading.answer(number).ok_or(Failure::NotHttp));
    Copied { times, bytes, outcome }
}

struct Reading {
    begun: Instant,
    connected: Option<Instant>,
    first: Option<Instant>,
    head: Option<(ResponseHead, BodyDigest)>,
    bytes: u64,
}

impl Reading {
    fn new() -> Self {
        Self { begun: clock::monotonic(), connected: None, first: None, head: None, bytes: 0 }
    }

    async fn exchange(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let mut stream = TcpStream::connect(path.address).await.map_err(|_| Failure::NoConnection)?;
        stream.set_nodelay(true).map_err(|_| Failure::NoConnection)?;
        self.connected = Some(clock::monotonic());
        stream.write_all(text.as_bytes()).await.map_err(|_| Failure::Unanswered)?;
        let mut decoder = ResponseDecoder::new(Limits::default());
        decoder.expect(&Method::Get);
        let mut input = BytesMut::new();
        loop {
            if self.advance(&mut decoder, &mut input)? {
                return Ok(());
            }
            input.reserve(READ);
            let read = stream.read_buf(&mut input).await.unwrap_or(0);
            if read == 0 {
                let ended = if self.first.is_some() { Failure::Closed } else { Failure::Unanswered };
                return decoder.eof().ok().flatten().map(|_| ()).ok_or(ended);
            }
            self.first.get_or_insert_with(clock::monotonic);
        }
    }

    /// Takes what came; whether the answer is complete.
    fn advance(&mut self, decoder: &mut ResponseDecoder, input: &mut BytesMut) -> Result<bool, Failure> {
        loop {
            match decoder.next(input).map_err(|_| Failure::NotHttp)? {
                Some(ResponseEvent::Head(head, _)) => {
                    let body = BodyDigest::new(&head.headers);
                    self.head = Some((head, body));
                }
                Some(ResponseEvent::Body(data)) => {
                    self.bytes += data.len() as u64;
                    if let Some((_, body)) = &mut self.head {
                        body.take(&data);
                    }
                }
                Some(ResponseEvent::End) => return Ok(true),
                Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
                None => return Ok(false),
            }
        }
    }

    fn answer(self, number: u64) -> Option<Answer> {
        let (head, body) = self.head?;
        let body = body.finish();
        let hit = hit(&head.headers, number);
        let (length, digest, intact) = (body.length, body.digest, body.intact);
        Some(Answer { status: head.status, headers: head.headers, length, digest, intact, hit })
    }
}

/// Whether an answer to request `number` was stored: the verifying origin repeats the number of the request that reached it;
/// else what the proxy says itself.
fn hit(headers: &Headers, number: u64) -> Option<bool> {
    if let Some(answered) = headers.get_str(REQUEST_ID).and_then(|id| id.parse::<u64>().ok()) {
        return Some(answered != number);
    }
    if let Some(status) = headers.get_str("cache-status") {
        // The last cache is the one nearest to us (RFC 9211 §2).
        let nearest = status.rsplit(',').next().unwrap_or(status);
        return Some(nearest.split(';').any(|part| part.trim() == "hit"));
    }
    headers.get_str("x-cache").map(|cache| cache.trim().to_ascii_uppercase().starts_with("HIT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_known_by_the_origins_number_or_by_what_the_proxy_says() {
        let check = |name: &str, value: &str, expected| {
            let headers: Headers = [(name, value.as_bytes())].into_iter().collect();
            assert_eq!(hit(&headers, 7), expected, "{name}: {value}");
        };
        check(REQUEST_ID, "7", Some(false));
        check(REQUEST_ID, "6", Some(true));
        check("Cache-Status", "far; hit, near; fwd=uri-miss; stored", Some(false));
        check("Cache-Status", "near; hit; ttl=5", Some(true));
        check("X-Cache", "HIT from wume1", Some(true));
        check("X-Cache", "MISS from wume1", Some(false));
        check("Age", "5", None);
    }
}
