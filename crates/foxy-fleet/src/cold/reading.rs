//! Reads records: one ranged read for each record, or for neighbours that wait at the same time.

use crate::cold::index::{RecordPlace, SegmentId};
use crate::cold::remote::{Remote, RemoteError};
use crate::cold::segment::read_record;
use crate::cold::state::TierState;
use foxy_base::clock;
use foxy_proxy::cache::cold::{ColdRecord, ColdReply, Key};
use foxy_proxy::core::outcome::ColdMiss;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Largest number of reads in progress.
const MAX_READS: usize = 16;
/// Largest number of records that wait for a read. Others stay in the queue, which has a limit.
const MAX_WAITING: usize = 256;
/// Largest gap between two records of the same read.
const MAX_GAP_BYTES: u32 = 64 << 10;
/// Largest size of a read for several records.
const MAX_TOGETHER_BYTES: u32 = 2 << 20;

/// A record that a request waits for.
pub struct ReadRequest {
    pub key: Key,
    pub place: RecordPlace,
    pub asked: Instant,
    pub reply: ColdReply,
}

/// Runs until the proxy is gone.
pub async fn run(state: &Arc<TierState>, remote: &Remote, mut reads: mpsc::Receiver<ReadRequest>) {
    let (mut waiting, mut running) = (VecDeque::new(), FuturesUnordered::new());
    loop {
        tokio::select! {
            Some(()) = running.next() => {}
            read = reads.recv(), if waiting.len() < MAX_WAITING => match read {
                Some(read) => waiting.push_back(read),
                None => return,
            },
        }
        while waiting.len() < MAX_WAITING
            && let Ok(read) = reads.try_recv()
        {
            waiting.push_back(read);
        }
        while running.len() < MAX_READS
            && let Some(first) = waiting.pop_front()
        {
            if first.asked.elapsed() >= state.patience {
                (first.reply)(Err(ColdMiss::Slow));
                continue;
            }
            let (group, range) = with_neighbours(first, &mut waiting);
            running.push(read(state, remote, group, range));
        }
    }
}

/// Takes all waiting requests for records near the first one. Returns the range for one read.
fn with_neighbours(
    first: ReadRequest,
    waiting: &mut VecDeque<ReadRequest>,
) -> (Vec<ReadRequest>, Range<u32>) {
    let range = |place: &RecordPlace| place.offset..place.offset + place.length;
    let (segment, mut whole) = (first.place.segment, range(&first.place));
    let mut group = vec![first];
    let mut at = 0;
    while let Some(other) = waiting.get(at) {
        let found = range(&other.place);
        let both = whole.start.min(found.start)..whole.end.max(found.end);
        let is_near = found.start <= whole.end.saturating_add(MAX_GAP_BYTES)
            && whole.start <= found.end.saturating_add(MAX_GAP_BYTES);
        let fits = both.end - both.start <= MAX_TOGETHER_BYTES;
        if other.place.segment == segment && is_near && fits {
            group.extend(waiting.remove(at));
            // A wider range may have more neighbours.
            (whole, at) = (both, 0);
        } else {
            at += 1;
        }
    }
    (group, whole)
}

async fn read(state: &TierState, remote: &Remote, group: Vec<ReadRequest>, range: Range<u32>) {
    let Some(segment) = group.first().map(|first| first.place.segment) else { return };
    let wide = u64::from(range.start)..u64::from(range.end);
    let bytes = match remote.records(segment, wide, state.patience).await {
        Ok(bytes) => bytes,
        Err(error) => return fail(state, segment, group, error),
    };
    state.health().answered();
    for ReadRequest { key, place, reply, .. } in group {
        let begin = (place.offset - range.start) as usize;
        let end = begin + place.length as usize;
        let part = bytes.get(begin..end).map(|part| bytes.slice_ref(part));
        let record = part.and_then(|part| read_record(key, &part));
        if record.is_none() {
            state.remove(key);
        }
        let found = record.map(|record| ColdRecord { record, is_own: place.is_own });
        reply(found.ok_or(ColdMiss::Damaged));
    }
}

fn fail(state: &TierState, segment: SegmentId, group: Vec<ReadRequest>, error: RemoteError) {
    let why = match error {
        RemoteError::Missing | RemoteError::Conflict => ColdMiss::Lost,
        RemoteError::Timeout => ColdMiss::Slow,
        RemoteError::Failed => ColdMiss::Failed,
    };
    if why == ColdMiss::Lost {
        state.health().answered();
        state.index().lose(segment, state.era);
        state.changed();
    } else {
        state.health().failed(clock::monotonic());
    }
    group.into_iter().for_each(|read| (read.reply)(Err(why)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64, offset: u32) -> ReadRequest {
        let place =
            RecordPlace { segment: SegmentId { era: 1, id }, offset, length: 1000, is_own: true };
        let (key, asked) = (Key([0; 16]), Instant::now());
        ReadRequest { key, place, asked, reply: Box::new(drop) }
    }

    #[test]
    fn neighbours_that_wait_share_a_read() {
        let places = [(1, 70_000), (2, 1000), (1, 5000), (1, 900_000), (1, 140_000), (1, 0)];
        let mut waiting = places.map(|(id, offset)| request(id, offset)).into();
        let (group, range) = with_neighbours(request(1, 4000), &mut waiting);
        assert_eq!((group.len(), range), (4, 0..71_000));
        let left: Vec<_> = waiting.iter().map(|read| read.place.offset).collect();
        assert_eq!(left, [1000, 900_000, 140_000]);
    }

    #[test]
    fn a_read_for_several_records_has_a_limit() {
        let mut waiting = (0..100).map(|number| request(1, number * 60_000)).collect();
        let (_, range) = with_neighbours(request(1, 0), &mut waiting);
        assert!(range.end <= MAX_TOGETHER_BYTES && range.end > MAX_TOGETHER_BYTES / 2);
        assert!(!waiting.is_empty());
    }
}
