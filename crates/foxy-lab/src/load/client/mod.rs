//! A client of a load run. It has one connection and sends one request at a time. It checks every
//! byte of each answer.

mod http2;
mod wire;

use crate::load::options::Protocol;
use crate::load::outcome::{Answered, ErrorCause, Unanswered};
use crate::wire::patience::Loss;
use crate::wire::tls::outbound::{self, Channel, Obstacle};
use crate::wire::{OBJECT_ID, REQUEST_ID};
use bytes::{Bytes, BytesMut};
use foxy_base::WallTime;
use foxy_http::{Limits, NotReusable, ResponseDecoder, ResponseEvent};
use foxy_workload::polymix::{Side, breaks_off};
use foxy_workload::{BodyCheck, BodyStream, Content, Request};
use h2::client::SendRequest;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
pub use wire::ClientTarget;

const READ: usize = 64 << 10;

pub struct Client {
    wire: ClientTarget,
    connection: Option<Connection>,
    server: u32,
    uses: u32,
    text: String,
}

enum Connection {
    Http1(Http1),
    Http2(SendRequest<Bytes>),
}

struct Http1 {
    stream: Channel,
    decoder: ResponseDecoder,
    input: BytesMut,
}

struct Broken {
    cause: Unanswered,
    head: Option<Answered>,
}

impl From<ErrorCause> for Broken {
    fn from(cause: ErrorCause) -> Self {
        Self { cause: Unanswered::Failed(cause), head: None }
    }
}

impl Client {
    pub const fn new(wire: ClientTarget) -> Self {
        Self { wire, connection: None, server: 0, uses: u32::MAX, text: String::new() }
    }

    pub const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Whether the open connection can carry this request. A connection to a proxy can carry all
    /// requests, but a tunnel leads to only one server.
    pub const fn leads_to(&self, request: &Request) -> bool {
        self.is_connected() && (!self.wire.tunnels() || self.server == request.server)
    }

    pub fn disconnect(&mut self, uses: u32) {
        self.connection = None;
        self.uses = uses;
    }

    /// Frees the input buffer while the client has nothing to do.
    pub fn rest(&mut self) {
        if let Some(Connection::Http1(Http1 { input, .. })) = &mut self.connection
            && input.is_empty()
        {
            *input = BytesMut::new();
        }
    }

    pub async fn ask(
        &mut self,
        request: &Request,
        number: u64,
        now: WallTime,
    ) -> Result<Answered, Unanswered> {
        self.uses = self.uses.saturating_sub(1);
        self.wire.write(request, number, now, self.uses == 0, &mut self.text);
        let exchange = timeout(self.wire.time_limit, self.exchange(request, number, now));
        let result = exchange.await.unwrap_or(Err(ErrorCause::Timeout.into()));
        if result.is_err() || self.uses == 0 || !self.wire.protocol.is_persistent() {
            self.connection = None;
        }
        match result {
            Ok(answer) if answer.status >= 500 && excuse(request, number, None) => {
                Err(Unanswered::BrokenOff)
            }
            Ok(answer) => Ok(answer),
            Err(Broken { cause: Unanswered::Failed(cause), head })
                if cause.is_loss() && excuse(request, number, head) =>
            {
                Err(Unanswered::BrokenOff)
            }
            Err(broken) => Err(broken.cause),
        }
    }

    async fn exchange(
        &mut self,
        request: &Request,
        number: u64,
        now: WallTime,
    ) -> Result<Answered, Broken> {
        let reused = self.leads_to(request);
        if !reused {
            (self.connection, self.server) = (None, request.server);
        }
        match self.attempt(request, number, now).await {
            // The proxy may close an idle connection at any time. So the client repeats the request
            // on a new connection (RFC 9112 §9.3.1). It may repeat even a POST, because foxy's own
            // origin stores nothing.
            Err(Broken { cause: Unanswered::Failed(cause), head: None })
                if reused && cause.is_loss() =>
            {
                self.connection = None;
                self.attempt(request, number, now).await
            }
            result => result,
        }
    }

    async fn connect(&self, request: &Request) -> Result<Connection, ErrorCause> {
        let stream = open(&self.wire, request).await?;
        if self.wire.protocol == Protocol::Http2 {
            return http2::begin(stream).await.map(Connection::Http2);
        }
        let decoder = ResponseDecoder::new(Limits::default());
        Ok(Connection::Http1(Http1 { stream, decoder, input: BytesMut::new() }))
    }

    async fn attempt(
        &mut self,
        request: &Request,
        number: u64,
        now: WallTime,
    ) -> Result<Answered, Broken> {
        if self.connection.is_none() {
            self.connection = Some(self.connect(request).await?);
        }
        let breaks_off = match request.content {
            Content::Document(document) => breaks_off(Side::Client, number, document.nature().size),
            Content::Object(..) => None,
        };
        let mut reading = Reading::new(request, breaks_off);
        match self.connection.as_mut().ok_or(ErrorCause::Connect)? {
            Connection::Http2(sender) => {
                http2::ask(sender, &self.wire, request, number, now, &mut reading).await
            }
            Connection::Http1(connection) => {
                let answer = connection.ask(&self.text, request, &mut reading).await?;
                match connection.decoder.reusable(&connection.input) {
                    Ok(()) => {}
                    Err(NotReusable::ExtraBytes) => return Err(ErrorCause::Surplus.into()),
                    Err(NotReusable::Unfinished | NotReusable::Closing(_)) => {
                        self.connection = None
                    }
                }
                Ok(answer)
            }
        }
    }
}

impl Http1 {
    async fn ask(
        &mut self,
        text: &str,
        request: &Request,
        reading: &mut Reading,
    ) -> Result<Answered, Broken> {
        let unsent = |error: io::Error| ErrorCause::from(Loss::of(Some(&error), false));
        self.stream.write_all(text.as_bytes()).await.map_err(unsent)?;
        self.stream.flush().await.map_err(unsent)?;
        self.decoder.expect(&wire::method(request.manner));
        loop {
            let read = self.advance(reading);
            if let Some(answer) = read.map_err(|cause| Broken { cause, head: reading.head() })? {
                return Ok(answer);
            }
            self.input.reserve(READ);
            let begun = reading.head().is_some() || !self.input.is_empty();
            let read = self.stream.read_buf(&mut self.input).await;
            if !matches!(read, Ok(1..)) {
                let ended = self.decoder.eof().ok().flatten().filter(|_| read.is_ok());
                let cause = Unanswered::Failed(Loss::of(read.as_ref().err(), begun).into());
                let head = reading.head();
                return ended.and_then(|_| reading.finish()).ok_or(Broken { cause, head });
            }
        }
    }

    fn advance(&mut self, reading: &mut Reading) -> Result<Option<Answered>, Unanswered> {
        let protocol = Unanswered::Failed(ErrorCause::Protocol);
        loop {
            match self.decoder.next(&mut self.input).map_err(|_| protocol)? {
                Some(ResponseEvent::Head(head, _)) => {
                    reading.begin(head.status, |name| head.headers.get_str(name));
                }
                Some(ResponseEvent::Body(data)) => reading.take(&data)?,
                Some(ResponseEvent::End) => return reading.finish().map(Some).ok_or(protocol),
                Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
                None => return Ok(None),
            }
        }
    }
}

/// Whether the workload makes the origin end this exchange early on purpose. This depends on the
/// number of the request for which the origin made the answer. For a cache hit, this is an earlier
/// request.
fn excuse(request: &Request, number: u64, head: Option<Answered>) -> bool {
    let Content::Document(document) = request.content else { return false };
    let answered = head.and_then(|head| head.reply_to).unwrap_or(number);
    breaks_off(Side::Server, answered, document.nature().size).is_some()
}

pub struct Reading {
    content: Content,
    answer: Option<Answered>,
    check: Option<BodyCheck>,
    breaks_off: Option<u64>,
}

impl Reading {
    /// Starts to read the answer to `request`. If `breaks_off` is set, the client ends the exchange
    /// after this number of body bytes, because the workload requires it.
    pub const fn new(request: &Request, breaks_off: Option<u64>) -> Self {
        Self { content: request.content, answer: None, check: None, breaks_off }
    }

    pub const fn head(&self) -> Option<Answered> {
        self.answer
    }

    pub fn begin<'a>(&mut self, status: u16, field: impl Fn(&str) -> Option<&'a str>) {
        let reply_to = field(REQUEST_ID).and_then(|id| id.parse().ok());
        let object = field(OBJECT_ID).and_then(|text| text.split_once('.'));
        let object =
            object.and_then(|(key, version)| Some((key.parse().ok()?, version.parse().ok()?)));
        let body = match self.content {
            Content::Object(object, _) => Some(BodyStream::new(object.id, object.version)),
            Content::Document(document) => object.map(|(_, version)| document.body(version)),
        };
        self.check = body.filter(|_| status == 200).map(|body| BodyCheck::new(body, 0));
        self.answer = Some(Answered { status, reply_to, object, ..Answered::default() });
    }

    pub fn take(&mut self, data: &[u8]) -> Result<(), Unanswered> {
        if let Some(answer) = &mut self.answer {
            answer.length += data.len() as u64;
            if let Some(check) = &mut self.check {
                check.take(data);
            }
            if self.breaks_off.is_some_and(|at| answer.length > at) {
                return Err(Unanswered::BrokenOff);
            }
        }
        Ok(())
    }

    pub fn finish(&mut self) -> Option<Answered> {
        let wrong_bytes = self.check.take().map_or(0, |check| check.wrong_bytes());
        self.answer.map(|answer| Answered { wrong_bytes, ..answer })
    }
}

pub async fn open(wire: &ClientTarget, request: &Request) -> Result<Channel, ErrorCause> {
    let mut stream =
        TcpStream::connect(wire.target).await.map_err(|error| ErrorCause::of_connect(&error))?;
    stream.set_nodelay(true).map_err(|_| ErrorCause::Connect)?;
    let Some(config) = &wire.tls else { return Ok(Channel::Left(stream)) };
    let authority = wire.authority(request);
    if wire.tunnels() {
        outbound::tunnel(&mut stream, authority).await?;
    }
    Ok(outbound::secure(stream, authority, config).await?)
}

impl From<Obstacle> for ErrorCause {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::NoTunnel => Self::Tunnel,
            Obstacle::NotHttp => Self::Protocol,
            Obstacle::Certificate => Self::Certificate,
            Obstacle::Handshake => Self::Handshake,
        }
    }
}
