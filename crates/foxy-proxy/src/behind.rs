//! A client that was too slow for its flight: it lost its place there, and goes on from what the cache keeps of the same
//! fetch, while that comes. What is not kept it gets from the origin, if that still has exactly the same response.

use crate::answer::{After, Cut, Rest, Short, Told};
use crate::body_parts::{self, PartsOf};
use crate::cached::Wanted;
use crate::counters::Counter;
use crate::flight::{FlightHead, Reader};
use crate::keeper::Keeper;
use crate::resume;
use crate::sender::{Framing, Sender};
use crate::stored::{Stored, StoredBody};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::Headers;
use std::sync::Arc;

/// What of a flight's body can be read back.
#[derive(Clone, Debug)]
pub(crate) enum Keeping {
    /// The first bytes of it, in parts of this fill; more is to come.
    Parts {
        /// The fill's random number.
        fill: u64,
        /// Bytes the store has confirmed.
        bytes: u64,
    },
    /// All of it.
    All(Arc<Stored>),
    /// It is not kept.
    Nothing,
}

impl Default for Keeping {
    fn default() -> Self {
        Self::Parts { fill: 0, bytes: 0 }
    }
}

impl Keeping {
    /// Notes what a keeper has so far; whether it is more.
    pub(crate) fn advance(&mut self, keeper: &Keeper) -> bool {
        let (fill, bytes) = keeper.confirmed_so_far();
        let more = matches!(self, Self::Parts { bytes: before, .. } if *before < bytes);
        if more {
            *self = Self::Parts { fill, bytes };
        }
        more
    }

    /// Notes that nothing more will be kept; whether that changes anything.
    pub(crate) fn end(&mut self) -> bool {
        let more_was_to_come = matches!(self, Self::Parts { .. });
        if more_was_to_come {
            *self = Self::Nothing;
        }
        more_was_to_come
    }
}

/// Sends the rest of a response whose head and first bytes were sent, framed as said.
pub(crate) async fn catch_up(
    worker: &Worker,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    (reader, flight): (&Reader, &FlightHead),
    (after, mut told, framing): (After, Told, Framing),
) -> Result<(After, Told), Cut> {
    if framing == Framing::Empty {
        return Ok((after, told));
    }
    loop {
        let at = told.body_bytes;
        if framing == Framing::Length(at) {
            return Ok((after, told));
        }
        let (body, last) = match reader.kept_beyond(at).await {
            Keeping::Parts { fill, bytes } => (Body::Parts { fill, bytes }, false),
            Keeping::All(stored) => (Body::of(&stored), true),
            Keeping::Nothing => break,
        };
        told.body_bytes = body.length();
        match send(worker, sender, flight, &body, (at, (after, told))).await {
            Ok(()) if last => {
                sender.end(&Headers::new()).await?;
                return Ok((after, told));
            }
            Ok(()) => {}
            Err(Short::Cut(cut)) => return Err(cut),
            Err(Short::Gone) => {
                told.body_bytes = at;
                break;
            }
            Err(Short::Rest(rest)) => {
                told.body_bytes = rest.at;
                break;
            }
        }
    }
    reader.leave();
    let result = from_origin(worker, sender, wanted, flight, (after, told, framing)).await;
    if matches!(result, Err(Cut::Source)) {
        worker.counters.add(Counter::CutResponses, 1);
        sender.break_off();
    }
    result
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
    (at, answered): (u64, (After, Told)),
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
            body_parts::send(worker, sender, of, Rest { at, end: *bytes, answered }).await?;
            sender.announced_is_sent().await?;
        }
    }
    Ok(())
}

/// Sends the rest from the origin, if it is of a whole representation whose length is known.
async fn from_origin(
    worker: &Worker,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    flight: &FlightHead,
    (after, mut told, framing): (After, Told, Framing),
) -> Result<(After, Told), Cut> {
    let Framing::Length(length) = framing else { return Err(Cut::Source) };
    if flight.head.status != 200 {
        return Err(Cut::Source);
    }
    let at = std::mem::replace(&mut told.body_bytes, length);
    let rest = Rest { at, end: length, answered: (after, told) };
    resume::rest(worker, sender, wanted, (&flight.head, length), rest).await
}
