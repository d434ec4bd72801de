//! What a flight holds of its body, and where its readers are in it. Only data: who waits for whom
//! is in the parent module.

use crate::flight::event::{FlightOutcome, Piece};
use crate::upstream::UpstreamError;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use std::collections::VecDeque;

/// Why a reader has no place in what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// It was too slow.
    Slow,
    /// It came after the beginning had gone by, reads that, and may take a place then.
    Late,
    /// The same, and it has read all that can be read.
    LateAndWaiting,
}

/// Where a reader is.
#[derive(Debug)]
struct ReaderPosition {
    reader: u64,
    /// The chunk it reads next, counted from the body's first.
    next: u64,
    /// Bytes of that chunk it has already.
    skip: usize,
}

/// The state of a flight.
#[derive(Debug, Default)]
pub(crate) struct FlightState {
    pub(crate) interim: VecDeque<ResponseHead>,
    pub(crate) outcome: Option<FlightOutcome>,
    pub(crate) ended: Option<Result<Headers, UpstreamError>>,
    chunks: VecDeque<Bytes>,
    /// The number of the first chunk held.
    first: u64,
    /// Bytes before that.
    gone: u64,
    received: u64,
    places: Vec<ReaderPosition>,
    behind: Vec<(u64, Behind)>,
    joined: u64,
}

impl FlightState {
    /// A place for one more reader, at the first byte or behind it if that can be read back; gives
    /// its number.
    pub(crate) fn join(&mut self, can_be_read_back: bool) -> Option<u64> {
        if matches!(self.ended, Some(Err(_))) || (self.first > 0 && !can_be_read_back) {
            return None;
        }
        self.joined += 1;
        if self.first == 0 {
            self.places.push(ReaderPosition { reader: self.joined, next: 0, skip: 0 });
        } else {
            self.behind.push((self.joined, Behind::Late));
        }
        Some(self.joined)
    }

    /// Whether a reader has no place, as its beginning was gone when it came.
    pub(crate) fn is_late(&self, reader: u64) -> bool {
        self.behind.iter().any(|(number, why)| *number == reader && *why != Behind::Slow)
    }

    /// Notes that a late reader begins to wait for more to read.
    pub(crate) fn waits(&mut self, reader: u64) {
        self.turn(reader, (Behind::Late, Behind::LateAndWaiting));
    }

    /// Notes that a late reader has more to read.
    pub(crate) fn reads_on(&mut self, reader: u64) {
        self.turn(reader, (Behind::LateAndWaiting, Behind::Late));
    }

    fn turn(&mut self, reader: u64, (from, to): (Behind, Behind)) {
        if let Some(found) = self.behind.iter_mut().find(|found| **found == (reader, from)) {
            found.1 = to;
        }
    }

    /// Gives a late reader that has every byte before `at` a place, if what follows is held.
    pub(crate) fn catch_up(&mut self, reader: u64, at: u64) -> bool {
        if !self.is_late(reader) || at < self.gone || at > self.received {
            return false;
        }
        let (mut next, mut begin) = (self.first, self.gone);
        for chunk in &self.chunks {
            let end = begin + chunk.len() as u64;
            if at < end {
                break;
            }
            (next, begin) = (next + 1, end);
        }
        let Ok(skip) = usize::try_from(at - begin) else { return false };
        self.leave(reader);
        self.places.push(ReaderPosition { reader, next, skip });
        true
    }

    pub(crate) fn leave(&mut self, reader: u64) {
        self.places.retain(|place| place.reader != reader);
        self.behind.retain(|(number, _)| *number != reader);
    }

    /// Whether readers have no place in what is held.
    pub(crate) fn is_read_back(&self) -> bool {
        !self.behind.is_empty()
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.places.is_empty() && self.behind.is_empty()
    }

    /// Takes in bytes that came; never none.
    pub(crate) fn add(&mut self, data: Bytes) {
        self.received += data.len() as u64;
        self.chunks.push_back(data);
    }

    /// What a reader gets next; `None` while that is not here.
    pub(crate) fn take(&mut self, reader: u64) -> Option<Piece> {
        let Some(place) = self.places.iter_mut().find(|place| place.reader == reader) else {
            return Some(Piece::LeftBehind);
        };
        let index = usize::try_from(place.next - self.first).ok()?;
        if let Some(data) = self.chunks.get(index) {
            place.next += 1;
            return Some(Piece::Data(data.slice(std::mem::take(&mut place.skip)..)));
        }
        match &self.ended {
            Some(Ok(trailers)) => Some(Piece::End(trailers.clone())),
            Some(Err(_)) => Some(Piece::Broken),
            None => None,
        }
    }

    /// Bytes the slowest reader has not taken.
    pub(crate) fn unread(&self) -> usize {
        self.slowest().map_or(0, |slowest| self.after(slowest))
    }

    fn slowest(&self) -> Option<u64> {
        self.places.iter().map(|place| place.next).min()
    }

    fn end(&self) -> u64 {
        self.first + self.chunks.len() as u64
    }

    /// Bytes received from chunk `next` on.
    fn after(&self, next: u64) -> usize {
        let skip = usize::try_from(next.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.chunks.iter().skip(skip).map(Bytes::len).sum()
    }

    /// Drops chunks every reader has taken, once more was received than late readers could be
    /// given. While one reads what is gone, the last `window` bytes stay for it.
    pub(crate) fn forget_read(&mut self, window: usize) {
        let window = window as u64;
        if self.received <= window {
            return;
        }
        let stay = if self.behind.iter().any(|(_, why)| *why != Behind::Slow) { window } else { 0 };
        let slowest = self.slowest().unwrap_or(self.end());
        while self.first < slowest
            && let Some(oldest) = self.chunks.front().map(|chunk| chunk.len() as u64)
            && self.received - self.gone - oldest >= stay
        {
            self.chunks.pop_front();
            self.first += 1;
            self.gone += oldest;
        }
    }

    /// Gives up readers more than a window behind while another has read everything and waits.
    /// Where nobody waits, they hold up only themselves.
    pub(crate) fn leave_slow_behind(&mut self, window: usize) {
        let end = self.end();
        let waits = |(_, why): &(u64, Behind)| *why == Behind::LateAndWaiting;
        if self.places.iter().any(|place| place.next == end) || self.behind.iter().any(waits) {
            let places = std::mem::take(&mut self.places);
            let (kept, behind): (Vec<_>, Vec<_>) =
                places.into_iter().partition(|place| self.after(place.next) <= window);
            self.places = kept;
            self.behind.extend(behind.into_iter().map(|place| (place.reader, Behind::Slow)));
            self.forget_read(window);
        }
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        usize::try_from(self.received - self.gone).unwrap_or(usize::MAX)
    }
}
