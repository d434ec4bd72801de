//! A client that was too slow for its flight lost its place there, and goes on from what the cache
//! keeps of the same fetch, while that comes. What is not kept it gets from the origin, if that
//! still has exactly the same response. A client that came late reads what has gone by in the same
//! way, and then takes a place in the flight.

use crate::answer::body_parts::{self, PartsOf};
use crate::answer::resume;
use crate::answer::stream::{self, Begun, Source, Streamed};
use crate::answer::transaction::Transaction;
use crate::cache::storage::Storage;
use crate::cache::stored::{Stored, StoredBody};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::flight::keeping::Keeping;
use crate::flight::{FlightHead, Reader};
use crate::request::cache_status::CacheStatus;
use crate::request::opening::Framing;
use crate::request::sent::{Aborted, After, Sent, Short, UnsentRest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::Headers;
use tokio::time::timeout;

/// Sends the rest of a response whose head and first bytes were sent, framed as said.
pub(crate) async fn catch_up(
    transaction: &mut Transaction<'_, '_>,
    (reader, flight): (&Reader, &FlightHead),
    begun: Begun,
) -> Result<(After, Sent), Aborted> {
    if begun.2 == Framing::Empty {
        return Ok((begun.0, begun.1));
    }
    match as_it_is_kept(transaction, (reader, flight), begun).await? {
        CaughtUp::End(after, sent) => Ok((after, sent)),
        CaughtUp::Gone(begun) | CaughtUp::Short(begun) => {
            reader.leave();
            from_origin(transaction, flight, begun).await
        }
    }
}

/// Sends all of a response to a client that came late. `None` when its beginning cannot be read
/// back, or not as soon as clients may expect of the store: it has left the flight then, and
/// nothing was sent.
pub(crate) async fn from_beginning(
    transaction: &mut Transaction<'_, '_>,
    (reader, flight): (&Reader, &FlightHead),
    outcome: CacheStatus,
) -> Result<Option<(After, Sent)>, Aborted> {
    let patience =
        transaction.worker.shared.cache.storage().map(Storage::patience).unwrap_or_default();
    if !matches!(
        timeout(patience, reader.kept_beyond(0)).await,
        Ok(Keeping::Parts { .. } | Keeping::All { .. })
    ) {
        reader.leave();
        return Ok(None);
    }
    let how = (Some(flight.times.age(clock::steady())), outcome);
    let begun = stream::begin(
        transaction.sender,
        transaction.wanted.options,
        flight.lines(),
        flight.length,
        how,
    );
    match as_it_is_kept(transaction, (reader, flight), begun).await? {
        CaughtUp::End(after, sent) => Ok(Some((after, sent))),
        CaughtUp::Gone((_, sent, _)) if sent.body_bytes == 0 => {
            reader.leave();
            Ok(None)
        }
        CaughtUp::Gone(begun) | CaughtUp::Short(begun) => {
            reader.leave();
            from_origin(transaction, flight, begun).await.map(Some)
        }
    }
}

/// How far a client got by what is kept.
enum CaughtUp {
    /// It has all of it.
    End(After, Sent),
    /// What follows is not kept, or gone. Nothing of it was sent, nor the head if that was all
    /// there was to send before.
    Gone(Begun),
    /// The rest is gone.
    Short(Begun),
}

/// Sends a body from where it is on as it is kept, and as it comes once a late client has caught
/// up.
async fn as_it_is_kept(
    transaction: &mut Transaction<'_, '_>,
    (reader, flight): (&Reader, &FlightHead),
    (after, mut sent, framing): Begun,
) -> Result<CaughtUp, Aborted> {
    let worker = transaction.worker;
    loop {
        let at = sent.body_bytes;
        if framing == Framing::Length(at) {
            return Ok(CaughtUp::End(after, sent));
        }
        if reader.catches_up(at) {
            let begun = (after, sent, framing);
            match stream::carry(
                worker,
                transaction.sender,
                transaction.wanted.options,
                begun,
                Source::Flight(reader),
            )
            .await?
            {
                Streamed::Whole(after, sent) => return Ok(CaughtUp::End(after, sent)),
                Streamed::Part(begun) => sent = begun.1,
            }
            continue;
        }
        let (body, last) = match reader.kept_beyond(at).await {
            Keeping::Parts { fill, bytes } => (Body::Parts { fill, bytes }, false),
            Keeping::All { stored, .. } => (Body::of(&stored), true),
            Keeping::Nothing => return Ok(CaughtUp::Gone((after, sent, framing))),
        };
        sent.body_bytes = body.length();
        match send(worker, transaction.sender, flight, &body, (at, (after, sent))).await {
            Ok(()) if last => {
                transaction.sender.end(&Headers::new()).await?;
                return Ok(CaughtUp::End(after, sent));
            }
            Ok(()) => {}
            Err(Short::Aborted(aborted)) => return Err(aborted),
            Err(Short::Gone) => {
                sent.body_bytes = at;
                return Ok(CaughtUp::Gone((after, sent, framing)));
            }
            Err(Short::Rest(rest)) => {
                sent.body_bytes = rest.at;
                return Ok(CaughtUp::Short((after, sent, framing)));
            }
        }
    }
}

/// What can be sent at once.
enum Body {
    Whole(Bytes),
    Parts { fill: u64, bytes: u64 },
}

impl Body {
    fn of(stored: &Stored) -> Self {
        match &stored.body {
            StoredBody::Whole(body) => Self::Whole(body.clone()),
            StoredBody::Parts { fill } => Self::Parts { fill: *fill, bytes: stored.length },
        }
    }

    fn length(&self) -> u64 {
        match self {
            Self::Whole(body) => body.len() as u64,
            Self::Parts { bytes, .. } => *bytes,
        }
    }
}

/// Sends a body from `at` on. Where answers are chunked it makes one chunk of it.
async fn send(
    worker: &Worker,
    sender: &mut Sender<'_>,
    flight: &FlightHead,
    body: &Body,
    (at, answered): (u64, (After, Sent)),
) -> Result<(), Short> {
    let more = usize::try_from(body.length() - at).unwrap_or(usize::MAX);
    if more == 0 {
        return Ok(());
    }
    match body {
        Body::Whole(body) => sender.body(body.slice(body.len() - more..)).await?,
        Body::Parts { fill, bytes } => {
            let of = PartsOf { object: flight.key.hash, fill: *fill, length: *bytes };
            sender.announce(more);
            let rest = UnsentRest { at, end: *bytes, opened: at > 0, answered };
            body_parts::send(worker, sender, of, rest).await?;
            sender.announced_is_sent().await?;
        }
    }
    Ok(())
}

/// Sends the rest from the origin, if it is of a whole representation whose length is known.
/// Otherwise the client sees that it did not get it.
async fn from_origin(
    transaction: &mut Transaction<'_, '_>,
    flight: &FlightHead,
    (after, mut sent, framing): Begun,
) -> Result<(After, Sent), Aborted> {
    let result = match framing {
        Framing::Length(length) if flight.head.status == 200 => {
            let at = std::mem::replace(&mut sent.body_bytes, length);
            let rest = UnsentRest { at, end: length, opened: at > 0, answered: (after, sent) };
            resume::rest(transaction, (&*flight.head, length), rest).await
        }
        _ => Err(Aborted::Source),
    };
    if matches!(result, Err(Aborted::Source)) {
        transaction.worker.counters.add(Counter::CutResponses, 1);
        transaction.sender.break_off();
    }
    result
}
