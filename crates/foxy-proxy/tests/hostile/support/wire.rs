//! A client that sends raw bytes, so that tests can send any malformed request. It reads answers
//! with foxy's own decoder.

use bytes::BytesMut;
use foxy_http::{DecodeError, Limits, Method, ResponseDecoder, ResponseEvent, ResponseHead};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a proxy.
pub struct RawClient {
    stream: TcpStream,
    buffer: BytesMut,
    decoder: ResponseDecoder,
}

/// A response as the client received it.
#[derive(Debug)]
pub struct Response {
    /// The interim heads before the final head.
    pub interim: Vec<ResponseHead>,
    /// The final head.
    pub head: ResponseHead,
    /// The body bytes that arrived.
    pub body: Vec<u8>,
    /// Names and values of the trailers.
    pub trailers: Vec<(String, String)>,
    /// The error that ended the response too early, if there was one.
    pub end: Result<(), DecodeError>,
}

impl Response {
    /// Returns the value of a header as text, or an empty text if the response lacks the header.
    pub fn header(&self, name: &str) -> &str {
        self.head.headers.get_str(name).unwrap_or_default()
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl RawClient {
    pub async fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the proxy listens");
        Self { stream, buffer: BytesMut::new(), decoder: ResponseDecoder::new(Limits::default()) }
    }

    /// Connects from the loopback address `own`.
    pub async fn connect_from(own: &str, port: u16) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(own.parse().expect("an address"), 0)).expect("bound");
        let stream =
            socket.connect(([127, 0, 0, 1], port).into()).await.expect("the proxy listens");
        Self { stream, buffer: BytesMut::new(), decoder: ResponseDecoder::new(Limits::default()) }
    }

    /// Sends bytes. An error is ignored, because the proxy may already have closed the connection.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Closes the sending direction of the connection.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads the next response, which answers a request with `method`.
    pub async fn response(&mut self, method: &Method) -> Response {
        self.decoder.expect(method);
        tokio::time::timeout(PATIENCE, self.read_response())
            .await
            .expect("the proxy answers in time")
    }

    async fn read_response(&mut self) -> Response {
        let mut interim = Vec::new();
        let mut response: Option<Response> = None;
        loop {
            let event = match self.decoder.next(&mut self.buffer) {
                Ok(Some(event)) => Ok(event),
                Ok(None) => match self.fill().await {
                    0 => self.decoder.eof().map(|event| event.expect("a response is awaited")),
                    _ => continue,
                },
                Err(error) => Err(error),
            };
            match (event, &mut response) {
                (Ok(ResponseEvent::Interim(head)), None) => interim.push(head),
                (Ok(ResponseEvent::Head(head, _)), None) => {
                    let interim = std::mem::take(&mut interim);
                    response = Some(Response {
                        interim,
                        head,
                        body: Vec::new(),
                        trailers: Vec::new(),
                        end: Ok(()),
                    });
                }
                (Ok(ResponseEvent::Body(bytes)), Some(response)) => {
                    response.body.extend_from_slice(&bytes)
                }
                (Ok(ResponseEvent::Trailers(trailers)), Some(response)) => {
                    let line = |(name, value): (&str, &[u8])| {
                        (name.to_owned(), String::from_utf8_lossy(value).into_owned())
                    };
                    response.trailers.extend(trailers.iter().map(line));
                }
                (Ok(ResponseEvent::End), Some(_)) => return response.take().expect("a head came"),
                (Err(error), Some(_)) => {
                    let mut response = response.take().expect("a head came");
                    response.end = Err(error);
                    return response;
                }
                (event, _) => panic!("no response: {event:?}, buffer {:?}", self.buffer),
            }
        }
    }

    /// Reads more bytes. Returns 0 at the end of the connection or after a reset.
    async fn fill(&mut self) -> usize {
        self.stream.read_buf(&mut self.buffer).await.unwrap_or(0)
    }

    /// Reads to the end of the connection. Fails if the proxy keeps the connection open.
    pub async fn rest(&mut self) -> Vec<u8> {
        let read = async { while self.fill().await > 0 {} };
        tokio::time::timeout(PATIENCE, read).await.expect("the proxy closes the connection");
        self.buffer.split().to_vec()
    }

    /// Reads to the end of the connection. Returns the bytes that arrived, and true if a reset
    /// ended the connection.
    pub async fn end(&mut self) -> (Vec<u8>, bool) {
        let read = async {
            loop {
                match self.stream.read_buf(&mut self.buffer).await {
                    Ok(0) => return false,
                    Ok(_) => {}
                    Err(_) => return true,
                }
            }
        };
        let reset =
            tokio::time::timeout(PATIENCE, read).await.expect("the proxy closes the connection");
        (self.buffer.split().to_vec(), reset)
    }

    /// Reads the bytes of a head, including its empty line. Leaves the bytes after the head unread.
    pub async fn read_until_blank_line(&mut self) -> Vec<u8> {
        let end = |buffer: &[u8]| {
            buffer.windows(4).position(|four| four == b"\r\n\r\n").map(|start| start + 4)
        };
        let read = async { while end(&self.buffer).is_none() && self.fill().await > 0 {} };
        tokio::time::timeout(PATIENCE, read).await.expect("a head arrives");
        let length = end(&self.buffer).unwrap_or(self.buffer.len());
        self.buffer.split_to(length).to_vec()
    }

    /// Reads `count` bytes of a tunnel.
    pub async fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        let read = async { while self.buffer.len() < count && self.fill().await > 0 {} };
        tokio::time::timeout(PATIENCE, read).await.expect("the tunnel carries bytes");
        let count = count.min(self.buffer.len());
        self.buffer.split_to(count).to_vec()
    }
}
