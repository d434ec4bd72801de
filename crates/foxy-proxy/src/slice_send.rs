//! Sends bytes of an object from the slices that are stored and from those that are fetched for it, in order. What the client
//! gets is of one representation, or is cut.

use crate::access::MediaType;
use crate::answer::{After, Cut, Rest, Short, Told, ranged};
use crate::body_parts::{self, PartsOf};
use crate::cache_status::{CacheStatus, HitSource};
use crate::cached::{Got, Wanted};
use crate::counters::Counter;
use crate::flight::Piece;
use crate::hit::counter;
use crate::reason::ForwardReason;
use crate::sender::{Framing, Opening, Sender};
use crate::settle::settle;
use crate::slice_flight::{Ask, Fetched, Sliced, fetch};
use crate::stale::Miss;
use crate::storage::PART;
use crate::stored::{Stored, StoredBody};
use crate::stream;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::Headers;
use foxy_rules::slice::slice_of;
use foxy_rules::{Permit, Span};
use std::rc::Rc;
use std::sync::Arc;

/// Fetches of one answer that may break off before it is given up.
const BROKEN_FETCHES: u32 = 3;

/// What an answer begins with.
pub(crate) enum Start {
    /// Slices that are stored.
    Stored(HitSource, i64, Option<Permit>),
    /// A fetch that is on its way.
    Fetched(Fetched, ForwardReason),
}

/// How far a fetch brought an answer.
enum Read {
    /// As far as was wanted of it.
    Done,
    /// It broke off.
    Broken,
    /// This reader was too slow for the others.
    LeftBehind,
}

/// Begins an answer with these bytes of an object, or all of it.
fn begin(
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    set: &Stored,
    span: Option<Span>,
    (age, outcome): (u64, CacheStatus),
) -> (After, Told) {
    let length = span.map_or(set.length, Span::length);
    let mut opening = Opening {
        status: 200,
        reason: &set.head.reason,
        headers: &set.head.headers,
        wire: Some(&set.wire),
        age: Some(age),
        outcome,
        framing: Framing::Length(length),
    };
    let of_range;
    if let Some(Span { first, last }) = span {
        of_range = ranged(&set.head.headers, &format!("bytes {first}-{last}/{}", set.length));
        opening =
            Opening { status: 206, reason: b"Partial Content", headers: &of_range, wire: None, ..opening };
    }
    let after = sender.begin(wanted.asked, opening);
    let media_type = MediaType::of(set.head.headers.get("content-type"));
    (after, Told { outcome, status: opening.status, body_bytes: length, media_type })
}

/// Sends these bytes of an object, or all of it, from the store and from the origin as it comes. `None` when the origin's
/// first answer was no use; nothing was sent then.
pub(crate) async fn send(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    miss: &Miss,
    (set, start): (Arc<Stored>, Start),
    span: Option<Span>,
) -> Result<Option<Got>, Cut> {
    let StoredBody::Parts { fill } = set.body else { return Ok(None) };
    let body = PartsOf { object: set.object(), fill, length: set.length };
    let Span { first: mut at, last } = span.unwrap_or(Span { first: 0, last: set.length - 1 });
    let (outcome, mut under_way) = match start {
        Start::Stored(source, ttl, permit) => {
            worker.counters.add(counter(source), 1);
            (CacheStatus::Hit { source, ttl, permit }, None)
        }
        Start::Fetched(fetched, reason) => (fetched.outcome(reason), Some(fetched)),
    };
    let age = |fetched: &Option<Fetched>| fetched.as_ref().map_or(set.times.age(clock::wall()), |it| it.age);
    let (mut after, mut told) = begin(sender, wanted, &set, span, (age(&under_way), outcome));
    let (mut opened, mut alone, mut broken) = (false, false, 0);
    while at <= last {
        if let Some(fetched) = under_way.take() {
            opened = true;
            match read(sender, &fetched, &mut at, last).await? {
                Read::Done => alone = false,
                Read::LeftBehind if fetched.lasting => alone = true,
                Read::Broken if fetched.lasting && broken < BROKEN_FETCHES => {
                    (alone, broken) = (true, broken + 1)
                }
                Read::LeftBehind | Read::Broken => return cut(worker, sender).await,
            }
            continue;
        }
        match body_parts::send_stored(
            worker,
            sender,
            body,
            Rest { at, end: last + 1, opened, answered: (after, told) },
        )
        .await
        {
            Ok(()) => break,
            Err(Short::Cut(cut)) => return Err(cut),
            Err(Short::Rest(rest)) => (at, opened) = (rest.at, true),
            Err(Short::Gone) => {}
        }
        let ask = Ask { asked: slice_of(at, PART as u64), set: Some(&set), validate: false, alone };
        match fetch(worker, wanted, miss.epoch, ask).await {
            Sliced::Slice(fetched) => {
                if !opened {
                    let how = (fetched.age, fetched.outcome(ForwardReason::Partial));
                    (after, told) = begin(sender, wanted, &set, span, how);
                }
                under_way = Some(fetched);
            }
            _ if opened => return cut(worker, sender).await,
            Sliced::Other(reader, outcome, collapsed) => {
                return settle(worker, sender, wanted, miss, &reader, outcome, collapsed).await;
            }
            Sliced::Confirmed(_) | Sliced::Not => return Ok(None),
        }
    }
    sender.end(&Headers::new()).await?;
    Ok(Some(Got::Answered(after, told)))
}

/// Cuts an answer. Its head is sent at least, so that the client knows what it misses.
async fn cut(worker: &Worker, sender: &mut Sender<'_>) -> Result<Option<Got>, Cut> {
    worker.counters.add(Counter::CutResponses, 1);
    sender.flush().await?;
    sender.break_off();
    Err(Cut::Source)
}

/// Sends what a fetch brings of the bytes from `at` to `last`.
async fn read(sender: &mut Sender<'_>, fetched: &Fetched, at: &mut u64, last: u64) -> Result<Read, Cut> {
    let mut passed = fetched.asked.first;
    while *at <= last.min(fetched.asked.last) {
        let data = match stream::next_or_flush(sender, fetched.reader.next()).await? {
            Piece::Data(data) => data,
            Piece::LeftBehind => return Ok(Read::LeftBehind),
            // The object's last slice ends before its place does.
            Piece::End(_) if *at >= fetched.set.length => return Ok(Read::Done),
            Piece::End(_) | Piece::Broken => return Ok(Read::Broken),
        };
        let wanted = wanted_of(&data, passed, *at, last);
        passed += data.len() as u64;
        if !wanted.is_empty() {
            *at += wanted.len() as u64;
            sender.body(wanted).await?;
        }
    }
    Ok(Read::Done)
}

/// What of `data`, whose first byte is at `passed`, is wanted from `at` to `last`.
fn wanted_of(data: &Bytes, passed: u64, at: u64, last: u64) -> Bytes {
    let place =
        |byte: u64| usize::try_from(byte.saturating_sub(passed)).map_or(data.len(), |at| at.min(data.len()));
    let (from, to) = (place(at), place(last.saturating_add(1)));
    data.slice(from..to.max(from))
}
