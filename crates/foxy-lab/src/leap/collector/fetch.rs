//! Performs one exchange of the Collector (common parent proxy) with an origin, on a new
//! connection. The Collector never reuses such a connection and never repeats an exchange. The
//! exchange continues even if no proxy reads the answer any more.

use super::answer::{End, SharedAnswer, Start};
use super::failure::Failure;
use super::request::Request;
use super::shared::Shared;
use super::table::{self, Slot, condition, lifetime};
use crate::wire::http2::{Http2Connection, fields_of};
use crate::wire::key::Destination;
use crate::wire::tls::outbound::{self, Channel};
use crate::wire::{http2, key};
use bytes::{Bytes, BytesMut};
use foxy_base::{Instant, clock};
use foxy_http::{
    BodyLength, Headers, Limits, ResponseDecoder, ResponseEvent, ResponseHead, Scheme, encode,
    framing, strip_hop_by_hop,
};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;

const READ: usize = 64 << 10;
/// The estimated memory in bytes of an entry in the Collector's table, without head and body of the
/// answer.
const SLOT: usize = 1024;

pub struct Errand {
    pub slot: Slot,
    pub answer: Rc<SharedAnswer>,
    pub request: Rc<Request>,
    pub address: IpAddr,
    /// The time that the request waited for its turn under the rate limit. Other proxies wait as
    /// long when they receive the answer.
    pub turn: Duration,
    pub older: Option<Rc<SharedAnswer>>,
}

pub async fn run(shared: Rc<Shared>, errand: Errand) {
    let mut exchange = Exchange {
        shared: &shared,
        errand: &errand,
        began: clock::monotonic(),
        connect: Duration::ZERO,
    };
    if let Err(failure) = exchange.run().await {
        shared.fail(failure);
        exchange.fail(failure).await;
    }
    let (now, request) = (clock::monotonic(), &errand.request);
    let start = errand.answer.see(|progress| progress.start.clone());
    let broken =
        errand.answer.see(|progress| progress.end.is_some_and(|end| end.failure.is_some()));
    shared.fetches.set(shared.fetches.get() - 1);
    let Some(start) = start else { return shared.table.borrow_mut().remove(errand.slot) };
    let mut lifetime = lifetime::of(&request.head, &start.head);
    if broken || start.failure.is_some() {
        lifetime = lifetime::Lifetime { fresh: lifetime::AT_LEAST, validated: false };
    }
    let weight = SLOT + start.head.headers.wire_length() + request.url.len();
    shared.table.borrow_mut().stands(errand.slot, lifetime, weight, now);
}

struct Exchange<'a> {
    shared: &'a Shared,
    errand: &'a Errand,
    began: Instant,
    connect: Duration,
}

impl Exchange<'_> {
    async fn run(&mut self) -> Result<(), Failure> {
        let mut stream = self.connect().await?;
        if self.shared.options.origin_http2 {
            return Box::pin(self.run_http2(stream)).await;
        }
        let mut decoder = ResponseDecoder::new(Limits::default());
        decoder.expect(&self.errand.request.head.method);
        self.send(&mut stream).await;
        let (mut input, mut first, mut begun) = (BytesMut::new(), None, false);
        loop {
            while let Some(event) = decoder.next(&mut input).map_err(|_| self.not_http(begun))? {
                match event {
                    ResponseEvent::Head(head, length) => {
                        let first = first.unwrap_or_else(clock::monotonic);
                        if self.begin(head, length, first) {
                            return Ok(());
                        }
                        begun = true;
                    }
                    ResponseEvent::Body(data) => self.add(data, first).await?,
                    ResponseEvent::End => {
                        self.shared.count(|report| report.surplus += u64::from(!input.is_empty()));
                        return self.end(first).await;
                    }
                    ResponseEvent::Interim(_) | ResponseEvent::Trailers(_) => {}
                }
            }
            // Lets other tasks run between two reads, because a fast origin always has more bytes
            // ready.
            yield_now().await;
            input.reserve(READ);
            let read = timeout(self.shared.options.time_limit, stream.read_buf(&mut input)).await;
            let silent = if begun { Failure::Hung } else { Failure::AnswerTimeout };
            let ended = if begun { Failure::ClosedEarly } else { Failure::Unanswered };
            if read.map_err(|_| silent)?.map_err(|_| ended)? == 0 {
                return match decoder.eof() {
                    Ok(Some(_)) => self.end(first).await,
                    Ok(None) | Err(_) => Err(ended),
                };
            }
            if first.is_none() {
                self.shared.alarm.until(clock::monotonic() + self.shared.options.round_trip).await;
                first = Some(clock::monotonic());
            }
        }
    }

    const fn not_http(&self, begun: bool) -> Failure {
        if begun { Failure::BrokenBody } else { Failure::NotHttp }
    }

    async fn connect(&mut self) -> Result<Channel, Failure> {
        let options = &self.shared.options;
        let address = self.errand.address;
        let to = &self.errand.request.to;
        let port = options.origin.map_or(to.port, |origin| origin.port());
        self.shared.alarm.until(self.began + self.errand.turn + options.round_trip).await;
        let connected =
            timeout(options.time_limit, TcpStream::connect(SocketAddr::new(address, port))).await;
        let stream =
            connected.map_err(|_| Failure::ConnectTimeout)?.map_err(|_| Failure::NoConnection)?;
        stream.set_nodelay(true).map_err(|_| Failure::NoConnection)?;
        let stream = match to.scheme {
            Scheme::Http => Channel::Left(stream),
            Scheme::Https => self.secure(stream).await?,
        };
        self.connect = clock::monotonic().since(self.began);
        Ok(stream)
    }

    /// Starts TLS with the origin. The handshake costs one more round trip, which counts as connect
    /// time. If all requests go to one configured origin, its certificate must contain the address
    /// of this origin.
    async fn secure(&self, stream: TcpStream) -> Result<Channel, Failure> {
        let options = &self.shared.options;
        self.shared.alarm.until(clock::monotonic() + options.round_trip).await;
        let own = options.origin.map(|origin| Destination::at(Scheme::Https, origin).host);
        let name = own.as_ref().unwrap_or(&self.errand.request.to.host);
        let secured =
            timeout(options.time_limit, outbound::secure(stream, name, &self.shared.tls)).await;
        Ok(secured.map_err(|_| Failure::HandshakeTimeout)??)
    }

    /// Sends the request. A failed write does not end the fetch, because the origin may already
    /// have answered.
    async fn send(&self, stream: &mut Channel) {
        let request = &self.errand.request;
        let mut headers = self.fields();
        headers.append("Connection", "close");
        let mut output = BytesMut::new();
        let target = request.head.origin_form().unwrap_or_default();
        encode::request_head(&request.head.method, &target, &headers, &mut output);
        output.extend_from_slice(request.body.as_deref().unwrap_or_default());
        let sent = async {
            stream.write_all(&output).await?;
            stream.flush().await
        };
        let _answered_already = timeout(self.shared.options.time_limit, sent).await;
    }

    fn fields(&self) -> Headers {
        let request = &self.errand.request;
        let mut headers = request.head.headers.clone();
        strip_hop_by_hop(&mut headers);
        headers.remove("expect");
        if let Some(older) =
            self.errand.older.as_ref().and_then(|older| older.see(|older| older.start.clone()))
        {
            key::make_unconditional(&mut headers);
            condition::ask_about(&older.head, &mut headers);
        }
        if let Some(body) = &request.body {
            framing::set_body_length(&mut headers, BodyLength::Length(body.len() as u64));
        }
        if let Some(left) = request.head.hops_left() {
            headers.set("Max-Forwards", left.saturating_sub(1).to_string());
        }
        headers.append("Via", &self.shared.via);
        headers
    }

    fn begin(&self, mut head: ResponseHead, length: BodyLength, first: Instant) -> bool {
        strip_hop_by_hop(&mut head.headers);
        head.headers = head.headers.compact();
        let (answer, request) = (&self.errand.answer, &self.errand.request);
        let older = self.errand.older.as_ref().filter(|_| head.status == 304);
        let older = older.and_then(|older| Some((older, older.see(|older| older.start.clone())?)));
        let (head, length, confirms) = match &older {
            Some((_, start)) => (condition::confirmed(&start.head, &head), start.length, true),
            None => (head, length, false),
        };
        let whole = request.asked.conditional.is_none() || head.status == 200;
        let (asked, fields) = (&request.asked, &request.head.headers);
        self.shared.table.borrow_mut().head(self.errand.slot, asked, fields, &head.headers, whole);
        self.shared.count(|report| {
            report.connect.add(self.connect);
            report.first_byte.add(first.since(self.began));
        });
        let start = Start {
            depends: table::depends(fields, &head.headers),
            head,
            length,
            first_byte: first.since(self.began),
            at: first,
            origin: Some(self.errand.address),
            failure: None,
            confirms,
        };
        match older {
            Some((older, _)) => answer.take_over(start, older),
            None => answer.change(|progress| progress.start = Some(Rc::new(start))),
        }
        confirms
    }

    async fn add(&self, data: Bytes, first: Option<Instant>) -> Result<(), Failure> {
        self.shared.count(|report| report.bytes_in += data.len() as u64);
        let at = clock::monotonic().since(first.unwrap_or(self.began));
        self.errand.answer.add(data, at, &|| self.shared.evict()).await
    }

    async fn end(&self, first: Option<Instant>) -> Result<(), Failure> {
        let (at, body) = (clock::monotonic().since(first.unwrap_or(self.began)), self.body());
        body.finish(&|| self.shared.evict()).await?;
        self.errand.answer.change(|progress| progress.end = Some(End { at, failure: None }));
        Ok(())
    }

    fn body(&self) -> Rc<super::answer::spool::Body> {
        self.errand.answer.see(|progress| Rc::clone(&progress.body))
    }

    /// Marks the answer as failed. If no head has arrived, proxies receive an error page.
    async fn fail(&self, failure: Failure) {
        let now = clock::monotonic();
        let started =
            self.errand.answer.see(|progress| progress.start.as_ref().map(|start| start.at));
        if let Some(first) = started {
            let end = End { at: now.since(first), failure: Some(failure) };
            return self.errand.answer.change(|progress| progress.end = Some(end));
        }
        let took = now.since(self.began);
        failed(&self.errand.answer, failure, took, Some(self.errand.address), now).await;
    }
}

pub async fn failed(
    answer: &SharedAnswer,
    failure: Failure,
    first_byte: Duration,
    origin: Option<IpAddr>,
    at: Instant,
) {
    let text = Bytes::from(format!("foxy collector: {}\n", failure.description()));
    let mut head = ResponseHead::new(failure.status());
    head.headers.append("Content-Type", "text/plain");
    head.headers
        .append("Proxy-Status", format!("foxy-collector; error={}", failure.proxy_status()));
    let length = BodyLength::Length(text.len() as u64);
    framing::set_body_length(&mut head.headers, length);
    let (depends, confirms, failure) = (Vec::new(), false, Some(failure));
    let start = Start { head, length, depends, first_byte, at, origin, failure, confirms };
    answer.change(|progress| progress.start = Some(Rc::new(start)));
    // Adding the text cannot fail, because a short text always fits into the last block of a body.
    let _fits = answer.add(text, Duration::ZERO, &|| false).await;
    answer.change(|progress| progress.end = Some(End { at: Duration::ZERO, failure: None }));
}

impl Exchange<'_> {
    pub(super) async fn run_http2(&mut self, channel: Channel) -> Result<(), Failure> {
        let (shared, asked) = (self.shared, &self.errand.request);
        let (limit, body) = (shared.options.time_limit, asked.body.clone());
        let request = self.request().ok_or(Failure::NotHttp)?;
        let answered = async {
            let mut stream = Http2Connection::open(channel).await?;
            let response = stream.ask(request, body)?.await?;
            Ok((stream, response))
        };
        let answered = timeout(limit, answered).await.map_err(|_| Failure::AnswerTimeout)?;
        let (_stream, response) = answered.map_err(|error| failure(&error, Failure::Unanswered))?;
        shared.alarm.until(clock::monotonic() + shared.options.round_trip).await;
        let (first, (parts, mut body)) = (clock::monotonic(), response.into_parts());
        let (head, length) =
            http2::response_head(&asked.head.method, &parts).ok_or(Failure::NotHttp)?;
        if self.begin(head, length, first) {
            return Ok(());
        }
        while let Some(data) = timeout(limit, body.data()).await.map_err(|_| Failure::Hung)? {
            let data = data.map_err(|error| failure(&error, Failure::ClosedEarly))?;
            let count = data.len();
            self.add(data, Some(first)).await?;
            // The call fails only if the stream has ended. Then flow control no longer matters.
            let _ = body.flow_control().release_capacity(count);
        }
        self.end(Some(first)).await
    }

    fn request(&self) -> Option<http::Request<()>> {
        let asked = &self.errand.request;
        let method = asked.head.method.as_str();
        let mut request = http::Request::builder().method(method).uri(&*asked.url).body(()).ok()?;
        let mut fields = self.fields();
        for name in ["host", "transfer-encoding"] {
            fields.remove(name);
        }
        *request.headers_mut() = fields_of(&fields);
        Some(request)
    }
}

fn failure(error: &h2::Error, ended: Failure) -> Failure {
    if error.is_io() || error.is_remote() { ended } else { Failure::NotHttp }
}
