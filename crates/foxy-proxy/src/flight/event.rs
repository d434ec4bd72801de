//! The data that a flight passes to its readers: heads, the outcome of the fetch, and pieces of the
//! body. A *flight* is a fetch that several requests share.

use crate::cache::{CacheKey, NotKept, Stored, VaryList};
use crate::core::View;
use crate::core::byte_budget::HeldBytes;
use crate::request::exchange::{Next, decide};
use crate::upstream::UpstreamError;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::fields::sets_cookie;
use foxy_rules::{NotStoredReason, RequestControl, StoredTimes};
use std::sync::Arc;

/// The head of the response that a flight (shared fetch) fetches, as its readers see it.
#[derive(Clone, Debug)]
pub(crate) struct FlightHead {
    /// The response head without hop-by-hop fields, Age and Content-Length.
    pub(crate) head: Arc<ResponseHead>,
    pub(crate) length: Option<u64>,
    pub(crate) not_stored: Option<NotKept>,
    pub(crate) times: StoredTimes,
    pub(crate) key: CacheKey,
    pub(crate) list: Option<VaryList>,
    /// The stored set of slices (aligned MiB of an object) to which the response belongs.
    pub(crate) set: Option<Arc<Stored>>,
    /// The response as the cache will store it, without its body.
    pub(crate) stored: Option<Arc<Stored>>,
}

/// The result of a flight before its body.
#[derive(Clone, Debug)]
pub(crate) enum FlightOutcome {
    Response(Arc<FlightHead>),
    /// The origin confirmed the stored response with a 304. The value is this response with its new
    /// head. If there is a reason not to store the new head, only the request that started the
    /// flight may use it.
    Revalidated(Arc<Stored>, Option<NotStoredReason>),
    /// The origin's 304 confirmed another response than the stored response. The reader must send
    /// its request again without conditions.
    Unconfirmed,
    Failed(UpstreamError),
}

impl FlightOutcome {
    /// Returns true if the outcome may answer a request that joins the flight. The response must be
    /// fresh, as if the request had found it in the cache.
    pub(crate) fn may_answer(&self, control: &RequestControl, now: WallTime) -> bool {
        self.stored().is_none_or(|stored| {
            matches!(decide(control, stored, now), Next::Serve { permit: None, .. })
        })
    }

    /// Returns true if the response sets a cookie.
    pub(crate) fn sets_cookie(&self) -> bool {
        self.stored().is_some_and(|stored| sets_cookie(&View(&stored.head.headers)))
    }

    fn stored(&self) -> Option<&Arc<Stored>> {
        match self {
            Self::Response(head) => head.stored.as_ref().or(head.set.as_ref()),
            Self::Revalidated(stored, _) => Some(stored),
            Self::Unconfirmed | Self::Failed(_) => None,
        }
    }
}

/// A response head from a flight, or another outcome.
#[derive(Debug)]
pub(crate) enum FlightEvent {
    /// A 1xx response of the origin. Only the request that started the flight receives it.
    Interim(ResponseHead),
    Outcome(FlightOutcome),
}

/// The next piece of a body. `LeftBehind` means that the reader was too slow, so its next bytes are
/// no longer in memory.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    End(Headers),
    Broken,
    LeftBehind,
}

/// The bytes of a body that the readers of its flight can read from the cache.
#[derive(Clone, Debug, Default)]
pub(crate) enum Keeping {
    /// The first `bytes` bytes of the body are in the store. More bytes will follow.
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
    /// Replaces this value with `confirmed` if the store has confirmed more bytes. Returns true in
    /// this case.
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

    /// Notes that the store will receive no more bytes. Returns true if more bytes were expected
    /// before.
    pub(crate) fn end(&mut self) -> bool {
        let more_was_to_come = matches!(self, Self::Parts { .. });
        if more_was_to_come {
            *self = Self::Nothing;
        }
        more_was_to_come
    }
}

/// Tells whether readers of the flight (shared fetch) need the stored bytes of a body now, or only
/// later requests need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needed {
    ByReaders,
    Later,
}
