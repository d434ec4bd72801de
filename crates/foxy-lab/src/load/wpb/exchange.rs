//! Sends one request of the Wisconsin Proxy Benchmark, with HTTP/1.0 on a new connection. Checks
//! every byte of the answer.

use super::{Cause, Route, WpbRun};
use crate::wire::REQUEST_ID;
use bytes::BytesMut;
use foxy_http::{Limits, Method, ResponseDecoder, ResponseEvent};
use foxy_workload::wpb::WpbRequest;
use foxy_workload::{BodyCheck, BodyStream};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

const READ: usize = 64 << 10;
const SLOW_TICK: Duration = Duration::from_millis(100);
/// The receive buffer in bytes that slow clients ask for. The system may grant a larger buffer.
const SLOW_BUFFER: u32 = 4 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WpbAnswered {
    pub bytes: u64,
    pub hit: bool,
}

pub async fn ask(
    run: &WpbRun,
    request: &WpbRequest,
    number: u64,
    stored: bool,
) -> Result<WpbAnswered, Cause> {
    let slow = run.slow.map_or(0, |rate| request.object.size / rate.max(1));
    let limit = run.time_limit + Duration::from_secs(slow);
    timeout(limit, exchange(run, request, number, stored)).await.unwrap_or(Err(Cause::Timeout))
}

pub fn text(run: &WpbRun, request: &WpbRequest, number: u64, stored: bool) -> String {
    let (object, delay) = (request.object, run.latency.as_millis());
    let no_store = if stored { "" } else { "&no-store" };
    let path = format!("{object}?delay={delay}{no_store}");
    let (target, host) = match &run.route {
        Route::Forward { servers } => {
            let server = servers[request.server as usize % servers.len()];
            (format!("http://{server}{path}"), server.to_string())
        }
        Route::Reverse { host } => (path, host.clone()),
    };
    format!("GET {target} HTTP/1.0\r\nHost: {host}\r\n{REQUEST_ID}: {number}\r\n\r\n")
}

async fn exchange(
    run: &WpbRun,
    request: &WpbRequest,
    number: u64,
    stored: bool,
) -> Result<WpbAnswered, Cause> {
    let mut stream = connect(run).await.map_err(|error| Cause::of_connect(&error))?;
    let sent = stream.write_all(text(run, request, number, stored).as_bytes()).await;
    sent.map_err(|error| Cause::of_end(Some(&error), false))?;
    let mut answer = ReceivedAnswer::new(request);
    let mut input = BytesMut::new();
    loop {
        if let Some(reply_to) = answer.advance(&mut input)? {
            let hit = reply_to != number;
            return if hit && !stored {
                Err(Cause::HitOnNoStore)
            } else {
                Ok(WpbAnswered { bytes: answer.length, hit })
            };
        }
        let read = match run.slow {
            None => {
                input.reserve(READ);
                stream.read_buf(&mut input).await
            }
            Some(rate) => read_slowly(&mut stream, &mut input, rate).await,
        };
        match read {
            Ok(0) => answer.ended = true,
            Ok(_) => answer.begun = true,
            Err(error) => return Err(Cause::of_end(Some(&error), answer.begun)),
        }
    }
}

async fn connect(run: &WpbRun) -> io::Result<TcpStream> {
    let socket = if run.target.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if run.slow.is_some() {
        socket.set_recv_buffer_size(SLOW_BUFFER)?;
    }
    let stream = socket.connect(run.target).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads as many bytes as a slow client may read in one tick, then waits for the tick. `rate` is
/// the client's limit in bytes per second.
async fn read_slowly(stream: &mut TcpStream, input: &mut BytesMut, rate: u64) -> io::Result<usize> {
    let ticks = 1000 / SLOW_TICK.as_millis() as u64;
    let most = usize::try_from((rate / ticks).max(1)).unwrap_or(READ).min(READ);
    let mut piece = vec![0; most];
    let read = stream.read(&mut piece).await?;
    input.extend_from_slice(&piece[..read]);
    sleep(SLOW_TICK).await;
    Ok(read)
}

struct ReceivedAnswer {
    decoder: ResponseDecoder,
    check: BodyCheck,
    size: u64,
    length: u64,
    status: u16,
    reply_to: Option<u64>,
    begun: bool,
    ended: bool,
}

impl ReceivedAnswer {
    fn new(request: &WpbRequest) -> Self {
        let mut decoder = ResponseDecoder::new(Limits::default());
        decoder.expect(&Method::Get);
        let object = request.object;
        let check = BodyCheck::new(BodyStream::new(object.id, object.version), 0);
        Self {
            decoder,
            check,
            size: object.size,
            length: 0,
            status: 0,
            reply_to: None,
            begun: false,
            ended: false,
        }
    }

    /// Processes the bytes received so far. When the answer is complete and correct, returns the
    /// number of the request for which the origin made the answer.
    fn advance(&mut self, input: &mut BytesMut) -> Result<Option<u64>, Cause> {
        loop {
            match self.decoder.next(input).map_err(|_| Cause::Protocol)? {
                Some(ResponseEvent::Head(head, _)) => {
                    self.status = head.status;
                    self.reply_to = head.headers.get_str(REQUEST_ID).and_then(|id| id.parse().ok());
                }
                Some(ResponseEvent::Body(data)) => {
                    self.length += data.len() as u64;
                    self.check.take(&data);
                }
                Some(ResponseEvent::End) => return self.judge().map(Some),
                Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
                None if self.ended => {
                    // An answer without a length is complete when the connection closes.
                    let end = self.decoder.eof().ok().flatten();
                    return end
                        .ok_or_else(|| Cause::of_end(None, self.begun))
                        .and_then(|_| self.judge())
                        .map(Some);
                }
                None => return Ok(None),
            }
        }
    }

    fn judge(&self) -> Result<u64, Cause> {
        if self.status != 200 {
            return Err(Cause::Status);
        }
        let reply_to = self.reply_to.ok_or(Cause::ForeignReply)?;
        if self.length != self.size {
            // The answer has no length, and the connection closed too early. So the answer is
            // truncated, and not just of the wrong length.
            return Err(if self.ended { Cause::Incomplete } else { Cause::Length });
        }
        if self.check.wrong_bytes() > 0 { Err(Cause::BodyMismatch) } else { Ok(reply_to) }
    }
}
