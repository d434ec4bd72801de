//! Passes the body of a fetch to its readers, and to the writer that stores the body. The readers
//! are the requests that share the fetch, which is called a flight. If a body breaks off, the proxy
//! requests the missing bytes from the origin. It does so only if the response has a known length
//! and a strong validator. The readers can then still receive a complete body. A *slice* is 1 MiB
//! of an object, aligned to 1 MiB.

use crate::cache::{Cached, NotKept, PART, Stored, StoredBody};
use crate::core::{Counter, View};
use crate::fill::body_writer::{BodyWriter, Kept};
use crate::fill::outgoing;
use crate::fill::request::{FillRequest, final_head};
use crate::flight::{Flight, Keeping};
use crate::upstream::{BodyEvent, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use foxy_http::{DecodeError, Headers, ResponseHead};
use foxy_rules::partial::{SliceAnswer, slice_answer, strong_validator};
use foxy_rules::{Span, StoredTimes};
use std::future::pending;
use std::sync::Arc;

/// If all clients of a fetch disconnect, the fetch normally stops. It continues if at most this
/// many bytes, or at most a twentieth of the body, are missing. Squid has a similar rule
/// (`quick_abort`).
const QUICK_ABORT_BYTES: u64 = 64 << 10;

/// Largest number of consecutive attempts to fetch the rest of a body that broke off. After an
/// attempt that delivered at least 1 MiB, the count starts again.
const MAX_RESUMES: u32 = 3;

/// The result of an attempt to fetch the rest of a body that broke off.
enum RestOfBody {
    Comes(Box<UpstreamExchange>),
    NotNow,
    /// The proxy must not fetch the rest of the body, because the origin may have another response
    /// now.
    Never,
}

/// The body of a response whose head has arrived, and the flight (shared fetch) that receives it.
#[derive(Clone, Copy)]
pub(crate) struct IncomingBody<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) flight: &'a Flight,
    pub(crate) fill: &'a FillRequest,
    /// The head in the form in which the cache stores it.
    pub(crate) head: &'a ResponseHead,
    pub(crate) length: Option<u64>,
}

impl IncomingBody<'_> {
    /// Passes the body to the readers and to `writer`. Calls `refused` if the writer can no longer
    /// store the body. If the length is known, calls `whole` before the readers receive the last
    /// byte. Returns the writer even if the body broke off.
    pub(crate) async fn carry(
        self,
        mut exchange: Box<UpstreamExchange>,
        mut writer: Option<BodyWriter>,
        refused: &impl Fn(NotKept),
        whole: impl Fn(Option<&BodyWriter>),
    ) -> (Result<Headers, UpstreamError>, Option<BodyWriter>) {
        const WRONG_LENGTH: UpstreamError = UpstreamError::BadResponse(DecodeError::TruncatedBody);
        let Self { worker, flight, length, .. } = self;
        let mut trailers = Headers::new();
        let (mut received, mut last_break, mut breaks) = (0, 0, 0);
        loop {
            let needs_readers = !worth_finishing(writer.as_ref(), received, length);
            if needs_readers && flight.is_deserted() {
                return (Err(UpstreamError::NoResponse), writer);
            }
            let event = tokio::select! {
                biased;
                kept = answer(writer.as_mut()) => {
                    note(flight, &mut writer, kept, refused);
                    continue;
                }
                event = exchange.next() => event,
                () = flight.deserted(), if needs_readers => {
                    return (Err(UpstreamError::NoResponse), writer);
                }
            };
            let error = match event {
                Ok(BodyEvent::Data(data)) => {
                    received += data.len() as u64;
                    worker.counters.add_cacheable_fetched(data.len() as u64);
                    if length.is_some_and(|length| received > length) {
                        return (Err(WRONG_LENGTH), None);
                    }
                    if length == Some(received) {
                        whole(writer.as_ref());
                    }
                    flight.write(data.clone()).await;
                    if let Some(kept) = &mut writer {
                        let kept = kept.take(&data, flight.needs_what_is_kept()).await;
                        note(flight, &mut writer, kept, refused);
                    }
                    continue;
                }
                Ok(BodyEvent::Trailers(found)) => {
                    trailers = found;
                    continue;
                }
                Ok(BodyEvent::End) if length.is_none_or(|length| received == length) => {
                    return (Ok(trailers), writer);
                }
                Ok(BodyEvent::End) => WRONG_LENGTH,
                Err(error) => error,
            };
            breaks = if received - last_break < PART as u64 { breaks + 1 } else { 1 };
            last_break = received;
            match if breaks <= MAX_RESUMES {
                Box::pin(self.rest(received)).await
            } else {
                RestOfBody::NotNow
            } {
                RestOfBody::Comes(rest) => exchange = rest,
                RestOfBody::NotNow => return (Err(error), writer),
                RestOfBody::Never => return (Err(error), None),
            }
        }
    }

    async fn rest(self, received: u64) -> RestOfBody {
        let Self { worker, flight, fill, head, length } = self;
        let complete = length.filter(|length| head.status == 200 && received < *length);
        let Some(complete) = complete.filter(|_| strong_validator(&View(&head.headers)).is_some())
        else {
            return RestOfBody::Never;
        };
        let span = Span { first: received, last: complete - 1 };
        let request =
            outgoing::for_range(worker, &fill.request, fill.origin.clone(), span, Some(head));
        worker.counters.add(Counter::Forwarded, 1);
        let mut exchange = worker.upstream.exchange(request);
        let Ok(answer) = final_head(worker, flight, &fill.base, &mut exchange).await else {
            return RestOfBody::NotNow;
        };
        let (known, fields) = (View(&head.headers), View(&answer.head.headers));
        let known = Some((&known as _, complete));
        let found = slice_answer(span, answer.head.status, &fields, answer.length, known);
        if !matches!(found, SliceAnswer::Slice(_)) {
            return RestOfBody::Never;
        }
        worker.counters.add(Counter::Resumed, 1);
        RestOfBody::Comes(Box::new(exchange))
    }

    /// Stores the parts of a broken-off body as slices (aligned MiB) of the object, so that later
    /// requests can use them.
    pub(crate) fn leave_slices(self, writer: &BodyWriter, times: StoredTimes) {
        let Self { worker, fill, head, length, .. } = self;
        let Keeping::Parts { fill: number, bytes: 1.. } = writer.keeping() else { return };
        let Some(length) = length.filter(|_| head.status == 200) else { return };
        let key = fill.base.part();
        let cache = &worker.shared.cache;
        let known = matches!(cache.held(&key), Some(Cached::Response(set)) if set.is_of_slices());
        if known || strong_validator(&View(&head.headers)).is_none() {
            return;
        }
        let policy = worker.policy(&key.text, head, Some(length));
        let body = StoredBody::Parts { fill: number };
        let set = Stored::new(key.text.clone(), head, policy, times, length, body);
        let source = fill.watch.fetched();
        cache.add(&fill.base, &key.into(), &Arc::new(set), source, &worker.counters);
    }
}

/// Waits until the store has confirmed or refused the next part (1 MiB) of the body. If no part is
/// unconfirmed, waits for ever.
async fn answer(writer: Option<&mut BodyWriter>) -> Kept {
    match writer {
        Some(writer) => writer.answer().await,
        None => pending().await,
    }
}

/// Tells the flight (shared fetch) which bytes of the body the readers can read from the store.
/// Drops the writer if it cannot store the body.
fn note(flight: &Flight, writer: &mut Option<BodyWriter>, kept: Kept, refused: &impl Fn(NotKept)) {
    match (kept, &*writer) {
        (Kept::Yes, Some(writer)) => flight.keep_if(|keeping| keeping.advance(writer.keeping())),
        (Kept::No(why), Some(_)) => {
            refused(why);
            *writer = None;
            flight.keep_if(Keeping::end);
        }
        (_, None) => {}
    }
}

fn worth_finishing(writer: Option<&BodyWriter>, received: u64, length: Option<u64>) -> bool {
    let Some(length) = length.filter(|_| writer.is_some()) else { return false };
    let missing = length.saturating_sub(received);
    missing <= QUICK_ABORT_BYTES || missing <= length / 20
}
