//! Sends one copy of a request to a path (a proxy or the origin), on a new or reused connection.
//! Measures the times, and computes the digest of the body while it arrives.

pub mod body;
pub mod carried;
pub mod failure;
pub mod kept;
pub mod message;
pub mod outgoing;
pub mod relay;
pub mod requests;

use super::context::RunContext;
use super::{Answer, Asked, Framing, Path};
use crate::wire::REQUEST_ID;
use crate::wire::patience::Loss;
use crate::wire::tls::outbound::Channel;
use body::BodyDigest;
use bytes::{Bytes, BytesMut};
use failure::PathFailure;
use foxy_base::{Instant, clock};
use foxy_http::{
    BodyLength, CloseReason, DecodeError, Headers, Limits, Method, NotReusable, ResponseDecoder,
    ResponseEvent, ResponseHead, Scheme, may_begin_response,
};
use kept::{Carriage, may_keep, nothing_behind};
use relay::{Piece, Tap};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;

/// The size of the first read in bytes. Most answers are smaller.
const FIRST_READ: usize = 16 << 10;
const READ: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Copied {
    pub times: Times,
    pub bytes: u64,
    pub outcome: Result<Answer, PathFailure>,
    /// Whether a slow client delayed the answer. If so, the measured times do not describe the
    /// proxy.
    pub held: bool,
    pub carriage: Carriage,
    pub broken: Option<DecodeError>,
}

#[derive(Clone, Copy)]
pub struct Copying<'a> {
    pub context: &'a RunContext,
    pub place: usize,
    pub path: &'a Path,
    pub asked: &'a Asked,
    pub number: u64,
}

/// Sends a copy of the request to a path (proxy or origin). If a client waits for this answer,
/// `tap` passes the answer on as it arrives.
pub async fn ask(
    context: &RunContext,
    place: usize,
    asked: &Asked,
    number: u64,
    tap: Option<Tap>,
) -> Copied {
    let mut reading = ReadingExchange::new(context.run.time_limit, tap);
    let path = &context.run.paths[place];
    let outcome = reading.exchange(Copying { context, place, path, asked, number }).await;
    let now = reading.last.unwrap_or_else(clock::monotonic);
    let first = reading.first.unwrap_or(now);
    let times = Times {
        connect: reading.connected.unwrap_or(now).since(reading.begun),
        first_byte: first.since(reading.begun),
        transfer: now.since(first),
    };
    let (bytes, carriage, broken, tap) =
        (reading.bytes, reading.carriage, reading.broken, reading.tap.take());
    let outcome = outcome.map_err(|failure| match failure {
        PathFailure::Surplus if asked.message.method == Method::Head => PathFailure::BodyToHead,
        failure => failure,
    });
    let outcome = outcome.and_then(|()| reading.answer(number).ok_or(PathFailure::NotHttp));
    let mut held = false;
    if let Some(mut tap) = tap {
        // Bytes after the answer are not a failure for the client, because it already has the
        // complete answer.
        let end = match &outcome {
            Ok(_) | Err(PathFailure::Surplus | PathFailure::BodyToHead) => Piece::End,
            Err(failure) => Piece::Failed(*failure),
        };
        tap.give(end).await;
        held = tap.held;
    }
    Copied { times, bytes, outcome, held, carriage, broken }
}

pub struct ReadingExchange {
    begun: Instant,
    limit: Duration,
    pub connected: Option<Instant>,
    pub first: Option<Instant>,
    last: Option<Instant>,
    head: Option<(ResponseHead, BodyDigest)>,
    bytes: u64,
    tap: Option<Tap>,
    pub carriage: Carriage,
    broken: Option<DecodeError>,
    framing: Framing,
}

impl ReadingExchange {
    fn new(limit: Duration, tap: Option<Tap>) -> Self {
        let begun = clock::monotonic();
        Self {
            begun,
            limit,
            connected: None,
            first: None,
            last: None,
            head: None,
            bytes: 0,
            tap,
            carriage: Carriage::New,
            broken: None,
            framing: Framing::Plain,
        }
    }

    async fn exchange(&mut self, copying: Copying<'_>) -> Result<(), PathFailure> {
        let Copying { context, path, asked, number, .. } = copying;
        if context.run.outgoing.is_http2(path) {
            return Box::pin(carried::exchange(self, copying)).await;
        }
        let text = message::text(&context.run, path, asked, number);
        let keep = may_keep(&context.run, asked);
        let mut kept = keep.then(|| context.kept.take(copying)).flatten();
        loop {
            let mut channel = match kept.take() {
                Some(channel) => {
                    self.is_kept();
                    channel
                }
                None => self.connect(copying).await?,
            };
            let ended = self.converse(&mut channel, asked, keep, &text).await;
            match ended {
                // The server closed the reused connection before it processed the request. So LEAP
                // may repeat the request on a new connection.
                Err(PathFailure::Unanswered | PathFailure::ConnectionReset)
                    if self.carriage == Carriage::Kept && self.first.is_none() =>
                {
                    self.carriage = Carriage::KeptThenNew;
                }
                Ok(true) => return context.kept.put(copying, channel),
                ended => return ended.map(|_| ()),
            }
        }
    }

    pub fn is_kept(&mut self) {
        (self.carriage, self.connected) = (Carriage::Kept, Some(self.begun));
    }

    pub async fn connect(
        &mut self,
        Copying { context, path, asked, .. }: Copying<'_>,
    ) -> Result<Channel, PathFailure> {
        let address = path.address_for(asked).ok_or(PathFailure::NoConnection)?;
        let connected = self.within(TcpStream::connect(address)).await?;
        let stream = connected.map_err(|_| PathFailure::NoConnection)?;
        stream.set_nodelay(true).map_err(|_| PathFailure::NoConnection)?;
        let channel = match asked.scheme {
            Scheme::Http => Channel::Left(stream),
            Scheme::Https => {
                Box::pin(self.within(context.run.outgoing.secure(stream, path, asked))).await??
            }
        };
        self.connected = Some(clock::monotonic());
        Ok(channel)
    }

    /// Performs one HTTP/1 exchange. Returns whether the connection can be reused.
    async fn converse(
        &mut self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        asked: &Asked,
        keep: bool,
        text: &[u8],
    ) -> Result<bool, PathFailure> {
        let sent = async {
            stream.write_all(text).await?;
            stream.flush().await
        };
        self.within(sent).await?.map_err(|error| Loss::of(Some(&error), false))?;
        let mut decoder = ResponseDecoder::new(Limits::default());
        decoder.expect(&asked.message.method);
        let (mut input, mut room) = (BytesMut::new(), FIRST_READ);
        loop {
            if self.advance(&mut decoder, &mut input).await? {
                self.last = Some(clock::monotonic());
                let reusable = decoder.reusable(&input);
                if reusable == Err(NotReusable::Closing(CloseReason::AmbiguousLength)) {
                    self.framing = Framing::Ambiguous;
                }
                // No check for extra bytes is needed here. The store of idle connections checks a
                // connection when it takes the connection in and when it gives the connection out.
                if keep && reusable.is_ok() {
                    return Ok(true);
                }
                return nothing_behind(stream, &mut input).await.map(|()| false);
            }
            input.reserve(room);
            let read = self.within(stream.read_buf(&mut input)).await?;
            let begun = self.first.is_some();
            let read = read.map_err(|error| self.lost(&input, Loss::of(Some(&error), begun)))?;
            if read == 0 {
                let ended = decoder.eof().ok().flatten();
                return ended
                    .map(|_| false)
                    .ok_or_else(|| self.lost(&input, Loss::of(None, begun)));
            }
            if read >= room {
                // Lets other tasks run between two reads, because a fast server always has more
                // bytes ready.
                yield_now().await;
                room = READ;
            }
            self.first.get_or_insert_with(clock::monotonic);
        }
    }

    /// Returns the failure after the connection was lost. If the received bytes cannot begin an
    /// answer, the failure is `NotHttp`: the server sent wrong bytes before the loss.
    fn lost(&mut self, rest: &[u8], loss: Loss) -> PathFailure {
        if self.head.is_some() || may_begin_response(rest) {
            return loss.into();
        }
        self.broken = Some(DecodeError::InvalidStatusLine);
        PathFailure::NotHttp
    }

    /// Runs `work` within the time limit for a copy of a request. Time in which a slow client
    /// delayed the copy does not count.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, PathFailure> {
        let waited = self.tap.as_ref().map_or(Duration::ZERO, |tap| tap.waited);
        let left = (self.limit + waited).saturating_sub(clock::monotonic().since(self.begun));
        // The check is needed because `timeout` accepts a result that is ready at once, even after
        // the limit.
        if left.is_zero() {
            return Err(PathFailure::Timeout);
        }
        timeout(left, work).await.map_err(|_| PathFailure::Timeout)
    }

    async fn advance(
        &mut self,
        decoder: &mut ResponseDecoder,
        input: &mut BytesMut,
    ) -> Result<bool, PathFailure> {
        loop {
            let event = decoder.next(input).map_err(|error| {
                self.broken = Some(error);
                PathFailure::NotHttp
            });
            match event? {
                Some(ResponseEvent::Head(head, length)) => self.begin(head, length).await,
                Some(ResponseEvent::Body(data)) => self.add(data).await,
                Some(ResponseEvent::End) => return Ok(true),
                Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
                None => return Ok(false),
            }
        }
    }

    pub async fn begin(&mut self, head: ResponseHead, length: BodyLength) {
        if let Some(tap) = &mut self.tap {
            tap.give(Piece::Head(head.clone(), length)).await;
        }
        let body = BodyDigest::new(&head.headers);
        self.head = Some((head, body));
    }

    pub async fn add(&mut self, data: Bytes) {
        self.bytes += data.len() as u64;
        if let Some((_, body)) = &mut self.head {
            body.take(&data);
        }
        if let Some(tap) = &mut self.tap {
            tap.give(Piece::Body(data)).await;
        }
    }

    fn answer(self, number: u64) -> Option<Answer> {
        let (head, body) = self.head?;
        let body = body.finish();
        let hit = hit(&head.headers, number);
        let (length, digest, decoding, framing) =
            (body.length, body.digest, body.decoding, self.framing);
        Some(Answer {
            status: head.status,
            headers: head.headers,
            length,
            digest,
            decoding,
            framing,
            hit,
        })
    }
}

/// The durations of the parts of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time to connect, with TLS handshake and tunnel. Zero for a reused connection.
    pub connect: Duration,
    /// The time to the first byte, including the time to connect.
    pub first_byte: Duration,
    /// The time from the first byte to the last byte.
    pub transfer: Duration,
}

impl Times {
    /// Returns the time to the last byte or to the failure.
    pub fn whole(&self) -> Duration {
        self.first_byte + self.transfer
    }
}

/// Whether the answer came from a cache. foxy's own origin repeats the number of the request that
/// it answered. A number other than `number`, the number of this request, shows a hit. Without a
/// number in the answer, the proxy's `Cache-Status` or `X-Cache` decides.
pub fn hit(headers: &Headers, number: u64) -> Option<bool> {
    if let Some(answered) = headers.get_str(REQUEST_ID).and_then(|id| id.parse::<u64>().ok()) {
        return Some(answered != number);
    }
    if let Some(status) = headers.get_str("cache-status") {
        // The last entry of `Cache-Status` comes from the cache nearest to the client (RFC 9211
        // §2).
        let nearest = status.rsplit(',').next().unwrap_or(status);
        return Some(nearest.split(';').any(|part| part.trim() == "hit"));
    }
    headers.get_str("x-cache").map(|cache| cache.trim().to_ascii_uppercase().starts_with("HIT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_known_by_the_origins_number_or_by_what_the_proxy_says() {
        let check = |name: &str, value: &str, expected| {
            let headers: Headers = [(name, value.as_bytes())].into_iter().collect();
            assert_eq!(hit(&headers, 7), expected, "{name}: {value}");
        };
        check(REQUEST_ID, "7", Some(false));
        check(REQUEST_ID, "6", Some(true));
        check("Cache-Status", "far; hit, near; fwd=uri-miss; stored", Some(false));
        check("Cache-Status", "near; hit; ttl=5", Some(true));
        check("X-Cache", "HIT from wume1", Some(true));
        check("X-Cache", "MISS from wume1", Some(false));
        check("Age", "5", None);
    }
}
