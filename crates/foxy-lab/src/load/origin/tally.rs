//! What an origin sent, counted apart by the numbers that requests carry: so that it is known for
//! whom a proxy asked, and what it asked for by itself.

use super::OriginState;
use crate::load::origin::answer::Reply;
use crate::wire::REQUEST_ID;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maps a request number to a bucket.
type Place = Box<dyn Fn(Option<u64>) -> Option<usize> + Send + Sync>;

pub(super) struct SentTally {
    place: Place,
    counts: Vec<[AtomicU64; 2]>,
}

/// Sent answers of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Answers.
    pub answers: u64,
    /// Body bytes.
    pub bytes: u64,
}

impl SentTally {
    pub(super) fn new(places: usize, place: Place) -> Self {
        Self { place, counts: (0..places).map(|_| Default::default()).collect() }
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        let sent = |[answers, bytes]: &[AtomicU64; 2]| Sent {
            answers: answers.load(Relaxed),
            bytes: bytes.load(Relaxed),
        };
        self.counts.iter().map(sent).collect()
    }
}

impl fmt::Debug for SentTally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SentTally").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl OriginState {
    pub(super) fn count(&self, reply: &Reply, bytes: u64) {
        self.body_bytes.fetch_add(bytes, Relaxed);
        let Some(tally) = self.tally.get() else { return };
        let number = reply.head.headers.get_str(REQUEST_ID).and_then(|number| number.parse().ok());
        if let Some([answers, sum]) =
            (tally.place)(number).and_then(|place| tally.counts.get(place))
        {
            answers.fetch_add(1, Relaxed);
            sum.fetch_add(bytes, Relaxed);
        }
    }
}
