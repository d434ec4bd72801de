//! Clients that send HTTP/1.1 requests on kept connections: busy clients, and clients that send a
//! request once in a while.

use crate::origin::{Origin, page};
use crate::subject::Addresses;
use crate::tally::{Kind, Tally};
use foxy_base::random::Random;
use foxy_testkit::http::{header, read_head};
use foxy_testkit::wait::PATIENCE;
use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Number of stored pages.
pub const PAGES: u64 = 300;

static UNIQUE: AtomicU64 = AtomicU64::new(0);

/// The addresses, the origin, the counts and the reading time of large bodies, which all clients of
/// a run share.
pub struct Load {
    pub to: Addresses,
    pub origin: Origin,
    pub tally: Tally,
    /// Time in which a slow reader reads a large body.
    pub body_time: Duration,
}

/// A kept connection to the proxy.
pub struct Connection(pub BufReader<TcpStream>);

pub struct Answer {
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_hit(&self) -> bool {
        header(&self.head, "cache-status").is_some_and(|status| status.contains("; hit"))
    }

    pub fn is_ok(&self) -> bool {
        self.head.starts_with("HTTP/1.1 200 ")
    }

    fn closes(&self) -> bool {
        header(&self.head, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl Connection {
    pub fn open(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    pub fn send(&mut self, text: &str) -> io::Result<String> {
        self.0.get_mut().write_all(text.as_bytes())?;
        read_head(&mut self.0).ok_or_else(|| io::Error::other("no whole head arrived"))
    }

    /// Sends a request, and reads an answer that states its length.
    pub fn ask(&mut self, text: &str) -> io::Result<Answer> {
        let head = self.send(text)?;
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let length = length.ok_or_else(|| io::Error::other(format!("no length: {head}")))?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer { head, body })
    }
}

impl Load {
    pub fn get(&self, path: &str) -> String {
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", self.origin.url(path), self.origin.address)
    }

    /// Requests each page until it is stored.
    pub fn store_pages(&self) {
        for number in 0..PAGES {
            let path = format!("/page/{number}");
            foxy_testkit::wait::until("a hit", || {
                let mut connection = Connection::open(self.to.proxy).expect("connected");
                connection.ask(&self.get(&path)).expect("an answer").is_hit().then_some(())
            });
        }
    }

    /// Requests pages on kept connections until the test is over. Before each request, waits for a
    /// random time up to `pause`.
    pub fn browse(&self, seed: u64, pause: Duration) {
        let mut random = Random::new(seed);
        let mut kept = None;
        while !self.tally.is_over() {
            sleep(pause.mul_f64(random.unit()));
            let (kind, path, text) = self.request(&mut random);
            let was_kept = kept.is_some();
            let connected = kept.take().map_or_else(|| Connection::open(self.to.proxy), Ok);
            let asked = connected.and_then(|mut connection| {
                let answer = connection.ask(&text)?;
                Ok((connection, answer))
            });
            match asked {
                Ok((connection, answer)) => {
                    self.judge(kind, &path, &answer);
                    if answer.closes() {
                        self.tally.opened.fetch_add(1, Ordering::Relaxed);
                    } else {
                        kept = Some(connection);
                    }
                }
                Err(error) => self.tally.failed(format!("{path} (kept: {was_kept}): {error}")),
            }
        }
    }

    fn request(&self, random: &mut Random) -> (Kind, String, String) {
        let number = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let (kind, path) = match random.below(20) {
            0 => (Kind::Form, format!("/form/{number}")),
            1 | 2 => (Kind::NewPage, format!("/new/{number}")),
            _ => (Kind::Page, format!("/page/{}", random.below(PAGES))),
        };
        let text = match kind {
            Kind::Form => format!(
                "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 500\r\n\r\n{}",
                self.origin.url(&path),
                self.origin.address,
                String::from_utf8(page(&path)).expect("UTF-8")
            ),
            _ => self.get(&path),
        };
        (kind, path, text)
    }

    fn judge(&self, kind: Kind, path: &str, answer: &Answer) {
        if !answer.is_ok() || answer.body != page(path) {
            let length = answer.body.len();
            return self.tally.failed(format!("{path}: {length} bytes, {}", answer.head));
        }
        self.tally.finished(kind);
        if kind == Kind::Page {
            self.tally.looked_up(answer.is_hit());
        }
    }
}
