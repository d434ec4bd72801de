//! The attempts of one request to get a response from the servers of an origin that the operator
//! has set.

use crate::upstream::dial::Origin;
use crate::upstream::error::ConnectError;
use crate::upstream::fail_over::Tried;
use crate::upstream::origins::choice::Repeatable;
use crate::upstream::origins::group::{GroupMember, OriginGroup, SentHost};
use crate::upstream::origins::server::ServerFault;
use foxy_base::{Instant, clock};
use foxy_http::Headers;
use std::sync::Arc;

/// The attempts of one request. At most one server has the request at a time.
pub(crate) struct ServerAttempts {
    group: Arc<OriginGroup>,
    tried: Tried,
    repeatable: Repeatable,
    /// True if more than one server may have received the request.
    was_repeated: bool,
    current: Option<RunningAttempt>,
}

/// A server has the request. Dropping this value ends the attempt.
struct RunningAttempt {
    group: Arc<OriginGroup>,
    number: usize,
    since: Instant,
    /// True while the request waits for the response head, if its latency counts. Only the latency
    /// of a request without a body counts.
    waits: bool,
}

impl RunningAttempt {
    /// Ends the wait for the response head. Returns whether the duration of this wait counts for
    /// the server's latency.
    fn stop_waiting(&mut self) -> bool {
        let waits = std::mem::take(&mut self.waits);
        if waits {
            self.group.wait_no_more(self.number, self.since);
        }
        waits
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.stop_waiting();
        self.group.end(self.number);
    }
}

impl ServerAttempts {
    pub(crate) fn new(group: &Arc<OriginGroup>, repeatable: Repeatable) -> Self {
        let (group, tried) = (Arc::clone(group), Tried::default());
        Self { group, tried, repeatable, was_repeated: false, current: None }
    }

    /// Returns true if a server must be chosen: at the start, and again after the chosen server has
    /// failed.
    pub(crate) fn needs_server(&self) -> bool {
        self.current.is_none()
    }

    /// Chooses a server for the request. `waits` says whether the time until the response head
    /// counts as a measurement of the server's latency. Only the time of a request without a body
    /// and upgrade counts.
    pub(crate) fn choose(&mut self, waits: bool) -> Result<Origin, ConnectError> {
        let (group, since) = (&self.group, clock::monotonic());
        let number = group.begin(self.tried, self.repeatable, waits, since);
        let number = number.ok_or(ConnectError::Failed)?;
        self.current = Some(RunningAttempt { group: Arc::clone(group), number, since, waits });
        Ok(group.server(number))
    }

    /// Returns the server that now has the request.
    pub(crate) fn chosen(&self) -> Option<GroupMember> {
        let server = Some(self.current.as_ref()?.number);
        Some(GroupMember { group: Arc::clone(&self.group), server })
    }

    /// Sets the Host field that the chosen server receives.
    pub(crate) fn adapt(&self, headers: &mut Headers) {
        let Some(RunningAttempt { number, .. }) = self.current else { return };
        match &self.group.settings.send_host {
            SentHost::Kept => {}
            SentHost::Server => {
                headers.set("Host", self.group.settings.servers[number].authority())
            }
            SentHost::Fixed(host) => headers.set("Host", host.as_str()),
        }
    }

    /// Records that the chosen server sent a response head without a failure status.
    pub(crate) fn works(&mut self) {
        if let Some(attempt) = &mut self.current {
            let (counts, now) = (attempt.stop_waiting(), clock::monotonic());
            self.group.works(attempt.number, attempt.since, counts, now);
        }
    }

    /// Records a failure for which the chosen server is responsible.
    pub(crate) fn fails(&mut self, fault: ServerFault) {
        if let Some(attempt) = &mut self.current {
            attempt.stop_waiting();
            self.group.fails(attempt.number, fault, clock::monotonic());
        }
    }

    /// Prepares to send the request to another server. Returns false if no other server may receive
    /// it. `received` means that the failed server may have received the request.
    pub(crate) fn try_another(&mut self, received: bool) -> bool {
        let Some(attempt) = &self.current else { return false };
        let mut tried = self.tried;
        tried.add(attempt.number);
        let is_allowed = !received || (self.repeatable == Repeatable::Yes && !self.was_repeated);
        let (repeatable, now) = (self.repeatable, clock::monotonic());
        let may = is_allowed && self.group.may_try_another(tried, repeatable, received, now);
        if may {
            self.was_repeated |= received;
            self.tried = tried;
            self.current = None;
        }
        may
    }
}
