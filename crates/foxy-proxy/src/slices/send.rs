//! Sends bytes of an object in order, from stored slices and from slices that are fetched for this
//! answer. A *slice* is 1 MiB of the object, aligned to 1 MiB. All bytes of an answer must belong
//! to the same representation. Otherwise the proxy cuts the answer off.

use crate::answer::stored_body::BodyInParts;
use crate::answer::stream;
use crate::answer::transaction::Transaction;
use crate::cache::{CacheKey, PART, Stored, StoredBody, Watch, part_key};
use crate::client::Sender;
use crate::core::{Counter, ForwardReason, View};
use crate::fill::stale::Miss;
use crate::flight::Piece;
use crate::request::{Aborted, Answered, Hit, SendFailure, UnsentRest};
use crate::slices::flight::{FetchResult, FetchedSlice, OtherAnswer, SliceFetch, fetch};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::Headers;
use foxy_rules::Span;
use foxy_rules::partial::{slice_of, strong_validator};
use std::pin::pin;
use std::sync::Arc;
use tokio::time::timeout;

/// If the fetches of more than this number of slices (aligned MiB) break off during one answer, the
/// proxy cuts the answer off.
const MAX_BROKEN_FETCHES: u32 = 3;

/// How an answer begins.
pub(crate) enum Start {
    /// The answer begins with stored slices.
    Stored(Hit),
    /// The answer begins with a slice that the proxy is fetching.
    Fetched(FetchedSlice, ForwardReason),
    /// The client has already received the beginning. The value describes the unsent bytes.
    Begun(UnsentRest),
}

/// The result of sending the bytes of one fetched slice to the client.
enum FetchProgress {
    Done,
    Broken,
    /// This client was too slow. The flight (shared fetch) no longer waits for it, because other
    /// readers need new bytes.
    LeftBehind,
}

/// The result of sending slices.
pub(crate) enum SentSlices {
    Answered(Answered),
    /// Nothing was sent, because the origin answered with another response, or did not answer.
    Other(OtherAnswer),
    /// Nothing was sent, because the first fetched slice was unusable.
    Nothing,
}

/// Sends the bytes `span` of an object, or the whole object, from the store and from the origin.
pub(crate) async fn send(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    set: Arc<Stored>,
    start: Start,
    span: Option<Span>,
) -> Result<SentSlices, Aborted> {
    let worker = transaction.worker;
    let Some(body) = BodyInParts::of(&set) else { return Ok(SentSlices::Nothing) };
    let (mut rest, mut under_way) = match start {
        Start::Begun(rest) => (rest, None),
        Start::Stored(hit) => {
            worker.counters.add(hit.source.counter(), 1);
            let age = set.times.age(clock::steady());
            (transaction.begin_stored(&set, span, age, hit.into()), None)
        }
        Start::Fetched(fetched, reason) => {
            let outcome = fetched.outcome(reason);
            (transaction.begin_stored(&set, span, fetched.age, outcome), Some(fetched))
        }
    };
    let last = rest.end - 1;
    let (mut alone, mut broken) = (false, 0);
    while rest.at <= last {
        if let Some(fetched) = under_way.take() {
            rest.opened = true;
            transaction.sender.answered_by(fetched.reader.responder());
            match read(transaction.sender, &fetched, &mut rest.at, last).await? {
                FetchProgress::Done => alone = false,
                FetchProgress::LeftBehind if fetched.lasting => alone = true,
                FetchProgress::Broken if fetched.lasting && broken < MAX_BROKEN_FETCHES => {
                    (alone, broken) = (true, broken + 1)
                }
                FetchProgress::LeftBehind | FetchProgress::Broken => return cut(transaction).await,
            }
            continue;
        }
        match body.send_stored(worker, transaction.sender, rest).await {
            Ok(()) => break,
            Err(SendFailure::Aborted(aborted)) => return Err(aborted),
            Err(SendFailure::RestGone(left)) => rest = left,
            Err(SendFailure::BodyGone) => {}
        }
        let (asked, list) = (slice_of(rest.at, PART as u64), miss.list_in_force());
        let slice = SliceFetch { span: asked, set: Some(&set), validate: false, alone, list };
        match fetch(transaction, &miss.watch, slice).await {
            FetchResult::Slice(fetched) => {
                if !rest.opened {
                    let outcome = fetched.outcome(ForwardReason::Partial);
                    let begun = transaction.begin_stored(&set, span, fetched.age, outcome);
                    rest.answered = begun.answered;
                }
                under_way = Some(fetched);
            }
            _ if rest.opened => return cut(transaction).await,
            FetchResult::Other(other) => return Ok(SentSlices::Other(other)),
            FetchResult::Confirmed(_) | FetchResult::Unusable => return Ok(SentSlices::Nothing),
        }
    }
    transaction.sender.end(&Headers::new()).await?;
    Ok(SentSlices::Answered(rest.answered))
}

/// Cuts an answer off. If the head was not sent yet, sends it first, so that the client notices
/// that the body is incomplete.
async fn cut(transaction: &mut Transaction<'_, '_>) -> Result<SentSlices, Aborted> {
    transaction.worker.counters.add(Counter::CutResponses, 1);
    transaction.sender.flush().await?;
    transaction.sender.break_off();
    Err(Aborted::Source)
}

/// Sends the bytes from position `at` to position `last` of the object, while the fetch delivers
/// them. Advances `at` to the next unsent byte.
async fn read(
    sender: &mut Sender<'_>,
    fetched: &FetchedSlice,
    at: &mut u64,
    last: u64,
) -> Result<FetchProgress, Aborted> {
    let mut passed = fetched.span.first;
    while *at <= last.min(fetched.span.last) {
        let next = pin!(fetched.reader.next());
        let data = match stream::next_or_flush(sender, next).await? {
            Piece::Data(data) => data,
            Piece::LeftBehind => return Ok(FetchProgress::LeftBehind),
            // The last slice (aligned MiB) of an object may be shorter than the other slices.
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

/// Returns the bytes of `data` that lie between the positions `at` and `last` of the object. The
/// first byte of `data` has the position `passed`.
fn wanted_of(data: &Bytes, passed: u64, at: u64, last: u64) -> Bytes {
    let place = |byte: u64| {
        usize::try_from(byte.saturating_sub(passed)).map_or(data.len(), |at| at.min(data.len()))
    };
    let (from, to) = (place(at), place(last.saturating_add(1)));
    data.slice(from..to.max(from))
}

/// Stores the head of a response in parts also under `key`. With the URL's own key, a set of slices
/// becomes a whole response, once every slice was sent to the store. With the key for partial
/// content, a whole response becomes a set of slices. The keys of the parts do not change, so the
/// parts need not be written again.
pub(crate) fn keep_under(
    worker: &Worker,
    base: &CacheKey,
    key: &CacheKey,
    known: &Stored,
    watch: &Watch,
) -> Arc<Stored> {
    let renamed = Arc::new(Stored { key: key.text.clone(), ..Stored::clone(known) });
    let watch = watch.clone().begun(known.begun);
    worker.shared.cache.add(base, &key.clone().into(), &renamed, watch.found(), &worker.counters);
    renamed
}

/// Converts a stored response that has lost a part (1 MiB of the body) to a set of slices (aligned
/// MiB). The proxy then fetches only missing slices. Returns `None` if the response has no strong
/// validator, or if the origin does not support ranges. Also returns `None` if nothing was sent yet
/// and the last part is missing. The store drops parts in the order of their arrival, so all parts
/// are then gone.
pub(crate) async fn left_of(
    worker: &Worker,
    base: &CacheKey,
    stored: &Stored,
    watch: &Watch,
    is_begun: bool,
) -> Option<Arc<Stored>> {
    let storage = worker.shared.cache.storage()?;
    let headers = &stored.head.headers;
    let StoredBody::Parts { fill } = stored.body else { return None };
    let gives_ranges = headers.get("accept-ranges").is_some_and(|unit| unit == b"bytes");
    if stored.key != base.text || !gives_ranges || strong_validator(&View(headers)).is_none() {
        return None;
    }
    if !is_begun {
        let last = part_key(stored.object(), fill, stored.length.saturating_sub(1) / PART as u64);
        timeout(storage.patience(), storage.part(last)).await.ok()??;
    }
    Some(keep_under(worker, base, &base.part(), stored, watch))
}

/// Sends the unsent bytes of a response that has lost a part (1 MiB of the body). `set` has the
/// remaining parts as slices.
pub(crate) async fn send_rest(
    transaction: &mut Transaction<'_, '_>,
    watch: Watch,
    set: Arc<Stored>,
    rest: UnsentRest,
) -> Result<Answered, Aborted> {
    let is_to_the_end = rest.end == set.length;
    let miss = Miss { reason: ForwardReason::Partial, list: None, stale: None, watch };
    let start = Start::Begun(rest);
    let sent = send(transaction, &miss, Arc::clone(&set), start, None).await?;
    if is_to_the_end {
        let key = &transaction.wanted.key;
        keep_under(transaction.worker, key, key, &set, &miss.watch);
    }
    match sent {
        SentSlices::Answered(answered) => Ok(answered),
        SentSlices::Other(_) | SentSlices::Nothing => Err(Aborted::Source),
    }
}
