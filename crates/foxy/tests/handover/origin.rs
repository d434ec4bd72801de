//! The origin of the test: pages, forms, large bodies, server-sent events, WebSockets, and an echo
//! server for tunnels.

use foxy_base::random::Random;
use foxy_testkit::http::{header, ok, read_request};
use foxy_testkit::origin::listen;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Length of the random bytes that a large body repeats. The number is prime. So blocks of a body
/// whose offsets differ by a power of two have different bytes.
const PERIOD: usize = 1_000_003;
const PIECE: usize = 256 << 10;
/// Time between two server-sent events.
const EVENT_INTERVAL: Duration = Duration::from_millis(100);

/// The content of large bodies.
pub struct Pattern(Vec<u8>);

impl Pattern {
    pub fn new() -> Self {
        let mut period = vec![0; PERIOD];
        Random::new(5).fill(&mut period);
        // The pattern ends with a copy of its beginning, so that each piece is a single slice.
        period.extend_from_within(..PIECE);
        Self(period)
    }

    /// Returns up to [`PIECE`] bytes of a body from the position `at`.
    pub fn at(&self, at: u64, most: u64) -> &[u8] {
        let begin = usize::try_from(at % PERIOD as u64).expect("small");
        let length = usize::try_from(most).map_or(PIECE, |most| most.min(PIECE));
        &self.0[begin..begin + length]
    }
}

#[derive(Clone)]
pub struct Origin {
    pub address: SocketAddr,
    pub echo: SocketAddr,
    pub pattern: Arc<Pattern>,
    pub body_bytes: u64,
}

impl Origin {
    pub fn start(body_bytes: u64) -> Self {
        let pattern = Arc::new(Pattern::new());
        let served = Arc::clone(&pattern);
        let address = listen(move |stream| serve(stream, &served, body_bytes));
        Self { address, echo: listen(echo), pattern, body_bytes }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Whether a large body has these bytes at the position `at`.
    pub fn is_body(&self, bytes: &[u8], mut at: u64) -> bool {
        bytes.chunks(PIECE).all(|piece| {
            let expected = self.pattern.at(at, piece.len() as u64);
            at += piece.len() as u64;
            piece == expected
        })
    }
}

/// Returns the content of a page.
pub fn page(path: &str) -> Vec<u8> {
    let hash = path.bytes().fold(7_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    let length = if path.starts_with("/page/") { 100 + hash % 60_000 } else { 500 };
    let line = format!("the content of {path}\n");
    let mut content = line.repeat(usize::try_from(length).expect("small") / line.len() + 1);
    content.truncate(usize::try_from(length).expect("small"));
    content.into_bytes()
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

fn serve(stream: TcpStream, pattern: &Pattern, body_bytes: u64) {
    let _only_later = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream) {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let out = stream.get_mut();
        let sent = match path.as_str() {
            "/events" => events(out),
            "/socket" => return websocket(stream),
            "/body/stored" => body(out, pattern, &request, body_bytes, "max-age=86400"),
            "/body/passed" => body(out, pattern, &request, body_bytes, "no-store"),
            _ if request.starts_with("POST ") => {
                let content = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
                out.write_all(&ok("Cache-Control: no-store\r\n", content.as_bytes()))
            }
            path => out.write_all(&ok("Cache-Control: max-age=86400\r\n", &page(path))),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Sends a large body, or the part that the request names.
fn body(
    out: &mut TcpStream,
    pattern: &Pattern,
    request: &str,
    length: u64,
    control: &str,
) -> std::io::Result<()> {
    let part = header(request, "range").and_then(|range| range.strip_prefix("bytes="));
    let part = part.and_then(|part| part.split_once('-')).and_then(|(first, last)| {
        let last = last.parse().map_or(length - 1, |last: u64| last.min(length - 1));
        Some((first.parse::<u64>().ok()?, last))
    });
    let (first, last) = part.unwrap_or((0, length - 1));
    let status = match part {
        Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {first}-{last}/{length}"),
        None => "200 OK".into(),
    };
    write!(
        out,
        "HTTP/1.1 {status}\r\nETag: \"one\"\r\nCache-Control: {control}\r\nContent-Length: {}\r\n\r\n",
        last + 1 - first
    )?;
    let mut at = first;
    while at <= last {
        let piece = pattern.at(at, last + 1 - at);
        out.write_all(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

fn events(out: &mut TcpStream) -> std::io::Result<()> {
    let fields = "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n";
    write!(out, "HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n")?;
    for number in 0_u64.. {
        let event = format!("data: {number}\n\n");
        write!(out, "{:x}\r\n{event}\r\n", event.len())?;
        std::thread::sleep(EVENT_INTERVAL);
    }
    Ok(())
}

/// Accepts a WebSocket, and returns each message. RFC 6455 §5.2 describes the frames.
fn websocket(mut stream: BufReader<TcpStream>) {
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    if stream.get_mut().write_all(head.as_bytes()).is_err() {
        return;
    }
    let mut start = [0; 6];
    while stream.read_exact(&mut start).is_ok() {
        let mut content = vec![0; usize::from(start[1] & 0x7f)];
        if stream.read_exact(&mut content).is_err() {
            return;
        }
        for (index, byte) in content.iter_mut().enumerate() {
            *byte ^= start[2 + index % 4];
        }
        let frame = [&[start[0], start[1] & 0x7f], &content[..]].concat();
        if stream.get_mut().write_all(&frame).is_err() {
            return;
        }
    }
}
