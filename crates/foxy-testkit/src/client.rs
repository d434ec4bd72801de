//! Clients on raw sockets: for one request, and for a connection with several.

use crate::http::{head_length, header};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Sends text and reads to the end of the stream.
pub fn exchange(mut stream: impl Read + Write, text: &str) -> Vec<u8> {
    stream.write_all(text.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer to its end");
    answer
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its status.
    pub status: u16,
    /// Its head without the empty line.
    pub head: String,
    /// Its body, without chunk framing.
    pub body: Vec<u8>,
}

impl Answered {
    /// The value of a field, or nothing.
    pub fn header(&self, name: &str) -> &str {
        header(&self.head, name).unwrap_or("")
    }

    /// The value of Cache-Status, or nothing.
    pub fn cache_status(&self) -> &str {
        self.header("cache-status")
    }
}

/// A client that keeps its connection and reads one answer at a time.
pub struct Client {
    /// The connection. Bytes that the client has read beyond an answer are not in it any more.
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// A client on a connection.
    pub fn on(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends a request and reads its answer.
    pub fn ask(&mut self, request: &str) -> Answered {
        self.send(request.as_bytes());
        self.answer(request.starts_with("HEAD"))
    }

    /// Reads one answer: by its length, by its chunks, or until the connection closes.
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

    /// Reads once. Returns the number of bytes, which is 0 at the end.
    pub fn read(&mut self) -> usize {
        let mut chunk = [0; 65_536];
        let count = self.stream.read(&mut chunk).unwrap_or(0);
        self.buffer.extend_from_slice(&chunk[..count]);
        count
    }
}
