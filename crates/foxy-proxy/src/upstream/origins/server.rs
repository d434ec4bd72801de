//! A server of an origin: its URL, and the judgement of its health by requests and probes. A
//! *probe* is a request that the proxy sends regularly for this purpose. After a failure, a server
//! *rests*: it receives no requests for some time. All functions take the time and the random
//! generator as arguments.

use crate::upstream::Scheme;
use crate::upstream::error::{ConnectError, Http2Error, UpstreamError};
use crate::upstream::fail_over::{Rest, WhileResting};
use crate::upstream::origins::load::ServerLoad;
use foxy_base::{Instant, Random};
use std::fmt;
use std::time::Duration;

/// After its rest (pause without requests), a server first receives [`LEAST_SHARE`] of its usual
/// share of requests. During this time, the share grows to the full share.
const SLOW_START: Duration = Duration::from_secs(10);
const LEAST_SHARE: f64 = 0.1;

/// Weight of the newest response in the moving average of failures.
const FAILURE_WEIGHT: f64 = 0.2;
/// If the share of failures reaches this value, the server rests (receives no requests for some
/// time). Three failures in a row reach it.
const MOST_FAILURES: f64 = 0.45;

/// For this time after a failure, the server is in doubt: a request that may not be sent twice goes
/// to another server if possible.
const DOUBT: Duration = Duration::from_secs(2);

/// After this number of failed probes in a row, the server rests (receives no requests for some
/// time).
const MOST_FAILED_PROBES: u32 = 2;

/// A server of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginServer {
    /// Whether the proxy uses TLS with the server.
    pub scheme: Scheme,
    /// The host name or address.
    pub host: String,
    /// Port of the server.
    pub port: u16,
}

impl OriginServer {
    fn bracketed(&self) -> String {
        let is_bare = self.host.contains(':') && !self.host.starts_with('[');
        if is_bare { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Returns host and port in the form of the Host field. The default port is left out.
    pub fn authority(&self) -> String {
        let host = self.bracketed();
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for OriginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.as_str(), self.bracketed(), self.port)
    }
}

/// How a server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// The proxy cannot connect to the server.
    Unreachable,
    /// The server accepts connections, but fails requests: no response, no response in time, a
    /// malformed response, or status 500, 502, 503 or 504.
    Failing,
}

impl ServerFault {
    /// Returns the server's fault that an error shows. Returns `None` if the server may not have
    /// caused the error.
    pub(crate) const fn of(error: UpstreamError) -> Option<Self> {
        match error {
            UpstreamError::Connect(
                ConnectError::Forbidden(_) | ConnectError::OutOfResources | ConnectError::Parent(_),
            )
            | UpstreamError::RequestBodyBroken
            | UpstreamError::BodyTimeout
            | UpstreamError::Http2(Http2Error::Crowded) => None,
            UpstreamError::Connect(_) => Some(Self::Unreachable),
            UpstreamError::NoResponse
            | UpstreamError::HeadTimeout
            | UpstreamError::BadResponse(_)
            | UpstreamError::Reset
            | UpstreamError::Http2(_) => Some(Self::Failing),
        }
    }

    /// Returns true if this status means that the server failed.
    pub(crate) const fn is_status(status: u16) -> bool {
        matches!(status, 500 | 502 | 503 | 504)
    }
}

/// Whether a server may receive requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ServerRank {
    Works,
    /// The server's rest (pause without requests) is over, but no request has tried the server
    /// since.
    OnTrial,
    Rests,
}

/// The state of a server, as the proxy knows it. All workers share it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ServerState {
    fault: Option<ServerFault>,
    /// Time of the last failure that began a rest (pause without requests).
    failed: Instant,
    /// Time of the last failure of a request.
    last_failure: Option<Instant>,
    rest: Rest,
    /// Share of failures among the last responses: a moving average from 0 to 1.
    failing: f64,
    failed_probes: u32,
    probed: Instant,
    /// Time at which the server returned from its rest (pause without requests). The server's share
    /// of requests grows from then on.
    returned: Option<Instant>,
    pub(crate) load: ServerLoad,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
}

impl ServerState {
    /// Returns the state of a new server of an origin that already has servers.
    pub(crate) fn joining(now: Instant) -> Self {
        Self { returned: Some(now), ..Self::default() }
    }

    /// Returns the state that the server has after a reload. The load of the server is counted from
    /// zero.
    pub(crate) fn continued(&self) -> Self {
        Self { load: ServerLoad::default(), ..*self }
    }

    pub(crate) fn rank(&self, now: Instant) -> ServerRank {
        match self.fault {
            _ if self.failed_probes >= MOST_FAILED_PROBES => ServerRank::Rests,
            None => ServerRank::Works,
            Some(_) if now >= self.rest.until() => ServerRank::OnTrial,
            Some(_) => ServerRank::Rests,
        }
    }

    /// Returns the time at which the server's rest (pause without requests) ends. If requests
    /// succeed and only the probes of the server fail, returns time zero, so that the server is
    /// preferred to servers that rest.
    pub(crate) fn rests_until(&self) -> Instant {
        if self.fault.is_some() { self.rest.until() } else { Instant::ZERO }
    }

    /// Returns true if a request has failed on the server lately. The server may still work, or may
    /// soon rest (receive no requests).
    pub(crate) fn is_in_doubt(&self, now: Instant) -> bool {
        self.last_failure.is_some_and(|failure| now.since(failure) < DOUBT)
    }

    /// Returns the cost of sending another request to this server. The server with the lowest cost
    /// is the best choice.
    pub(crate) fn cost(&self, now: Instant) -> f64 {
        self.load.cost(now) / self.share(now)
    }

    fn share(&self, now: Instant) -> f64 {
        self.returned.map_or(1.0, |returned| {
            let grown = now.since(returned).as_secs_f64() / SLOW_START.as_secs_f64();
            grown.clamp(LEAST_SHARE, 1.0)
        })
    }

    /// Notes that a request will be sent to the server.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.requests += 1;
        self.load.begin();
        if self.fault.is_some() {
            self.rest.try_now(now);
        }
    }

    /// Records a response without a failure status, to a request that began at `since`. If the
    /// request began before the last failure, its response does not show that the server works
    /// again.
    pub(crate) fn works(&mut self, since: Instant, now: Instant) {
        if self.fault.is_some() && since < self.failed {
            return;
        }
        self.failing *= 1.0 - FAILURE_WEIGHT;
        if self.fault.take().is_some() {
            self.rest.is_passed(now);
            self.returned = Some(now);
        } else if self.returned.is_some_and(|returned| now.since(returned) >= SLOW_START) {
            self.returned = None;
            self.rest = Rest::default();
        }
    }

    /// Records a failure of a request. Returns true if the server rests (receives no requests for
    /// some time) from now on.
    pub(crate) fn fails(&mut self, fault: ServerFault, now: Instant, random: &mut Random) -> bool {
        self.errors += 1;
        self.last_failure = Some(now);
        self.failing += (1.0 - self.failing) * FAILURE_WEIGHT;
        let is_known = self.fault.is_some();
        if fault == ServerFault::Failing && !is_known && self.failing < MOST_FAILURES {
            return false;
        }
        let during = if is_known { WhileResting::Ignore } else { WhileResting::Count };
        if !self.rest.begin(during, now, random) {
            return false;
        }
        self.fault = Some(fault);
        self.failed = now;
        self.failing = 0.0;
        true
    }

    /// Returns true if the server must be probed now, and then notes that the probe begins.
    pub(crate) fn begins_probe(&mut self, interval: Duration, now: Instant) -> bool {
        let is_due = self.probed == Instant::ZERO || now.since(self.probed) >= interval;
        if is_due {
            self.probed = now;
        }
        is_due
    }

    /// Records the result of a probe. If the proxy could not connect to the server, a good probe
    /// ends the server's rest (pause without requests). If requests failed on the server, a good
    /// probe does not end the rest.
    pub(crate) fn probe_ends(&mut self, is_good: bool, now: Instant) {
        if !is_good {
            self.failed_probes = self.failed_probes.saturating_add(1);
            return;
        }
        if self.failed_probes >= MOST_FAILED_PROBES {
            self.returned = Some(now);
        }
        self.failed_probes = 0;
        if self.fault == Some(ServerFault::Unreachable) {
            self.rest.end_early(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::fail_over::Tried;
    use crate::upstream::origins::choice::{Repeatable, choose};

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn failing(failures: usize) -> (ServerState, Random) {
        let (mut server, mut random) = (ServerState::default(), Random::new(1));
        for _ in 0..failures {
            server.fails(ServerFault::Failing, at(0), &mut random);
        }
        (server, random)
    }

    #[test]
    fn three_failures_in_a_row_are_a_rest_and_a_failed_connection_at_once() {
        assert_eq!(failing(2).0.rank(at(0)), ServerRank::Works);
        assert_eq!(failing(3).0.rank(at(0)), ServerRank::Rests);
        let (mut server, mut random) = failing(0);
        server.fails(ServerFault::Unreachable, at(0), &mut random);
        assert_eq!(server.rank(at(0)), ServerRank::Rests);
    }

    #[test]
    fn half_of_the_requests_failing_is_soon_a_rest_and_a_tenth_never() {
        for (every, expected) in [(2, ServerRank::Rests), (10, ServerRank::Works)] {
            let (mut server, mut random) = failing(0);
            for number in 0..20 {
                match number % every {
                    0 => drop(server.fails(ServerFault::Failing, at(0), &mut random)),
                    _ if server.rank(at(0)) == ServerRank::Works => server.works(at(0), at(0)),
                    _ => {}
                }
            }
            assert_eq!(server.rank(at(0)), expected, "each {every}th request fails");
        }
    }

    #[test]
    fn each_failure_casts_doubt_for_a_while() {
        assert!(!failing(0).0.is_in_doubt(at(0)));
        let server = failing(1).0;
        assert_eq!(server.rank(at(1999)), ServerRank::Works);
        assert!(server.is_in_doubt(at(1999)) && !server.is_in_doubt(at(2000)));
    }

    /// One of three servers hangs up on half of its requests. Of 20,000 requests in 20 s, each
    /// tenth may not be sent twice. Without [`DOUBT`], 49 of these requests fail in 50 runs.
    #[test]
    fn few_requests_that_may_not_be_sent_twice_fail() {
        let mut failures = 0;
        for seed in 0..50 {
            let (mut servers, mut random) = ([ServerState::default(); 3], Random::new(seed));
            for number in 0..20_000 {
                let (now, tried) = (at(10_000 + number), Tried::default());
                let repeatable = if number % 10 == 0 { Repeatable::No } else { Repeatable::Yes };
                let chosen = choose(&servers, tried, repeatable, now, &mut random);
                let chosen = chosen.expect("a server");
                let hangs_up = chosen == 0 && random.below(2) == 0;
                let server = &mut servers[chosen];
                server.begin(now);
                server.load.end();
                if hangs_up {
                    server.fails(ServerFault::Failing, now, &mut random);
                    failures += usize::from(repeatable == Repeatable::No);
                } else {
                    server.works(now, now);
                }
            }
        }
        assert!(failures <= 20, "{failures}");
    }

    #[test]
    fn a_failed_trial_is_a_longer_rest_and_a_good_trial_a_slow_start() {
        let (mut server, mut random) = failing(3);
        assert_eq!(server.rank(at(700)), ServerRank::OnTrial);
        server.begin(at(700));
        assert_eq!(server.rank(at(700)), ServerRank::Rests, "one request tries the server");
        server.fails(ServerFault::Failing, at(700), &mut random);
        assert_eq!(server.rank(at(1650)), ServerRank::Rests);
        server.begin(at(2000));
        server.works(at(600), at(1000));
        assert_eq!(server.rank(at(1000)), ServerRank::Rests, "an old request proves nothing");
        server.works(at(2000), at(2000));
        assert_eq!(server.rank(at(2000)), ServerRank::Works);
        assert!((server.share(at(2000)) - 0.1).abs() < 0.001);
        assert!((server.share(at(7000)) - 0.5).abs() < 0.001);
        server.works(at(12_000), at(12_000));
        assert_eq!((server.share(at(12_000)), server.rest), (1.0, Rest::default()));
    }

    #[test]
    fn probes_never_end_the_rest_of_a_server_that_fails_requests() {
        let (mut server, mut random) = failing(3);
        server.probe_ends(true, at(0));
        assert_eq!(server.rank(at(0)), ServerRank::Rests);
        let mut dead = ServerState::default();
        dead.fails(ServerFault::Unreachable, at(0), &mut random);
        dead.probe_ends(true, at(1));
        assert_eq!(dead.rank(at(1)), ServerRank::OnTrial);
    }

    #[test]
    fn two_failed_probes_are_a_rest_until_a_probe_succeeds() {
        let mut server = ServerState::default();
        server.probe_ends(false, at(0));
        assert_eq!(server.rank(at(0)), ServerRank::Works);
        server.probe_ends(false, at(0));
        assert_eq!(server.rank(at(60_000)), ServerRank::Rests);
        server.probe_ends(true, at(60_000));
        assert_eq!(server.rank(at(60_000)), ServerRank::Works);
        assert!(server.share(at(60_000)) < 0.2, "slow start");
    }

    #[test]
    fn probes_keep_their_interval() {
        let mut server = ServerState::default();
        let interval = Duration::from_secs(2);
        let due = [1, 1000, 2000, 2001, 4500].map(|ms| server.begins_probe(interval, at(ms)));
        assert_eq!(due, [true, false, false, true, true]);
    }
}
