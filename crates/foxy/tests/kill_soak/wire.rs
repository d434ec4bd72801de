//! A client's connection to foxy. It sends requests as text, and compares every byte of a response
//! with the expected body.

use crate::pages::{PIECE, Pattern};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit of a response.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Head {
    pub status: u16,
    /// Values of fields by lower-case name. If a name is repeated, contains the last value.
    pub fields: BTreeMap<String, String>,
}

impl Head {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name).parse().ok()
    }

    /// Returns the start of the range in `Content-Range`, and the length of the whole body.
    pub fn range(&self) -> Option<(u64, u64)> {
        let (part, length) = self.field("content-range").strip_prefix("bytes ")?.split_once('/')?;
        Some((part.split_once('-')?.0.parse().ok()?, length.parse().ok()?))
    }
}

/// The way in which a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The body was complete. The number is its length in bytes.
    Whole(u64),
    /// The body was truncated by foxy, or the client closed the connection on purpose.
    Cut,
    /// A byte near this offset is wrong.
    Wrong(u64),
}

/// A connection to foxy during one of its runs.
pub struct Connection {
    stream: BufReader<TcpStream>,
    pub run: u64,
    pub reusable: bool,
}

impl Connection {
    pub fn open(to: SocketAddr, run: u64) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::with_capacity(PIECE, stream), run, reusable: true })
    }

    pub fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())
    }

    /// Reads the head of the final response, after any 1xx responses.
    pub fn head(&mut self) -> io::Result<Head> {
        loop {
            let head = self.one_head()?;
            if head.status >= 200 {
                self.reusable &= head.field("connection") != "close";
                return Ok(head);
            }
        }
    }

    fn one_head(&mut self) -> io::Result<Head> {
        let mut line = String::new();
        let mut head = Head::default();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end();
            if text.is_empty() {
                return Ok(head);
            }
            match text.split_once(": ") {
                Some((name, value)) if head.status > 0 => {
                    head.fields.insert(name.to_ascii_lowercase(), value.to_owned());
                }
                _ => {
                    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
                    head.status = status.ok_or(io::ErrorKind::InvalidData)?;
                }
            }
        }
    }

    /// Reads a body, and compares it with the bytes of the body with the number `tag`, from offset
    /// `from` on. The client closes the connection after `most` bytes.
    pub fn body(&mut self, head: &Head, pattern: &Pattern, tag: u64, from: u64, most: u64) -> Body {
        let mut at = from;
        let chunked = head.field("transfer-encoding").eq_ignore_ascii_case("chunked");
        let ended = if chunked {
            self.chunks(pattern, tag, &mut at, from + most)
        } else if let Some(length) = head.number("content-length") {
            self.piece(pattern, tag, &mut at, length, from + most)
        } else {
            self.reusable = false;
            self.piece(pattern, tag, &mut at, u64::MAX, from + most).map(|_| false)
        };
        match ended {
            Ok(true) => Body::Whole(at - from),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Body::Wrong(at),
            _ => {
                self.reusable = false;
                Body::Cut
            }
        }
    }

    fn chunks(&mut self, pattern: &Pattern, tag: u64, at: &mut u64, most: u64) -> io::Result<bool> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Ok(length) = u64::from_str_radix(line.trim_end(), 16) else { return Ok(false) };
            if length > 0 && !self.piece(pattern, tag, at, length, most)? {
                return Ok(false);
            }
            line.clear();
            self.stream.read_line(&mut line)?;
            if length == 0 || line != "\r\n" {
                return Ok(line == "\r\n");
            }
        }
    }

    /// Reads a part of the body. Returns false if foxy truncated the body or the client has read
    /// enough.
    fn piece(
        &mut self,
        pattern: &Pattern,
        tag: u64,
        at: &mut u64,
        mut left: u64,
        most: u64,
    ) -> io::Result<bool> {
        while left > 0 {
            let bytes = self.stream.fill_buf()?;
            let length = (bytes.len() as u64).min(left);
            let now = &bytes[..usize::try_from(length).expect("no more than it has")];
            if now.is_empty() || *at >= most {
                return Ok(false);
            }
            if !pattern.is(tag, *at, now) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let length_now = now.len();
            self.stream.consume(length_now);
            *at += length;
            left -= length;
        }
        Ok(true)
    }

    /// Reads a body without checking it.
    pub fn skip(&mut self, head: &Head) -> io::Result<()> {
        let length = head.number("content-length").ok_or(io::ErrorKind::InvalidData)?;
        let copied = io::copy(&mut self.stream.by_ref().take(length), &mut io::sink())?;
        if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
