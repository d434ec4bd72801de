//! HTTP/1.1 test clients on raw sockets: `exchange` sends one request, and `Client` keeps a
//! connection for several requests.

use crate::http::{head_length, header};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends `text`, and returns all bytes until the end of the stream.
pub fn exchange(mut stream: impl Read + Write, text: &str) -> Vec<u8> {
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer to its end");
    answer
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Status code.
    pub status: u16,
    /// The head without its empty line.
    pub head: String,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl Answered {
    /// Returns the value of the header `name`, or an empty text without the header.
    pub fn header(&self, name: &str) -> &str {
        header(&self.head, name).unwrap_or("")
    }

    /// Returns the value of the header `Cache-Status`, or an empty text without the header.
    pub fn cache_status(&self) -> &str {
        self.header("cache-status")
    }
}

/// A client that keeps its connection and reads one response at a time.
pub struct Client {
    /// The connection to the server. Bytes of the next response may already be in the client's
    /// buffer.
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Makes a client of an open connection.
    pub fn on(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Sends `bytes`.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends `request`, and reads its response.
    pub fn ask(&mut self, request: &str) -> Answered {
        self.send(request.as_bytes());
        self.answer(request.starts_with("HEAD"))
    }

    /// Reads a response. The response ends after its Content-Length, after its last chunk, or with
    /// the connection. If `no_body` is true, the request was a HEAD and the response has no body.
    pub fn answer(&mut self, no_body: bool) -> Answered {
        let length = loop {
            if let Some(length) = head_length(&self.buffer) {
                break length;
            }
            let is_open = self.read() > 0;
            assert!(is_open, "closed within a head: {:?}", String::from_utf8_lossy(&self.buffer));
        };
        let head = String::from_utf8_lossy(&self.buffer[..length - 4]).into_owned();
        self.buffer.drain(..length);
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("a status");
        let body = match status {
            100..200 | 204 | 304 => Vec::new(),
            _ if no_body => Vec::new(),
            _ => self.body(&head),
        };
        Answered { status, head, body }
    }

    fn body(&mut self, head: &str) -> Vec<u8> {
        if header(head, "transfer-encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let line = self.line();
                let size = usize::from_str_radix(line.trim(), 16).expect("a chunk size");
                body.extend(self.take(size));
                if size == 0 {
                    while !self.line().is_empty() {}
                    return body;
                }
                assert_eq!(self.line(), "");
            }
        }
        match header(head, "content-length") {
            Some(length) => self.take(length.parse().expect("a length")),
            None => {
                while self.read() > 0 {}
                std::mem::take(&mut self.buffer)
            }
        }
    }

    fn line(&mut self) -> String {
        let end = loop {
            if let Some(end) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                break end;
            }
            assert!(self.read() > 0, "closed within a line");
        };
        let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 2);
        line
    }

    /// Reads exactly `count` bytes.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(self.read() > 0, "closed after {} of {count} bytes", self.buffer.len());
        }
        self.buffer.drain(..count).collect()
    }

    /// Reads once into the buffer. Returns the number of bytes, which is 0 at the end of the
    /// stream.
    pub fn read(&mut self) -> usize {
        let mut chunk = [0; 65_536];
        let count = self.stream.read(&mut chunk).unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }
}
