//! Sends a response to a client while the response arrives. The source is a flight (a fetch that
//! several requests share), or an exchange with the origin for this request alone. A *tee* can
//! store the response of an exchange at the same time.

use crate::client::Sender;
use crate::core::Counter;
use crate::fill::tee::Tee;
use crate::flight::{FlightHead, Piece, Reader};
use crate::request::{
    Aborted, AnswerOptions, Answered, CacheStatus, Framing, MediaType, Opening, SentResponse,
    WriteEnd,
};
use crate::upstream::{BodyEvent, UpstreamExchange};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{Headers, ResponseHead, Version};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::task::coop::consume_budget;

pub(crate) enum Source<'a> {
    Flight(&'a Reader),
    /// An exchange with the origin for this request alone, and the tee that stores its response at
    /// the same time.
    Exchange(&'a mut UpstreamExchange, Option<&'a mut Tee>),
}

impl Source<'_> {
    async fn next(&mut self, worker: &Worker, outcome: CacheStatus) -> Piece {
        match self {
            Self::Flight(reader) => {
                // Many tiny pieces can be ready. Other requests get their turn between them.
                consume_budget().await;
                reader.next().await
            }
            Self::Exchange(exchange, tee) => {
                let mut trailers = Headers::new();
                loop {
                    match exchange.next().await {
                        Ok(BodyEvent::Data(data)) => {
                            let (counters, bytes) = (&worker.counters, data.len() as u64);
                            match exchange.node() {
                                Some(_) => counters.add(Counter::BytesFromNodes, bytes),
                                None if outcome.request_outcome().has_cacheable_body() => {
                                    counters.add_cacheable_fetched(bytes);
                                }
                                None => counters.add(Counter::BytesFromOrigins, bytes),
                            }
                            if let Some(tee) = tee {
                                tee.take(worker, &data).await;
                            }
                            return Piece::Data(data);
                        }
                        Ok(BodyEvent::Trailers(found)) => trailers = found,
                        Ok(BodyEvent::End) => {
                            if let Some(tee) = tee {
                                tee.complete(worker).await;
                            }
                            return Piece::End(trailers);
                        }
                        Err(_) => return Piece::Broken,
                    }
                }
            }
        }
    }
}

/// Waits for the next piece of the body. If the piece has not arrived yet, first sends the bytes
/// that the sender has buffered.
pub(crate) async fn next_or_flush(
    sender: &mut Sender<'_>,
    mut next: Pin<&mut impl Future<Output = Piece>>,
) -> Result<Piece, WriteEnd> {
    match poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
        Poll::Ready(piece) => Ok(piece),
        Poll::Pending => {
            sender.flush().await?;
            Ok(next.await)
        }
    }
}

pub(crate) struct StreamedHead<'a> {
    pub(crate) head: &'a ResponseHead,
    /// The head as HTTP/1.1 text, if the cache has this text.
    pub(crate) wire: Option<&'a Bytes>,
    pub(crate) length: Option<u64>,
    pub(crate) age: Option<u64>,
    pub(crate) outcome: CacheStatus,
}

impl<'a> StreamedHead<'a> {
    pub(crate) fn of_flight(flight: &'a FlightHead, outcome: CacheStatus) -> Self {
        Self {
            head: &flight.head,
            wire: flight.stored.as_ref().map(|stored| &stored.wire),
            length: flight.length,
            age: Some(flight.times.age(clock::steady())),
            outcome,
        }
    }

    /// Begins the answer. The sender buffers the head until the first bytes of the body follow.
    pub(crate) fn begin(
        self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        options: AnswerOptions,
    ) -> Begun {
        let Self { head, wire, length, age, outcome } = self;
        let framing = match (head.status, length, options.version) {
            _ if options.head_only => Framing::Empty,
            (204 | 304, ..) => Framing::Empty,
            (_, Some(length), _) => Framing::Length(length),
            (_, None, Version::Http11 | Version::Http2) => Framing::Chunked,
            (_, None, Version::Http10) => Framing::UntilClose,
        };
        let (status, reason, headers) = (head.status, &head.reason, &head.headers);
        let varies = worker.varies_by_coding(status, headers, length);
        let opening = Opening { status, reason, headers, wire, age, varies, outcome, framing };
        let connection = sender.begin(options, opening);
        let media_type = MediaType::of(head.headers.get("content-type"));
        let response = SentResponse { outcome, status, body_bytes: 0, media_type };
        Begun { answered: Answered { connection, response }, framing }
    }
}

/// An answer that has begun. The field `answered.response.body_bytes` counts the body bytes sent so
/// far.
pub(crate) struct Begun {
    pub(crate) answered: Answered,
    pub(crate) framing: Framing,
}

pub(crate) enum Streamed {
    Whole(Answered),
    LeftBehind(Begun),
}

/// Sends the rest of the body while it arrives from the source.
pub(crate) async fn carry(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    mut begun: Begun,
    mut source: Source<'_>,
) -> Result<Streamed, Aborted> {
    loop {
        let next = pin!(source.next(worker, begun.answered.response.outcome));
        match next_or_flush(sender, next).await? {
            Piece::Data(_) if begun.framing == Framing::Empty => {}
            Piece::Data(data) => {
                begun.answered.response.body_bytes += data.len() as u64;
                sender.body(data).await?;
            }
            Piece::End(trailers) => {
                let trailers = if options.trailers { trailers } else { Headers::new() };
                sender.end(&trailers).await?;
                return Ok(Streamed::Whole(begun.answered));
            }
            Piece::LeftBehind => {
                sender.flush().await?;
                return Ok(Streamed::LeftBehind(begun));
            }
            Piece::Broken => {
                worker.counters.add(Counter::CutResponses, 1);
                sender.flush().await?;
                sender.break_off();
                return Err(Aborted::Source);
            }
        }
    }
}
