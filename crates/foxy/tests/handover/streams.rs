//! Clients that keep long streams open: tunnels, WebSockets, server-sent events, and slow readers of
//! large bodies.

use crate::clients::{Connection, Load};
use crate::tally::Kind;
use foxy_base::clock;
use foxy_base::random::Random;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

/// Pause between two messages on a stream.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(50);

impl Load {
    /// Opens a stream of this kind again and again until the test is over. Each stream lasts up to
    /// `life`, or as long as the test without `life`.
    pub fn stream(&self, kind: Kind, seed: u64, life: Option<Duration>) {
        let mut random = Random::new(seed);
        while !self.tally.is_over() {
            let until = life.map(|life| clock::monotonic() + life.mul_f64(random.unit()));
            self.tally.opened.fetch_add(1, Ordering::Relaxed);
            let goes_on =
                || !self.tally.is_over() && until.is_none_or(|until| clock::monotonic() < until);
            let ended = match kind {
                Kind::Tunnel => self.tunnel(&goes_on),
                Kind::WebSocket => self.websocket(&goes_on),
                Kind::Events => self.events(&goes_on),
                Kind::StoredBody => self.body(kind, "/body/stored"),
                _ => self.body(kind, "/body/passed"),
            };
            if let Err(error) = ended {
                self.tally.failed(format!("{kind:?}: {error}"));
                sleep(MESSAGE_INTERVAL);
            }
        }
    }

    /// Opens a tunnel to the echo server.
    pub fn open_tunnel(&self) -> io::Result<Connection> {
        let mut tunnel = Connection::open(self.to.proxy)?;
        let echo = self.origin.echo;
        let head = tunnel.send(&format!("CONNECT {echo} HTTP/1.1\r\nHost: {echo}\r\n\r\n"))?;
        expect(head.starts_with("HTTP/1.1 200 "), &head)?;
        Ok(tunnel)
    }

    fn tunnel(&self, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let mut tunnel = self.open_tunnel()?;
        let mut sent = [0_u8; 100];
        while goes_on() {
            sent[0] = sent[0].wrapping_add(1);
            tunnel.0.get_mut().write_all(&sent)?;
            let mut received = [0; 100];
            tunnel.0.read_exact(&mut received)?;
            expect(sent == received, "other bytes came back")?;
            self.tally.finished(Kind::Tunnel);
            sleep(MESSAGE_INTERVAL);
        }
        Ok(())
    }

    fn websocket(&self, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let mut socket = Connection::open(self.to.proxy)?;
        let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let (url, host) = (self.origin.url("/socket"), self.origin.address);
        let head = socket.send(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{fields}"))?;
        expect(head.starts_with("HTTP/1.1 101 "), &head)?;
        for number in 0_u64.. {
            if !goes_on() {
                break;
            }
            let text = format!("message {number}");
            let length = u8::try_from(text.len()).expect("short");
            // Sends a text frame whose mask consists of zeros.
            socket.0.get_mut().write_all(&[0x81, 0x80 | length, 0, 0, 0, 0])?;
            socket.0.get_mut().write_all(text.as_bytes())?;
            let mut frame = vec![0; 2 + text.len()];
            socket.0.read_exact(&mut frame)?;
            expect(frame == [&[0x81, length], text.as_bytes()].concat(), "another message")?;
            self.tally.finished(Kind::WebSocket);
            sleep(MESSAGE_INTERVAL);
        }
        Ok(())
    }

    fn events(&self, goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        let mut stream = Connection::open(self.to.proxy)?;
        let head = stream.send(&self.get("/events"))?;
        expect(head.starts_with("HTTP/1.1 200 "), &head)?;
        let mut number = 0_u64;
        while goes_on() {
            let mut line = String::new();
            expect(stream.0.read_line(&mut line)? > 0, "the stream ended")?;
            // Only lines with `data:` contain events. Other lines are chunk sizes or empty.
            if let Some(text) = line.strip_prefix("data: ") {
                expect(text.trim().parse() == Ok(number), &line)?;
                number += 1;
                self.tally.finished(Kind::Events);
            }
        }
        Ok(())
    }

    /// Reads a large body slowly, and compares each byte.
    fn body(&self, kind: Kind, path: &str) -> io::Result<()> {
        let mut connection = Connection::open(self.to.proxy)?;
        let head = connection.send(&self.get(path))?;
        expect(head.starts_with("HTTP/1.1 200 "), &head)?;
        let (length, began) = (self.origin.body_bytes, clock::monotonic());
        let mut buffer = vec![0; 256 << 10];
        let mut at = 0;
        while at < length {
            if self.tally.is_over() {
                return Ok(());
            }
            let count = connection.0.read(&mut buffer)?;
            expect(count > 0, &format!("the body ended at byte {at} of {length}"))?;
            let is_right = self.origin.is_body(&buffer[..count], at);
            expect(is_right, &format!("wrong bytes after byte {at} of {length}"))?;
            at += count as u64;
            let due = self.body_time.mul_f64(at as f64 / length as f64);
            sleep(due.saturating_sub(clock::monotonic().since(began)));
        }
        self.tally.finished(kind);
        Ok(())
    }
}

fn expect(is_right: bool, otherwise: &str) -> io::Result<()> {
    if is_right { Ok(()) } else { Err(io::Error::other(otherwise.to_owned())) }
}
