//! Finishes answers whose next bytes are no longer in the memory of their flight. A *flight* is a
//! fetch that several requests share. A client may be too slow for its flight, or may join it too
//! late. Such a client reads the body from the cache, while the body is still being stored. Bytes
//! that are not stored come from the origin. If the origin has another response now, the proxy
//! closes the client's connection.

use crate::answer::stored_body::BodyInParts;
use crate::answer::stream::{self, Begun, Source, Streamed, StreamedHead};
use crate::answer::transaction::Transaction;
use crate::cache::{PartKeys, Storage, StoredBody};
use crate::client::Sender;
use crate::core::{Counter, View};
use crate::fill::outgoing;
use crate::flight::{FlightHead, Keeping, Reader};
use crate::request::{Aborted, Answered, CacheStatus, Framing, SendFailure, UnsentRest};
use crate::upstream::{BodyEvent, HeadEvent, UpstreamExchange};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::Span;
use foxy_rules::partial::strong_validator;
use tokio::time::timeout;

pub(crate) async fn catch_up(
    transaction: &mut Transaction<'_, '_>,
    reader: &Reader,
    flight: &FlightHead,
    begun: Begun,
) -> Result<Answered, Aborted> {
    if begun.framing == Framing::Empty {
        return Ok(begun.answered);
    }
    match read_back(transaction, reader, flight, begun).await? {
        CaughtUp::Whole(answered) => Ok(answered),
        CaughtUp::Gone(begun) | CaughtUp::RestGone(begun) => {
            reader.leave();
            from_origin(transaction, flight, begun).await
        }
    }
}

/// Sends a whole response to a client that joined a flight (shared fetch) late. Returns `None` if
/// the cache does not have the first bytes within the store's timeout. Then nothing was sent, and
/// the client has left the flight.
pub(crate) async fn from_beginning(
    transaction: &mut Transaction<'_, '_>,
    reader: &Reader,
    flight: &FlightHead,
    outcome: CacheStatus,
) -> Result<Option<Answered>, Aborted> {
    let storage = transaction.worker.shared.cache.storage();
    let patience = storage.map(Storage::patience).unwrap_or_default();
    if !matches!(
        timeout(patience, reader.kept_beyond(0)).await,
        Ok(Keeping::Parts { .. } | Keeping::All { .. })
    ) {
        reader.leave();
        return Ok(None);
    }
    let head = StreamedHead::of_flight(flight, outcome);
    let begun = head.begin(transaction.worker, transaction.sender, transaction.wanted.options);
    match read_back(transaction, reader, flight, begun).await? {
        CaughtUp::Whole(answered) => Ok(Some(answered)),
        CaughtUp::Gone(begun) if begun.answered.response.body_bytes == 0 => {
            reader.leave();
            Ok(None)
        }
        CaughtUp::Gone(begun) | CaughtUp::RestGone(begun) => {
            reader.leave();
            from_origin(transaction, flight, begun).await.map(Some)
        }
    }
}

enum CaughtUp {
    Whole(Answered),
    /// The cache does not have the next bytes of the body, so they were not sent. If the head was
    /// still waiting for bytes of the body, the head was not sent either.
    Gone(Begun),
    RestGone(Begun),
}

/// Sends the stored bytes of a body. As soon as the flight has the next byte in memory, reads from
/// the flight again.
async fn read_back(
    transaction: &mut Transaction<'_, '_>,
    reader: &Reader,
    flight: &FlightHead,
    mut begun: Begun,
) -> Result<CaughtUp, Aborted> {
    let (worker, options) = (transaction.worker, transaction.wanted.options);
    loop {
        let at = begun.answered.response.body_bytes;
        if begun.framing == Framing::Length(at) {
            return Ok(CaughtUp::Whole(begun.answered));
        }
        if reader.catches_up(at) {
            let source = Source::Flight(reader);
            match stream::carry(worker, transaction.sender, options, begun, source).await? {
                Streamed::Whole(answered) => return Ok(CaughtUp::Whole(answered)),
                Streamed::LeftBehind(left) => begun = left,
            }
            continue;
        }
        let (kept, is_last) = match reader.kept_beyond(at).await {
            Keeping::Parts { fill, bytes } => (KeptBytes::Parts { fill, bytes }, false),
            Keeping::All { stored, .. } => match &stored.body {
                StoredBody::Whole(body) => (KeptBytes::Whole(body.clone()), true),
                StoredBody::Parts { fill } => {
                    (KeptBytes::Parts { fill: *fill, bytes: stored.length }, true)
                }
            },
            Keeping::Nothing => return Ok(CaughtUp::Gone(begun)),
        };
        begun.answered.response.body_bytes = kept.length();
        let answered = begun.answered;
        let rest = UnsentRest { at, end: kept.length(), opened: at > 0, answered };
        match kept.send(worker, transaction.sender, flight, rest).await {
            Ok(()) if is_last => {
                transaction.sender.end(&Headers::new()).await?;
                return Ok(CaughtUp::Whole(begun.answered));
            }
            Ok(()) => {}
            Err(SendFailure::Aborted(aborted)) => return Err(aborted),
            Err(SendFailure::BodyGone) => {
                begun.answered.response.body_bytes = at;
                return Ok(CaughtUp::Gone(begun));
            }
            Err(SendFailure::RestGone(rest)) => {
                begun.answered.response.body_bytes = rest.at;
                return Ok(CaughtUp::RestGone(begun));
            }
        }
    }
}

enum KeptBytes {
    Whole(Bytes),
    Parts { fill: u64, bytes: u64 },
}

impl KeptBytes {
    fn length(&self) -> u64 {
        match self {
            Self::Whole(body) => body.len() as u64,
            Self::Parts { bytes, .. } => *bytes,
        }
    }

    /// Sends the unsent bytes `rest` from the cache. If the answer is chunked, all these bytes form
    /// one chunk.
    async fn send(
        &self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        flight: &FlightHead,
        rest: UnsentRest,
    ) -> Result<(), SendFailure> {
        let more = usize::try_from(rest.end - rest.at).unwrap_or(usize::MAX);
        if more == 0 {
            return Ok(());
        }
        match self {
            Self::Whole(body) => sender.body(body.slice(body.len() - more..)).await?,
            Self::Parts { fill, bytes } => {
                let keys = PartKeys { object: flight.key.hash, fill: *fill, length: *bytes };
                let body = BodyInParts(keys);
                sender.announce(more);
                body.send(worker, sender, rest).await?;
                sender.announced_is_sent().await?;
            }
        }
        Ok(())
    }
}

/// Fetches the unsent bytes from the origin and sends them, if the response is a 200 of known
/// length with a strong validator. Otherwise cuts the answer off, so that the client notices that
/// it is incomplete.
async fn from_origin(
    transaction: &mut Transaction<'_, '_>,
    flight: &FlightHead,
    begun: Begun,
) -> Result<Answered, Aborted> {
    let mut answered = begun.answered;
    let result = match begun.framing {
        Framing::Length(length) if flight.head.status == 200 => {
            let at = std::mem::replace(&mut answered.response.body_bytes, length);
            let rest = UnsentRest { at, end: length, opened: at > 0, answered };
            resume(transaction, &flight.head, length, rest).await
        }
        _ => Err(Aborted::Source),
    };
    if matches!(result, Err(Aborted::Source)) {
        transaction.worker.counters.add(Counter::CutResponses, 1);
        transaction.sender.break_off();
    }
    result
}

/// Requests the unsent bytes `rest` of a response from the origin, and sends them. The body has
/// `length` bytes. Fails if `head` has no strong validator, or if the origin has another response
/// now.
pub(crate) async fn resume(
    transaction: &mut Transaction<'_, '_>,
    head: &ResponseHead,
    length: u64,
    rest: UnsentRest,
) -> Result<Answered, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let fields = View(&head.headers);
    let validator = strong_validator(&fields).ok_or(Aborted::Source)?;
    worker.counters.add(Counter::Forwarded, 1);
    let span = Span { first: rest.at, last: rest.end - 1 };
    let request = outgoing::for_range(worker, wanted.head, wanted.origin.clone(), span, Some(head));
    let mut exchange = worker.upstream.exchange(request).asked_by(wanted.client);
    let answer = loop {
        match exchange.head().await {
            Ok(HeadEvent::Final(head, _)) => break head,
            Ok(HeadEvent::Continue | HeadEvent::Interim(_)) => {}
            Err(_) => return Err(Aborted::Source),
        }
    };
    worker.count_response(answer.version);
    let skipped = bytes_before(&rest, length, validator, &answer).ok_or(Aborted::Source)?;
    carry_range(worker, transaction.sender, &mut exchange, skipped, rest.end - rest.at).await?;
    worker.counters.add(Counter::Resumed, 1);
    Ok(rest.answered)
}

/// Returns how many bytes of the origin's answer precede the unsent bytes `rest`. Returns `None` if
/// the origin's answer belongs to another response.
fn bytes_before(
    rest: &UnsentRest,
    length: u64,
    validator: &[u8],
    head: &ResponseHead,
) -> Option<u64> {
    let says = |name: &str, value: String| head.headers.get(name) == Some(value.as_bytes());
    let range = || format!("bytes {}-{}/{}", rest.at, rest.end - 1, length);
    match head.status {
        _ if strong_validator(&View(&head.headers)) != Some(validator) => None,
        206 if says("content-range", range()) => Some(0),
        200 if !head.headers.contains("content-length") => Some(rest.at),
        200 if says("content-length", length.to_string()) => Some(rest.at),
        _ => None,
    }
}

/// Skips the first `skipped` bytes of the origin's body, and sends the next `wanted` bytes.
async fn carry_range(
    worker: &Worker,
    sender: &mut Sender<'_>,
    exchange: &mut UpstreamExchange,
    mut skipped: u64,
    mut wanted: u64,
) -> Result<(), Aborted> {
    while wanted > 0 {
        let data = match exchange.next().await {
            Ok(BodyEvent::Data(data)) => data,
            Ok(BodyEvent::Trailers(_) | BodyEvent::End) | Err(_) => return Err(Aborted::Source),
        };
        worker.counters.add_cacheable_fetched(data.len() as u64);
        let start = skipped.min(data.len() as u64);
        skipped -= start;
        let end = (start + wanted).min(data.len() as u64);
        wanted -= end - start;
        let position = |at: u64| usize::try_from(at).unwrap_or(data.len());
        sender.body(data.slice(position(start)..position(end))).await?;
    }
    Ok(sender.end(&Headers::new()).await?)
}
