//! Gathers offered records into a segment, and writes the segment to the store. While one segment
//! is written, one more gathers. If the store does not take it, offers are refused.

use crate::cold::health::pause;
use crate::cold::index::SegmentId;
use crate::cold::manifest::SegmentEntry;
use crate::cold::remote::Remote;
use crate::cold::segment::{SegmentBuffer, SegmentRecord, small};
use crate::cold::state::{Offered, TierState, stopped};
use bytes::Bytes;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// A segment that is not full is written after this time.
const LONGEST_GATHERING: Duration = Duration::from_secs(600);
/// Time limit for each segment when the proxy stops.
const STOP_LIMIT: Duration = Duration::from_secs(3);

type Sending<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A segment with its footer.
struct FullSegment {
    id: u64,
    bytes: Bytes,
    entries: Vec<SegmentRecord>,
}

impl FullSegment {
    /// The number of a segment is the position of its first record in the order of offers.
    fn of(buffer: SegmentBuffer) -> Self {
        let (bytes, entries) = buffer.finish();
        Self { id: entries.first().map_or(0, |entry| entry.order), bytes, entries }
    }
}

/// Runs until `stop`. Then writes what is gathered.
pub async fn run(
    state: &Arc<TierState>,
    remote: &Remote,
    mut offers: mpsc::Receiver<Offered>,
    stop: watch::Receiver<bool>,
) {
    let mut buffer = SegmentBuffer::default();
    let (mut sending, mut next): (Option<Sending<'_>>, Option<Offered>) = (None, None);
    let mut until = None;
    loop {
        let is_due = tokio::select! {
            biased;
            () = stopped(stop.clone()) => break,
            () = finished(sending.as_mut()) => {
                sending = None;
                false
            }
            offered = offers.recv(), if next.is_none() => {
                next = offered.inspect(|it| took(state, it));
                if next.is_none() {
                    break;
                }
                false
            }
            () = time(until), if sending.is_none() => true,
        };
        let is_full = next.as_ref().is_some_and(|next| !buffer.has_room(&next.record));
        if sending.is_none() && (is_due || is_full) {
            let segment = FullSegment::of(std::mem::take(&mut buffer));
            sending = Some(Box::pin(send(state, remote, segment)));
            until = None;
        }
        if let Some(Offered { key, order, record }) =
            next.take_if(|next| buffer.has_room(&next.record))
        {
            buffer.push(key, order, &record);
            until = until.or_else(|| Some(Instant::now() + LONGEST_GATHERING));
        }
    }
    if let Some(sending) = sending
        && timeout(STOP_LIMIT, sending).await.is_err()
    {
        return;
    }
    offers.close();
    while let Some(Offered { key, order, record }) = next.take().or_else(|| offers.try_recv().ok())
        && buffer.has_room(&record)
    {
        buffer.push(key, order, &record);
    }
    if !buffer.is_empty() {
        let last = send(state, remote, FullSegment::of(buffer));
        // The proxy stops in any case. The records are then not in the cold tier.
        let _ = timeout(STOP_LIMIT, last).await;
    }
}

fn took(state: &TierState, offered: &Offered) {
    state.offered_bytes.fetch_sub(offered.record.len(), Ordering::Relaxed);
}

async fn finished(sending: Option<&mut Sending<'_>>) {
    match sending {
        Some(sending) => sending.await,
        None => pending().await,
    }
}

async fn time(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => pending().await,
    }
}

/// Writes a segment. Tries until the store has it.
async fn send(state: &TierState, remote: &Remote, segment: FullSegment) {
    let FullSegment { id, bytes, entries } = segment;
    let entry = SegmentEntry { id, count: small(entries.len()), length: small(bytes.len()) };
    let name = SegmentId { era: state.era, id };
    for failures in 0.. {
        if remote.put_segment(name, bytes.clone()).await.is_ok() {
            break;
        }
        sleep(pause(failures)).await;
    }
    state.index().uploaded(state.era, entry, &entries);
    state.changed();
}
