//! A client's connection to the floor (the smallest caching proxy), and the floor's connection to
//! the origin for this client. The client sends its next request after the answer to the previous
//! request. An error closes both connections.

use super::Floor;
use super::store::{LARGE, Location};
use bytes::Bytes;
use rustix::fs::sendfile;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;

/// The largest head of a request or an answer, in bytes.
const LARGEST_HEAD: usize = 64 << 10;

/// The event for which a connection waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    Request,
    /// The client's socket accepts bytes again. The client was too slow to take the whole answer.
    Client,
    Origin,
}

#[derive(Debug)]
enum Rest {
    Nothing,
    Bytes(Bytes),
    File { offset: u64, length: u64 },
}

#[derive(Debug)]
pub(super) struct FloorConnection {
    pub(super) client: TcpStream,
    pub(super) origin: Option<TcpStream>,
    /// The part of a request that has arrived.
    request: Vec<u8>,
    /// The path whose answer the origin sends.
    path: Box<[u8]>,
    /// The part of the origin's answer that has arrived.
    answer: Vec<u8>,
    /// Number of bytes of the origin's answer. 0 before its head is complete.
    answer_length: usize,
    rest: Rest,
}

impl FloorConnection {
    pub(super) fn new(client: TcpStream) -> Self {
        let (request, path, answer) = (Vec::new(), Box::default(), Vec::new());
        Self { client, origin: None, request, path, answer, answer_length: 0, rest: Rest::Nothing }
    }

    /// Reads from the client, and answers a complete request.
    pub(super) fn client_is_readable(
        &mut self,
        floor: &Floor,
        scratch: &mut [u8],
    ) -> io::Result<Waits> {
        let read = received(&mut self.client, scratch)?;
        if self.request.is_empty() && is_complete(&scratch[..read]) {
            let request = scratch[..read].to_vec();
            return self.answer_request(floor, &request, scratch);
        }
        self.request.extend_from_slice(&scratch[..read]);
        if self.request.len() > LARGEST_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
        if !is_complete(&self.request) {
            return Ok(Waits::Request);
        }
        let request = std::mem::take(&mut self.request);
        self.answer_request(floor, &request, scratch)
    }

    fn answer_request(
        &mut self,
        floor: &Floor,
        request: &[u8],
        scratch: &mut [u8],
    ) -> io::Result<Waits> {
        let path = request.split(|&byte| byte == b' ').nth(1).ok_or(ErrorKind::InvalidData)?;
        match floor.store.find(path) {
            Some(Location::Memory(bytes)) => self.send_bytes(bytes),
            Some(Location::File { offset, length }) if length < LARGE => {
                let length = usize::try_from(length).map_err(|_| ErrorKind::InvalidData)?;
                let answer = &mut scratch[..length];
                floor.store.file().read_exact_at(answer, offset)?;
                let sent = written(&mut self.client, answer)?;
                self.send_bytes(Bytes::copy_from_slice(&answer[sent..]))
            }
            Some(Location::File { offset, length }) => {
                self.rest = Rest::File { offset, length };
                self.client_is_writable(floor)
            }
            None => {
                self.path = path.into();
                self.forward(floor, request)
            }
        }
    }

    fn forward(&mut self, floor: &Floor, request: &[u8]) -> io::Result<Waits> {
        if self.origin.is_none() {
            let origin = TcpStream::connect(floor.origin)?;
            origin.set_nodelay(true)?;
            origin.set_nonblocking(true)?;
            self.origin = Some(origin);
        }
        let origin = self.origin.as_mut().ok_or(ErrorKind::NotConnected)?;
        origin.write_all(request)?;
        Ok(Waits::Origin)
    }

    /// Reads from the origin. Stores and sends a complete answer.
    pub(super) fn origin_is_readable(
        &mut self,
        floor: &Floor,
        scratch: &mut [u8],
    ) -> io::Result<Waits> {
        let origin = self.origin.as_mut().ok_or(ErrorKind::NotConnected)?;
        let read = received(origin, scratch)?;
        self.answer.extend_from_slice(&scratch[..read]);
        if self.answer_length == 0 {
            self.answer_length = answer_length(&self.answer)?.unwrap_or(0);
            self.answer.reserve(self.answer_length.saturating_sub(self.answer.len()));
        }
        if self.answer_length == 0 || self.answer.len() < self.answer_length {
            return Ok(Waits::Origin);
        }
        self.answer_length = 0;
        let answer = Bytes::from(std::mem::take(&mut self.answer));
        floor.store.put(&self.path, answer.clone())?;
        self.send_bytes(answer)
    }

    fn send_bytes(&mut self, mut bytes: Bytes) -> io::Result<Waits> {
        let sent = written(&mut self.client, &bytes)?;
        let rest = bytes.split_off(sent);
        self.rest = if rest.is_empty() { Rest::Nothing } else { Rest::Bytes(rest) };
        Ok(self.waits())
    }

    /// Sends more of an answer that the client did not take at once.
    pub(super) fn client_is_writable(&mut self, floor: &Floor) -> io::Result<Waits> {
        match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Nothing => Ok(Waits::Request),
            Rest::Bytes(bytes) => self.send_bytes(bytes),
            Rest::File { mut offset, mut length } => {
                let file = floor.store.file();
                while length > 0 {
                    let most = usize::try_from(length).unwrap_or(usize::MAX);
                    match sendfile(&self.client, file, Some(&mut offset), most) {
                        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                        Ok(sent) => length -= sent as u64,
                        Err(rustix::io::Errno::AGAIN) => break,
                        Err(error) => return Err(error.into()),
                    }
                }
                if length > 0 {
                    self.rest = Rest::File { offset, length };
                }
                Ok(self.waits())
            }
        }
    }

    const fn waits(&self) -> Waits {
        if matches!(self.rest, Rest::Nothing) { Waits::Request } else { Waits::Client }
    }
}

/// Reads once. Fails at the end of the stream.
fn received(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    match stream.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

/// Writes once, and returns the number of bytes that the kernel took.
fn written(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match stream.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

fn is_complete(request: &[u8]) -> bool {
    request.ends_with(b"\r\n\r\n")
}

/// Returns the length of an answer with its head, or `None` if the head is not complete. Fails if
/// the head is too long, or does not give the length of the body.
fn answer_length(answer: &[u8]) -> io::Result<Option<usize>> {
    const FIELD: &[u8] = b"\r\ncontent-length:";
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        let too_long = answer.len() > LARGEST_HEAD;
        return if too_long { Err(ErrorKind::InvalidData.into()) } else { Ok(None) };
    };
    let mut lines = answer[..head].windows(FIELD.len());
    let field = lines.position(|bytes| bytes.eq_ignore_ascii_case(FIELD));
    let digits = field.map(|start| &answer[start + FIELD.len()..head]);
    let value = digits.and_then(|rest| rest.split(|&byte| byte == b'\r').next());
    let length = value.and_then(|value| str::from_utf8(value).ok()?.trim().parse::<usize>().ok());
    let length = length.ok_or(ErrorKind::InvalidData)?;
    Ok(Some(length.saturating_add(head + 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_an_answer_counts_head_and_body() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        assert_eq!(answer_length(answer).expect("sound"), Some(answer.len()));
        assert_eq!(answer_length(&answer[..30]).expect("incomplete"), None);
        assert!(answer_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
