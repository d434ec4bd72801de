//! The data that a flight passes to its readers: head, outcome, and pieces of the body.

use crate::cache::{CacheKey, NotKept, Stored, VaryList};
use crate::core::byte_budget::HeldBytes;
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
    /// The head without hop-by-hop fields and Content-Length.
    pub(crate) head: Arc<ResponseHead>,
    pub(crate) length: Option<u64>,
    pub(crate) not_stored: Option<NotKept>,
    pub(crate) times: StoredTimes,
    pub(crate) key: CacheKey,
    pub(crate) list: Option<VaryList>,
    /// The set of slices to which the response belongs.
    pub(crate) set: Option<Arc<Stored>>,
    /// The response in its stored form, without its body.
    pub(crate) stored: Option<Arc<Stored>>,
}

#[derive(Clone, Debug)]
pub(crate) enum FlightOutcome {
    Response(Arc<FlightHead>),
    /// The origin confirmed the stored response. The value is this response with its new head. If
    /// there is a reason not to store the new head, only the request that started the flight may
    /// use it.
    Revalidated(Arc<Stored>, Option<NotStoredReason>),
    /// The origin confirmed another response. The reader must send its request again without
    /// conditions.
    Unconfirmed,
    Failed(UpstreamError),
}

impl FlightOutcome {
    /// Returns true if the response may answer a request that joins the flight. The response must
    /// be fresh, like a stored response.
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

#[derive(Debug)]
pub(crate) enum FlightEvent {
    /// A 1xx response. Only the request that started the flight receives it.
    Interim(ResponseHead),
    Outcome(FlightOutcome),
}

#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    End(Headers),
    Broken,
    LeftBehind,
}

/// The bytes of a flight's body that can be read from the cache.
#[derive(Clone, Debug, Default)]
pub(crate) enum Keeping {
    /// The first `bytes` bytes of the body. More bytes will follow.
    Parts {
        fill: u64,
        bytes: u64,
    },
    All {
        stored: Arc<Stored>,
        _room: Arc<HeldBytes>,
    },
    #[default]
    Nothing,
}

impl Keeping {
    /// Replaces the value by `confirmed` if `confirmed` has more bytes. Returns true if it was
    /// replaced.
    pub(crate) fn advance(&mut self, confirmed: Self) -> bool {
        let has_more = matches!(
            (&*self, &confirmed),
            (Self::Parts { bytes: before, .. }, Self::Parts { bytes, .. }) if before < bytes
        );
        if has_more {
            *self = confirmed;
        }
        has_more
    }

    /// Notes that no more bytes will be stored. Returns true if this changes anything.
    pub(crate) fn end(&mut self) -> bool {
        let more_was_to_come = matches!(self, Self::Parts { .. });
        if more_was_to_come {
            *self = Self::Nothing;
        }
        more_was_to_come
    }
}

/// Tells whether readers of the flight need the stored bytes now, or only later requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    ByReaders,
    Later,
}
