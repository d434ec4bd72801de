//! Watches the error responses that foxy itself generates after a reload, and reverts the reload if
//! their number rises suddenly.

use crate::serve::reload::Reloader;
use foxy_base::clock;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::Gauges;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Time for which foxy watches its errors after a reload.
pub const WATCH_TIME: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Number of error counts from before a reload, one for each second. The errors after the reload
/// are compared with these counts.
const MAX_EARLIER_COUNTS: usize = 30;
/// Smallest number of errors for which foxy reverts a reload.
const LEAST_ERRORS: u64 = 10;

/// Number of requests, and of error responses that foxy itself generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    pub requests: u64,
    pub errors: u64,
}

impl AnswerCounts {
    pub fn of(gauges: &Gauges) -> Self {
        Self {
            requests: gauges.count(Counter::Requests),
            errors: gauges.count(Counter::LocalErrors),
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

impl fmt::Display for AnswerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} errors for {} requests", self.errors, self.requests)
    }
}

/// Returns whether the share of errors has risen suddenly. The share of errors among all requests
/// after the reload must be at least twice the share before, and more than 5 percentage points
/// higher. There must also be [`LEAST_ERRORS`] errors.
fn have_jumped(before: AnswerCounts, after: AnswerCounts) -> bool {
    let share = |counts: AnswerCounts| counts.errors as f64 / counts.requests.max(1) as f64;
    let (old, new) = (share(before), share(after));
    after.errors >= LEAST_ERRORS && new >= 2.0 * old && new > old + 0.05
}

/// The counters' values in each second of the last half minute, newest first.
#[derive(Debug, Default)]
pub struct EarlierCounts(VecDeque<AnswerCounts>);

impl EarlierCounts {
    /// Adds the counters' values of this second.
    pub fn add(&mut self, counts: AnswerCounts) {
        self.0.truncate(MAX_EARLIER_COUNTS - 1);
        self.0.push_front(counts);
    }

    /// Returns the growth of the counters from their oldest known values to `now`.
    pub fn until(&self, now: AnswerCounts) -> AnswerCounts {
        now.since(self.0.back().copied().unwrap_or_default())
    }
}

/// Watches errors after the reload `number`, for [`WATCH_TIME`] or until a later reload, and takes
/// the reload back if their number rises suddenly. `before` counts the requests and errors in the
/// time before the reload. Returns the outcome as JSON.
pub async fn watch(
    reloader: Rc<Reloader>,
    gauges: Gauges,
    before: AnswerCounts,
    number: u64,
) -> Value {
    let (start, until) = (AnswerCounts::of(&gauges), clock::monotonic() + WATCH_TIME);
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let after = AnswerCounts::of(&gauges).since(start);
        let is_over = clock::monotonic() >= until || reloader.number() != number;
        let is_taken_back = have_jumped(before, after) && reloader.take_back(number);
        if is_taken_back || is_over {
            let outcome = if is_taken_back {
                "took the change back, because errors jumped"
            } else {
                "the change stays"
            };
            let report = format!("{outcome}: {after}; before the change {before}");
            return json!({ "taken_back": is_taken_back, "report": report });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_jump_if_they_are_many_and_much_more_frequent() {
        let counts = |errors, requests| AnswerCounts { requests, errors };
        for (before, after, expected) in [
            (counts(0, 0), counts(10, 10), true),
            (counts(0, 0), counts(9, 9), false),
            (counts(0, 1000), counts(50, 1000), false),
            (counts(0, 1000), counts(51, 1000), true),
            (counts(400, 1000), counts(790, 1000), false),
            (counts(400, 1000), counts(800, 1000), true),
            (counts(900, 1000), counts(1000, 1000), false),
        ] {
            assert_eq!(have_jumped(before, after), expected, "{before}, {after}");
        }
    }

    #[test]
    fn the_time_before_a_reload_is_the_last_half_minute() {
        let counts = |requests| AnswerCounts { requests, errors: 0 };
        let mut earlier = EarlierCounts::default();
        assert_eq!(earlier.until(counts(7)), counts(7));
        (1..=100).for_each(|requests| earlier.add(counts(requests)));
        assert_eq!(earlier.until(counts(100)), counts(29));
    }
}
