//! Two HTTP/2 clients for tests: one that obeys the protocol, and one that sends hand-written
//! frames.

use crate::support::proxy::Proxy;
use bytes::Bytes;
use foxy_testkit::http2::{PREFACE, frame, kind};
use h2::client::{Builder, SendRequest};
use http::{HeaderMap, Request};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client connection that obeys the protocol.
#[derive(Clone)]
pub struct Http2Client {
    pub requests: SendRequest<Bytes>,
}

/// An answer as the client received it.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
    /// The error that ended the answer too early, if there was one.
    pub broken: Option<h2::Error>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

impl Http2Client {
    pub async fn connect(proxy: &Proxy) -> Self {
        Self::with(proxy, &Builder::new()).await
    }

    pub async fn with(proxy: &Proxy, builder: &Builder) -> Self {
        let stream =
            TcpStream::connect(("127.0.0.1", proxy.port)).await.expect("the proxy accepts");
        let (requests, connection) = builder.handshake(stream).await.expect("a connection");
        tokio::task::spawn_local(connection);
        Self { requests }
    }

    /// Sends a request. Reads the answer until it ends or breaks off.
    pub async fn ask(&self, request: Request<()>, body: &[&str]) -> Result<Answer, h2::Error> {
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut sending) = requests.send_request(request, body.is_empty())?;
        for (index, piece) in body.iter().enumerate() {
            sending.send_data(Bytes::copy_from_slice(piece.as_bytes()), index + 1 == body.len())?;
        }
        read(answer).await
    }

    pub async fn get(&self, url: &str) -> Answer {
        self.ask(get(url, &[]), &[]).await.expect("an answer")
    }
}

/// Creates a GET with the additional header fields `fields`.
pub fn get(url: &str, fields: &[(&str, &str)]) -> Request<()> {
    let request = Request::builder().uri(url);
    fields
        .iter()
        .fold(request, |request, (name, value)| request.header(*name, *value))
        .body(())
        .expect("valid")
}

/// Reads an answer until it ends or breaks off.
pub async fn read(answer: h2::client::ResponseFuture) -> Result<Answer, h2::Error> {
    let (head, mut body) =
        timeout(PATIENCE, answer).await.expect("an answer in time")?.into_parts();
    let mut read = Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: Vec::new(),
        trailers: None,
        broken: None,
    };
    while let Some(data) = timeout(PATIENCE, body.data()).await.expect("a body in time") {
        match data {
            Ok(data) => {
                body.flow_control().release_capacity(data.len()).expect("as much as came");
                read.body.extend_from_slice(&data);
            }
            Err(error) => {
                read.broken = Some(error);
                return Ok(read);
            }
        }
    }
    match body.trailers().await {
        Ok(trailers) => read.trailers = trailers,
        Err(error) => read.broken = Some(error),
    }
    Ok(read)
}

#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// Returns the error code of a RST_STREAM or GOAWAY frame.
    pub fn reason(&self) -> u32 {
        let at = if self.kind == kind::GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().expect("four bytes"))
    }
}

/// A client connection on which the test can send any bytes.
pub struct RawHttp2 {
    pub stream: TcpStream,
}

impl RawHttp2 {
    /// Connects, and sends only the preface and a SETTINGS frame with these settings.
    pub async fn connect(proxy: &Proxy, settings: &[(u16, u32)]) -> Self {
        let mut stream =
            TcpStream::connect(("127.0.0.1", proxy.port)).await.expect("the proxy accepts");
        stream.set_nodelay(true).expect("set");
        stream.write_all(PREFACE).await.expect("taken");
        let pair =
            |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = settings.iter().flat_map(pair).collect();
        let mut client = Self { stream };
        client.send(&frame(kind::SETTINGS, 0, 0, &payload)).await;
        client
    }

    /// Sends bytes. Returns false if the connection is closed.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        timeout(PATIENCE, self.stream.write_all(bytes))
            .await
            .expect("taken or refused in time")
            .is_ok()
    }

    /// Returns the next frame, or `None` at the end of the connection.
    pub async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        timeout(PATIENCE, self.stream.read_exact(&mut head))
            .await
            .expect("a frame in time")
            .ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], stream, payload })
    }

    /// Returns the next frame that `wanted` accepts, or `None` at the end of the connection.
    pub async fn find(&mut self, wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if wanted(&frame) {
                return Some(frame);
            }
        }
    }
}
