//! The load of a server: its number of requests in progress, and the latency that these and earlier
//! requests have observed.

use foxy_base::Instant;
use std::time::Duration;

/// After this time, an observed latency has lost about two thirds of its weight. So a server that
/// was slow receives requests again, even if no request has measured it since.
const MEMORY: Duration = Duration::from_secs(10);

/// All latencies below this value count as this value. Among fast servers, the number of requests
/// in progress then decides.
const LEAST_LATENCY: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ServerLoad {
    in_flight: u64,
    /// Number of requests in progress that still wait for the head of their response.
    waiting: u64,
    /// Sum of the times in nanoseconds at which the waiting requests began to wait.
    begun: u128,
    /// The known latency in seconds. A higher observed latency replaces it at once. Otherwise it
    /// falls gradually.
    latency: f64,
    observed: Instant,
}

impl ServerLoad {
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn begin(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Notes that a request without a body begins to wait for its response.
    pub(crate) fn wait(&mut self, now: Instant) {
        self.waiting += 1;
        self.begun += u128::from(now.0);
    }

    /// Notes that a request no longer waits. It began to wait at `since`.
    pub(crate) fn wait_no_more(&mut self, since: Instant) {
        self.waiting = self.waiting.saturating_sub(1);
        self.begun = self.begun.saturating_sub(u128::from(since.0));
    }

    /// Records the latency of a response. A higher latency than before counts at once. A lower
    /// latency counts gradually.
    pub(crate) fn observe(&mut self, latency: Duration, now: Instant) {
        let (kept, latency) = (self.share_kept(now), latency.as_secs_f64());
        let before = self.latency * kept;
        self.latency =
            if latency > before { latency } else { self.latency * kept + latency * (1.0 - kept) };
        self.observed = now;
    }

    /// Returns the cost of sending another request to this server, for comparison with other
    /// servers. The cost grows with the known latency. If requests in progress have already waited
    /// longer, their mean wait replaces the latency.
    pub(crate) fn cost(&self, now: Instant) -> f64 {
        let known = (self.latency * self.share_kept(now)).max(LEAST_LATENCY.as_secs_f64());
        (self.in_flight as f64 + 1.0) * known.max(self.mean_wait(now).as_secs_f64())
    }

    fn share_kept(&self, now: Instant) -> f64 {
        (-now.since(self.observed).as_secs_f64() / MEMORY.as_secs_f64()).exp()
    }

    fn mean_wait(&self, now: Instant) -> Duration {
        let Some(mean) = self.begun.checked_div(self.waiting.into()) else { return Duration::ZERO };
        now.since(Instant(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_slow_response_counts_at_once_and_is_forgotten_slowly() {
        let mut load = ServerLoad::default();
        load.observe(Duration::from_millis(20), at(0));
        load.observe(Duration::from_secs(1), at(10));
        assert!((0.99..1.01).contains(&load.cost(at(10))));
        load.observe(Duration::from_millis(20), at(20));
        assert!(load.cost(at(20)) > 0.9);
        assert!(load.cost(at(60_000)) < 0.02);
    }

    #[test]
    fn requests_in_flight_and_their_wait_raise_the_cost() {
        let mut load = ServerLoad::default();
        let idle = load.cost(at(0));
        load.begin();
        load.wait(at(0));
        assert!(load.cost(at(0)) > 1.9 * idle);
        assert!(load.cost(at(3000)) > 5.0, "two requests, and 3 s of silence");
        load.wait_no_more(at(0));
        load.end();
        assert_eq!(load.cost(at(3000)), idle);
    }
}
