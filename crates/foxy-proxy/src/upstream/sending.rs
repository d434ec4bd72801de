//! What both versions of HTTP know of an exchange: the request that is being sent, how long the
//! origin may take, and what can come of waiting for it. It reads and writes nothing.

use crate::upstream::body::RequestBody;
use crate::upstream::error::UpstreamError;
use crate::upstream::settings::UpstreamSettings;
use bytes::Bytes;
use foxy_http::{Headers, Method, ResponseEvent};
use std::time::Duration;
use tokio::time::Instant;

/// The request, and what of its body was not yet sent.
pub(crate) struct Sending {
    pub(crate) method: Method,
    pub(crate) target: Bytes,
    pub(crate) headers: Headers,
    pub(crate) body: RequestBody,
    pub(crate) upgrade: bool,
    pub(crate) waits_for_continue: bool,
    /// Whether a piece of the body was taken, so that it cannot be sent from its start again.
    pub(crate) taken: bool,
}

/// How far the response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Head,
    Body,
    Done,
}

/// What ended a wait for the origin.
pub(crate) enum WaitEnd {
    Event(ResponseEvent),
    ContinueTimeout,
    /// There is no answer, and perhaps the request may be sent again.
    Again(Again),
}

/// Why a request may perhaps be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// A connection that served others before turned out dead before it gave any answer.
    Lost,
    /// The origin says that it did nothing of it (RFC 9113 §8.7).
    Refused,
    /// The origin wants it over HTTP/1.1 (RFC 9113 §9.2.3).
    OverHttp1,
}

impl Sending {
    /// Whether the next piece of the body is to be sent once there is room.
    pub(crate) fn wants_piece(&self) -> bool {
        !self.waits_for_continue && !self.body.is_complete()
    }

    /// How long the origin may do nothing; `None` while it is the client's turn.
    pub(crate) fn wait(
        &self,
        stage: Stage,
        sending: bool,
        settings: &UpstreamSettings,
    ) -> Option<Duration> {
        match stage {
            Stage::Head if self.waits_for_continue && !sending => Some(settings.continue_timeout),
            Stage::Head if !sending && self.wants_piece() => None,
            Stage::Head => Some(settings.head_timeout),
            Stage::Body | Stage::Done => Some(settings.body_timeout),
        }
    }

    /// What it means that the origin did nothing for so long. `sent` says that nothing is left to
    /// be sent for now.
    pub(crate) fn timed_out(&self, stage: Stage, sent: bool) -> Result<WaitEnd, UpstreamError> {
        match stage {
            Stage::Head if self.waits_for_continue && sent => Ok(WaitEnd::ContinueTimeout),
            Stage::Head => Err(UpstreamError::HeadTimeout),
            Stage::Body | Stage::Done => Err(UpstreamError::BodyTimeout),
        }
    }
}

/// Waits until then, or for ever.
pub(crate) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
