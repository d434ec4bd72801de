//! What a flight tells its readers: the head, the outcome, the pieces of the body. Only data.

use crate::cache::refusals::NotKept;
use crate::cache::stored::{CacheKey, Stored, VaryList};
use crate::request::exchange::{Next, decide};
use crate::upstream::UpstreamError;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::{NotStoredReason, RequestControl, StoredTimes};
use std::sync::Arc;

/// The head of a response in flight, as readers see it.
#[derive(Clone, Debug)]
pub(crate) struct FlightHead {
    /// Status and fields, without hop-by-hop fields and framing.
    pub(crate) head: Arc<ResponseHead>,
    /// Body length, if the origin said so.
    pub(crate) length: Option<u64>,
    /// Why it is not stored, if it is not.
    pub(crate) not_stored: Option<NotKept>,
    /// When it came, and how old it was.
    pub(crate) times: StoredTimes,
    /// The key it will be stored under.
    pub(crate) key: CacheKey,
    /// The names that chose it, if any did.
    pub(crate) list: Option<VaryList>,
    /// What it is a slice of, if it is one.
    pub(crate) set: Option<Arc<Stored>>,
    /// The same as it will be stored, but for its body; `None` if it will not be, or not as it is.
    pub(crate) stored: Option<Arc<Stored>>,
}

/// What a flight came to, as far as its head.
#[derive(Clone, Debug)]
pub(crate) enum FlightOutcome {
    /// A response is coming.
    Response(Arc<FlightHead>),
    /// What was stored is still good; here it is with its new head, and why that head is for the
    /// leader alone, if it is.
    Revalidated(Arc<Stored>, Option<NotStoredReason>),
    /// The origin confirmed something else than what is stored: it must be asked again, without
    /// conditions.
    Unconfirmed,
    /// No response.
    Failed(UpstreamError),
}

impl FlightOutcome {
    /// Whether it may answer a request with this control for which the origin was not asked: as if
    /// it were stored, and only while fresh.
    pub(crate) fn may_answer(&self, control: &RequestControl, now: WallTime) -> bool {
        let stored = match self {
            Self::Response(head) => head.stored.as_ref().or(head.set.as_ref()),
            Self::Revalidated(stored, _) => Some(stored),
            Self::Unconfirmed | Self::Failed(_) => None,
        };
        stored.is_none_or(|stored| {
            matches!(decide(control, stored, now), Next::Serve { permit: None, .. })
        })
    }
}

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum FlightEvent {
    /// A 1xx to pass on. Only the leader gets these.
    Interim(ResponseHead),
    /// The outcome.
    Outcome(FlightOutcome),
}

/// How a body ended, or why this reader gets no more of it.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes.
    Data(Bytes),
    /// The end, with trailers.
    End(Headers),
    /// The origin did not send it whole.
    Broken,
    /// This reader was too slow and was left behind.
    LeftBehind,
}
