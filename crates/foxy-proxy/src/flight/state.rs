//! The body bytes that a flight has in memory, and the position of each reader in the body. A
//! *flight* is a fetch that several requests share. This is pure data without locks or waiting.

use crate::flight::event::{FlightOutcome, Piece};
use crate::upstream::UpstreamError;
use bytes::{Bytes, BytesMut};
use foxy_http::{Headers, ResponseHead};
use std::collections::VecDeque;

/// Least memory in bytes that [`size`] counts for a chunk. A smaller chunk also needs its place in
/// the queue, and keeps an allocation alive.
const SMALLEST_CHUNK: usize = 64;

/// Chunks join up to this number of bytes. Otherwise an origin that sends tiny chunks would need
/// many times the memory of the body.
const JOINED_BYTES: usize = 4 << 10;

/// The reason why a reader has no position among the bytes that are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Slow,
    /// The reader joined late, and reads the beginning of the body from the store. It may receive a
    /// position later.
    Late,
    /// The reader joined late, and waits until the store has more bytes of the body.
    LateAndWaiting,
}

/// The position in the body that a reader of the flight (shared fetch) has reached.
struct ReaderPosition {
    reader: u64,
    /// Number of the chunk that the reader reads next. The first chunk of the body has number 0.
    next: u64,
    /// Memory that all chunks before `next` counted.
    counted: u64,
    /// Number of bytes to skip in the chunk `next`.
    skip: usize,
}

/// The part of the response that has arrived, and the readers' positions in it.
#[derive(Default)]
pub(crate) struct FlightState {
    pub(crate) interim: VecDeque<ResponseHead>,
    pub(crate) outcome: Option<FlightOutcome>,
    pub(crate) ended: Option<Result<Headers, UpstreamError>>,
    chunks: VecDeque<Bytes>,
    /// Number of the first chunk that is still in memory.
    first: u64,
    gone: u64,
    received: u64,
    /// Memory of all chunks so far, as [`size`] counts.
    counted: u64,
    /// The part of `counted` whose chunks are no longer in memory.
    counted_gone: u64,
    places: Vec<ReaderPosition>,
    behind: Vec<(u64, Behind)>,
    joined: u64,
}

impl FlightState {
    /// Adds a reader at the first byte of the body. If the beginning is no longer in memory but can
    /// be read from the store, adds a late reader ([`Behind::Late`]). Returns the reader's number.
    pub(crate) fn join(&mut self, can_be_read_back: bool) -> Option<u64> {
        if matches!(self.ended, Some(Err(_))) || (self.first > 0 && !can_be_read_back) {
            return None;
        }
        self.joined += 1;
        if self.first == 0 {
            self.places.push(ReaderPosition { reader: self.joined, next: 0, counted: 0, skip: 0 });
        } else {
            self.behind.push((self.joined, Behind::Late));
        }
        Some(self.joined)
    }

    pub(crate) fn is_late(&self, reader: u64) -> bool {
        self.behind.iter().any(|(number, why)| *number == reader && *why != Behind::Slow)
    }

    pub(crate) fn waits(&mut self, reader: u64) {
        self.turn(reader, Behind::Late, Behind::LateAndWaiting);
    }

    pub(crate) fn reads_on(&mut self, reader: u64) {
        self.turn(reader, Behind::LateAndWaiting, Behind::Late);
    }

    fn turn(&mut self, reader: u64, from: Behind, to: Behind) {
        if let Some(found) = self.behind.iter_mut().find(|found| **found == (reader, from)) {
            found.1 = to;
        }
    }

    /// Lets a late reader ([`Behind::Late`]) continue with the bytes in memory. The reader must
    /// have read every byte before the byte position `at`, and memory must still have all later
    /// bytes that have arrived. Returns false otherwise.
    pub(crate) fn catch_up(&mut self, reader: u64, at: u64) -> bool {
        if !self.is_late(reader) || at < self.gone || at > self.received {
            return false;
        }
        let (mut next, mut begin, mut counted) = (self.first, self.gone, self.counted_gone);
        for chunk in &self.chunks {
            let end = begin + chunk.len() as u64;
            if at < end {
                break;
            }
            (next, begin, counted) = (next + 1, end, counted + size(chunk));
        }
        let Ok(skip) = usize::try_from(at - begin) else { return false };
        self.leave(reader);
        self.places.push(ReaderPosition { reader, next, counted, skip });
        true
    }

    pub(crate) fn leave(&mut self, reader: u64) {
        self.places.retain(|place| place.reader != reader);
        self.behind.retain(|(number, _)| *number != reader);
    }

    pub(crate) fn is_read_back(&self) -> bool {
        !self.behind.is_empty()
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.places.is_empty() && self.behind.is_empty()
    }

    /// Adds bytes that the fill received. `data` must not be empty. Small chunks that no reader has
    /// taken yet become one chunk.
    pub(crate) fn add(&mut self, data: Bytes) {
        self.received += data.len() as u64;
        let end = self.end();
        let is_taken = self.places.iter().any(|place| place.next == end);
        let last = self.chunks.back_mut().filter(|last| !is_taken && last.len() < JOINED_BYTES);
        match last {
            Some(last) if data.len() < JOINED_BYTES => {
                self.counted -= size(last);
                let joined = std::mem::take(last).try_into_mut();
                let mut joined = joined.unwrap_or_else(|shared| BytesMut::from(&shared[..]));
                joined.extend_from_slice(&data);
                *last = joined.freeze();
                self.counted += size(last);
            }
            _ => {
                self.counted += size(&data);
                self.chunks.push_back(data);
            }
        }
    }

    /// Returns the next piece of the body for a reader, or `None` if the piece has not arrived yet.
    pub(crate) fn take(&mut self, reader: u64) -> Option<Piece> {
        let Some(place) = self.places.iter_mut().find(|place| place.reader == reader) else {
            return Some(Piece::LeftBehind);
        };
        let index = usize::try_from(place.next - self.first).ok()?;
        if let Some(data) = self.chunks.get(index) {
            place.next += 1;
            place.counted += size(data);
            return Some(Piece::Data(data.slice(std::mem::take(&mut place.skip)..)));
        }
        match &self.ended {
            Some(Ok(trailers)) => Some(Piece::End(trailers.clone())),
            Some(Err(_)) => Some(Piece::Broken),
            None => None,
        }
    }

    /// Returns how much memory the chunks need that the slowest reader has not taken.
    pub(crate) fn unread(&self) -> usize {
        let slowest = self.places.iter().min_by_key(|place| place.next);
        slowest.map_or(0, |slowest| self.after(slowest))
    }

    fn slowest(&self) -> Option<u64> {
        self.places.iter().map(|place| place.next).min()
    }

    fn end(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    /// Returns how much memory the chunks need that a reader has not taken.
    fn after(&self, place: &ReaderPosition) -> usize {
        usize::try_from(self.counted - place.counted).unwrap_or(usize::MAX)
    }

    /// Drops the chunks that every reader has read. Drops nothing until more than `window` bytes of
    /// the body have arrived. While a late reader ([`Behind::Late`]) reads from the store, the last
    /// `window` bytes stay too.
    pub(crate) fn forget_read(&mut self, window: usize) {
        let window = window as u64;
        if self.received <= window {
            return;
        }
        let stay = if self.behind.iter().any(|(_, why)| *why != Behind::Slow) { window } else { 0 };
        let slowest = self.slowest().unwrap_or(self.end());
        while self.first < slowest
            && let Some(oldest) = self.chunks.front()
            && self.received - self.gone - oldest.len() as u64 >= stay
        {
            self.first += 1;
            self.gone += oldest.len() as u64;
            self.counted_gone += size(oldest);
            self.chunks.pop_front();
        }
    }

    /// Takes the position away from each reader that is more than `window` bytes behind, if another
    /// reader is waiting for new bytes. Such a slow reader then continues from the store. If no
    /// reader is waiting, does nothing, because slow readers then delay only themselves.
    pub(crate) fn leave_slow_behind(&mut self, window: usize) {
        let end = self.end();
        let waits = |(_, why): &(u64, Behind)| *why == Behind::LateAndWaiting;
        if self.places.iter().any(|place| place.next == end) || self.behind.iter().any(waits) {
            let places = std::mem::take(&mut self.places);
            let (kept, behind): (Vec<_>, Vec<_>) =
                places.into_iter().partition(|place| self.after(place) <= window);
            self.places = kept;
            self.behind.extend(behind.into_iter().map(|place| (place.reader, Behind::Slow)));
            self.forget_read(window);
        }
    }

    /// Returns how much memory all chunks need.
    pub(crate) fn held(&self) -> usize {
        usize::try_from(self.counted - self.counted_gone).unwrap_or(usize::MAX)
    }
}

/// Returns how much memory a chunk counts.
fn size(chunk: &Bytes) -> u64 {
    chunk.len().max(SMALLEST_CHUNK) as u64
}
