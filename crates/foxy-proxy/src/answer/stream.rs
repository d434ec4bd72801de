//! Responses sent on as they come, from a flight or from an exchange of one request alone.

use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::fill::tee::Tee;
use crate::flight::{Piece, Reader};
use crate::request::access::MediaType;
use crate::request::answer_options::AnswerOptions;
use crate::request::cache_status::CacheStatus;
use crate::request::opening::{Framing, Opening};
use crate::request::sent::WriteEnd;
use crate::request::sent::{Aborted, After, Sent};
use crate::upstream::{BodyEvent, UpstreamExchange};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead, Version};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Where a body comes from that is not stored yet.
pub(crate) enum Source<'a> {
    /// A flight.
    Flight(&'a Reader),
    /// An exchange of this request alone, and what is kept of it for later.
    Exchange(&'a mut UpstreamExchange, Option<&'a mut Tee>),
}

impl Source<'_> {
    async fn next(&mut self, worker: &Worker) -> Piece {
        match self {
            Self::Flight(reader) => reader.next().await,
            Self::Exchange(exchange, tee) => {
                let mut trailers = Headers::new();
                loop {
                    match exchange.next().await {
                        Ok(BodyEvent::Data(data)) => {
                            worker.counters.add(Counter::BytesFromOrigins, data.len() as u64);
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

/// The next piece. What waits to go with it is sent when it is not here yet.
pub(crate) async fn next_or_flush(
    sender: &mut Sender<'_>,
    next: impl Future<Output = Piece>,
) -> Result<Piece, WriteEnd> {
    let mut next = pin!(next);
    match poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
        Poll::Ready(piece) => Ok(piece),
        Poll::Pending => {
            sender.flush().await?;
            Ok(next.await)
        }
    }
}

/// How far a response was sent.
pub(crate) enum Streamed {
    /// All of it.
    Whole(After, Sent),
    /// Its head and so much of its body as is told, framed so; then its reader was left behind.
    Part(Begun),
}

/// Sends a response as it comes. The head goes out with the first bytes of the body, or alone when
/// those are not here.
pub(crate) async fn streamed(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    head: (&ResponseHead, Option<&Bytes>),
    length: Option<u64>,
    (age, outcome): (Option<u64>, CacheStatus),
    source: Source<'_>,
) -> Result<Streamed, Aborted> {
    let begun = begin(sender, options, head, length, (age, outcome));
    carry(worker, sender, options, begun, source).await
}

/// What has been sent of a response, and how its body is framed.
pub(crate) type Begun = (After, Sent, Framing);

/// Begins a response with a head, and its lines as HTTP/1.1 writes them where they are kept so. The
/// head leaves with what is sent next.
pub(crate) fn begin(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    (head, wire): (&ResponseHead, Option<&Bytes>),
    length: Option<u64>,
    (age, outcome): (Option<u64>, CacheStatus),
) -> Begun {
    let framing = match (head.status, length, options.version) {
        _ if options.head_only => Framing::Empty,
        (204 | 304, ..) => Framing::Empty,
        (_, Some(length), _) => Framing::Length(length),
        (_, None, Version::Http11 | Version::Http2) => Framing::Chunked,
        (_, None, Version::Http10) => Framing::UntilClose,
    };
    let after = sender.begin(
        options,
        Opening {
            status: head.status,
            reason: &head.reason,
            headers: &head.headers,
            wire,
            age,
            outcome,
            framing,
        },
    );
    let media_type = MediaType::of(head.headers.get("content-type"));
    (after, Sent { outcome, status: head.status, body_bytes: 0, media_type }, framing)
}

/// Sends the body, or the rest of it, as it comes.
pub(crate) async fn carry(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    (after, mut sent, framing): Begun,
    mut source: Source<'_>,
) -> Result<Streamed, Aborted> {
    loop {
        match next_or_flush(sender, source.next(worker)).await? {
            Piece::Data(_) if framing == Framing::Empty => {}
            Piece::Data(data) => {
                sent.body_bytes += data.len() as u64;
                sender.body(data).await?;
            }
            Piece::End(trailers) => {
                let trailers = if options.trailers { trailers } else { Headers::new() };
                sender.end(&trailers).await?;
                return Ok(Streamed::Whole(after, sent));
            }
            Piece::LeftBehind => {
                sender.flush().await?;
                return Ok(Streamed::Part((after, sent, framing)));
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
