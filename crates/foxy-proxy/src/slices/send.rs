//! Sends bytes of an object from the slices that are stored and from those that are fetched for it,
//! in order. What the client gets is of one representation, or is cut.

use crate::answer::body_parts::{self, PartsOf};
use crate::answer::ranged;
use crate::answer::stream;
use crate::answer::transaction::Transaction;
use crate::cache::storage::PART;
use crate::cache::stored::{Stored, StoredBody};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::fill::stale::Miss;
use crate::flight::Piece;
use crate::flight::{FlightOutcome, Reader};
use crate::request::access::MediaType;
use crate::request::cache_status::CacheStatus;
use crate::request::opening::{Framing, Opening};
use crate::request::sent::After;
use crate::request::sent::{Aborted, Sent, Short, UnsentRest};
use crate::slices::flight::{Ask, Fetched, Sliced, fetch};
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::Headers;
use foxy_rules::slice::slice_of;
use foxy_rules::{Permit, Span};
use std::sync::Arc;

/// Fetches of one answer that may break off before it is given up.
const BROKEN_FETCHES: u32 = 3;

/// What an answer begins with.
pub(crate) enum Start {
    /// Slices that are stored.
    Stored(HitSource, i64, Option<Permit>),
    /// A fetch that is on its way.
    Fetched(Fetched, ForwardReason),
    /// Nothing: an answer of which this is left.
    Begun(UnsentRest),
}

/// How far a fetch brought an answer.
enum FetchProgress {
    /// As far as was wanted of it.
    Done,
    /// It broke off.
    Broken,
    /// This reader was too slow for the others.
    LeftBehind,
}

/// Begins an answer with these bytes of an object, or all of it, which are left to be sent then.
fn begin(
    transaction: &mut Transaction<'_, '_>,
    set: &Stored,
    span: Option<Span>,
    (age, outcome): (u64, CacheStatus),
) -> UnsentRest {
    let Span { first, last } = span.unwrap_or(Span { first: 0, last: set.length - 1 });
    let length = last + 1 - first;
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
        opening = Opening {
            status: 206,
            reason: b"Partial Content",
            headers: &of_range,
            wire: None,
            ..opening
        };
    }
    let after = transaction.sender.begin(transaction.wanted.options, opening);
    let media_type = MediaType::of(set.head.headers.get("content-type"));
    let sent = Sent { outcome, status: opening.status, body_bytes: length, media_type };
    UnsentRest { at: first, end: last + 1, opened: false, answered: (after, sent) }
}

/// What came of sending slices.
pub(crate) enum SentSlices {
    /// The answer is complete.
    Answered(After, Sent),
    /// Nothing was sent, since the origin gave another response, or none; and whether another
    /// request's fetch brought it.
    Other(Reader, FlightOutcome, bool),
    /// Nothing was sent, since the origin's first answer was no use.
    Nothing,
}

/// Sends these bytes of an object, or all of it, from the store and from the origin as it comes.
pub(crate) async fn send(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    (set, start): (Arc<Stored>, Start),
    span: Option<Span>,
) -> Result<SentSlices, Aborted> {
    let worker = transaction.worker;
    let StoredBody::Parts { fill } = set.body else { return Ok(SentSlices::Nothing) };
    let body = PartsOf { object: set.object(), fill, length: set.length };
    let (mut rest, mut under_way) = match start {
        Start::Begun(rest) => (rest, None),
        Start::Stored(source, ttl, permit) => {
            worker.counters.add(source.counter(), 1);
            let how = (set.times.age(clock::steady()), CacheStatus::Hit { source, ttl, permit });
            (begin(transaction, &set, span, how), None)
        }
        Start::Fetched(fetched, reason) => {
            let how = (fetched.age, fetched.outcome(reason));
            (begin(transaction, &set, span, how), Some(fetched))
        }
    };
    let last = rest.end - 1;
    let (mut alone, mut broken) = (false, 0);
    while rest.at <= last {
        if let Some(fetched) = under_way.take() {
            rest.opened = true;
            match read(transaction.sender, &fetched, &mut rest.at, last).await? {
                FetchProgress::Done => alone = false,
                FetchProgress::LeftBehind if fetched.lasting => alone = true,
                FetchProgress::Broken if fetched.lasting && broken < BROKEN_FETCHES => {
                    (alone, broken) = (true, broken + 1)
                }
                FetchProgress::LeftBehind | FetchProgress::Broken => return cut(transaction).await,
            }
            continue;
        }
        match body_parts::send_stored(worker, transaction.sender, body, rest).await {
            Ok(()) => break,
            Err(Short::Aborted(aborted)) => return Err(aborted),
            Err(Short::Rest(left)) => rest = left,
            Err(Short::Gone) => {}
        }
        let asked = slice_of(rest.at, PART as u64);
        let ask =
            Ask { asked, set: Some(&set), validate: false, alone, list: miss.list_in_force() };
        match fetch(transaction, &miss.watch, ask).await {
            Sliced::Slice(fetched) => {
                if !rest.opened {
                    let how = (fetched.age, fetched.outcome(ForwardReason::Partial));
                    rest.answered = begin(transaction, &set, span, how).answered;
                }
                under_way = Some(fetched);
            }
            _ if rest.opened => return cut(transaction).await,
            Sliced::Other(reader, outcome, collapsed) => {
                return Ok(SentSlices::Other(reader, outcome, collapsed));
            }
            Sliced::Confirmed(_) | Sliced::Not => return Ok(SentSlices::Nothing),
        }
    }
    let (after, sent) = rest.answered;
    transaction.sender.end(&Headers::new()).await?;
    Ok(SentSlices::Answered(after, sent))
}

/// Cuts an answer. Its head is sent at least, so that the client knows what it misses.
async fn cut(transaction: &mut Transaction<'_, '_>) -> Result<SentSlices, Aborted> {
    transaction.worker.counters.add(Counter::CutResponses, 1);
    transaction.sender.flush().await?;
    transaction.sender.break_off();
    Err(Aborted::Source)
}

/// Sends what a fetch brings of the bytes from `at` to `last`.
async fn read(
    sender: &mut Sender<'_>,
    fetched: &Fetched,
    at: &mut u64,
    last: u64,
) -> Result<FetchProgress, Aborted> {
    let mut passed = fetched.asked.first;
    while *at <= last.min(fetched.asked.last) {
        let data = match stream::next_or_flush(sender, fetched.reader.next()).await? {
            Piece::Data(data) => data,
            Piece::LeftBehind => return Ok(FetchProgress::LeftBehind),
            // The object's last slice ends before its place does.
            Piece::End(_) if *at >= fetched.set.length => return Ok(FetchProgress::Done),
            Piece::End(_) | Piece::Broken => return Ok(FetchProgress::Broken),
        };
        let wanted = wanted_of(&data, passed, *at, last);
        passed += data.len() as u64;
        if !wanted.is_empty() {
            *at += wanted.len() as u64;
            sender.body(wanted).await?;
        }
    }
    Ok(FetchProgress::Done)
}

/// What of `data`, whose first byte is at `passed`, is wanted from `at` to `last`.
fn wanted_of(data: &Bytes, passed: u64, at: u64, last: u64) -> Bytes {
    let place = |byte: u64| {
        usize::try_from(byte.saturating_sub(passed)).map_or(data.len(), |at| at.min(data.len()))
    };
    let (from, to) = (place(at), place(last.saturating_add(1)));
    data.slice(from..to.max(from))
}
