//! One client of a load run: one connection at a time, one request at a time, every byte of every answer checked.

use crate::REQUEST_ID;
use crate::load::Mode;
use crate::outcome::ErrorCause;
use bytes::BytesMut;
use foxy_http::{Limits, Method, ResponseDecoder, ResponseEvent};
use foxy_workload::{BodyCheck, BodyStream, Object};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bytes asked of the socket at a time.
const READ: usize = 64 << 10;

/// A client.
pub struct Client {
    target: SocketAddr,
    mode: Mode,
    time_limit: Duration,
    connection: Option<Connection>,
    request: String,
}

struct Connection {
    stream: TcpStream,
    decoder: ResponseDecoder,
    input: BytesMut,
}

/// A complete answer.
pub struct Answered {
    status: u16,
    /// Length of the body.
    pub length: u64,
    /// How many of its bytes were not the right ones.
    pub wrong_bytes: u64,
    /// Number of the request that the origin answered with it, if it was the origin that did.
    pub reply_to: Option<u64>,
}

impl Client {
    /// A client that is not connected yet.
    pub fn new(target: SocketAddr, mode: Mode, time_limit: Duration) -> Self {
        Self { target, mode, time_limit, connection: None, request: String::new() }
    }

    /// Asks for `object` as request `number`.
    ///
    /// # Errors
    /// Why there is no whole answer of the right length; the connection is then given up.
    pub async fn ask(&mut self, object: Object, number: u64) -> Result<Answered, ErrorCause> {
        let limit = self.time_limit;
        let result = timeout(limit, self.exchange(object, number)).await.unwrap_or(Err(ErrorCause::Timeout));
        let result = result.and_then(|answer| check(object, answer));
        if result.is_err() {
            self.connection = None;
        }
        result
    }

    async fn exchange(&mut self, object: Object, number: u64) -> Result<Answered, ErrorCause> {
        let reused = self.connection.is_some();
        self.write_request(object, number);
        match self.attempt(object).await {
            // The proxy may close an idle connection at any time; a request on a new one decides (RFC 9112 §9.3.1).
            Err(ErrorCause::Incomplete) if reused => {
                self.connection = None;
                self.attempt(object).await
            }
            result => result,
        }
    }

    fn write_request(&mut self, object: Object, number: u64) {
        self.request.clear();
        let authority = match &self.mode {
            Mode::Forward { origin } => {
                let _ = write!(self.request, "GET http://{origin}{object} HTTP/1.1\r\nHost: {origin}\r\n");
                return self.end_request(number);
            }
            Mode::Reverse { host } => host,
        };
        let _ = write!(self.request, "GET {object} HTTP/1.1\r\nHost: {authority}\r\n");
        self.end_request(number);
    }

    fn end_request(&mut self, number: u64) {
        let _ = write!(self.request, "{REQUEST_ID}: {number}\r\n\r\n");
    }

    async fn attempt(&mut self, object: Object) -> Result<Answered, ErrorCause> {
        if self.connection.is_none() {
            let stream = TcpStream::connect(self.target).await.map_err(|_| ErrorCause::Connect)?;
            stream.set_nodelay(true).map_err(|_| ErrorCause::Connect)?;
            let decoder = ResponseDecoder::new(Limits::default());
            self.connection = Some(Connection { stream, decoder, input: BytesMut::new() });
        }
        let Some(connection) = self.connection.as_mut() else { return Err(ErrorCause::Connect) };
        connection.stream.write_all(self.request.as_bytes()).await.map_err(|_| ErrorCause::Incomplete)?;
        connection.decoder.expect(&Method::Get);
        let answer = read_answer(connection, BodyStream::new(object.id, object.version)).await?;
        if connection.decoder.reusable(&connection.input).is_err() {
            self.connection = None;
        }
        Ok(answer)
    }
}

fn check(object: Object, answer: Answered) -> Result<Answered, ErrorCause> {
    match answer {
        Answered { status, .. } if status != 200 => Err(ErrorCause::Status),
        Answered { length, .. } if length != object.size => Err(ErrorCause::Length),
        answer => Ok(answer),
    }
}

async fn read_answer(connection: &mut Connection, body: BodyStream) -> Result<Answered, ErrorCause> {
    let mut answer = Answered { status: 0, length: 0, wrong_bytes: 0, reply_to: None };
    let mut check = BodyCheck::new(body, 0);
    loop {
        match connection.decoder.next(&mut connection.input).map_err(|_| ErrorCause::Protocol)? {
            Some(ResponseEvent::Head(head, _)) => {
                answer.status = head.status;
                answer.reply_to = head.headers.get_str(REQUEST_ID).and_then(|id| id.parse().ok());
            }
            Some(ResponseEvent::Body(data)) => {
                answer.length += data.len() as u64;
                check.take(&data);
            }
            Some(ResponseEvent::End) => {
                answer.wrong_bytes = check.wrong_bytes();
                return Ok(answer);
            }
            Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
            None => {
                connection.input.reserve(READ);
                let read = connection.stream.read_buf(&mut connection.input).await;
                if read.map_err(|_| ErrorCause::Incomplete)? == 0 {
                    let end = connection.decoder.eof().map_err(|_| ErrorCause::Incomplete)?;
                    answer.wrong_bytes = check.wrong_bytes();
                    return if end.is_some() { Ok(answer) } else { Err(ErrorCause::Incomplete) };
                }
            }
        }
    }
}
