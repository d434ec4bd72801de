//! The peak finder of appendix D in *Squid: The Definitive Guide* (paper 000 in docs/figures.md;
//! requirements R75–R80 of `foxy figure requirements`). It searches for the load at which the
//! response time stays in a range, while the workload fills the cache twice. Module `robots` sends
//! the load.

pub mod law;

use crate::load::plan::Seen;
use crate::load::plan::{Plan, Step};
use foxy_report::figure::Condition;
use foxy_report::statistics::mean;
use foxy_workload::polymix::phases::Factors;
use law::Law;
use std::time::Duration;

/// The search ends after the workload has written this many times the cache's size (cache fills).
pub const END: f64 = 2.0;
/// The number of cache fills after which windows (spans of time with a constant load) count for the
/// summary.
pub const SUMMARY_FROM: f64 = 1.5;

/// The number of windows (spans of time with a constant load) without any answer after which the
/// search ends.
const SILENT: usize = 3;

/// The options of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The control law that chooses the next load.
    pub law: Law,
    /// The length of a window, a span of time with a constant load.
    pub window: Duration,
    /// The cache size in bytes.
    pub cache_size: u64,
    /// The load of the first window (span of time with a constant load), in requests per second.
    pub first_load: f64,
    /// The load stays at its first value for this number of cache fills. An empty cache has few
    /// hits, so its response times say nothing about the later load.
    pub hold: f64,
    /// The largest load of all robots (clients) together, in requests per second.
    pub most_load: f64,
}

/// The measurements of a finished window. A window is a span of time with a constant load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The end of the window (span of time with a constant load), measured from the start of the
    /// run.
    pub end: Duration,
    /// The requests per second that the robots (the load clients) should send in the window (span
    /// of time with a constant load).
    pub load: f64,
    /// The number of answers per second.
    pub answers: f64,
    /// The mean response time. `None` without answers.
    pub response: Option<Duration>,
    /// The hit ratio of plain GETs (without no-cache or a condition) in this window (span of time
    /// with a constant load), from 0 to 1.
    pub hit_ratio: f64,
    /// The bytes that went into the cache by the end of the window (span of time with a constant
    /// load), divided by the cache size.
    pub fill: f64,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Finder {
    search: Search,
    load: f64,
    before: Seen,
    windows: Vec<Window>,
}

/// The result of a search: means over the windows (spans of time with a constant load) between 1.5
/// and 2 cache fills.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of windows over which the means are computed. A window is a span of time with a
    /// constant load.
    pub windows: usize,
    /// The number of answers per second.
    pub answers: f64,
    /// The mean response time, in seconds.
    pub response: f64,
    /// The hit ratio of plain GETs (without no-cache or a condition) in the windows (spans of time
    /// with a constant load) of the summary, from 0 to 1.
    pub hit_ratio: f64,
    /// The share of windows (spans of time with a constant load) whose mean response time lay in
    /// the range, with 5 % tolerance. If the share is zero, the search found no peak.
    pub settled: f64,
}

/// The tolerance of 5 % at both ends of the range of response times.
const TOLERANCE: f64 = 0.05;

impl Summary {
    /// Returns a condition for a verdict (agreement with the paper): the mean response time lies in
    /// the range, with tolerance.
    pub fn window(&self, law: &Law) -> Condition {
        Condition::ResponseTime {
            seconds: self.response,
            low: law.low.as_secs_f64() / (1.0 + TOLERANCE),
            high: law.high.as_secs_f64() * (1.0 + TOLERANCE),
        }
    }
}

impl Finder {
    /// Starts a search at its first load.
    pub const fn new(search: Search) -> Self {
        let before = Seen {
            begun: 0,
            ended: 0,
            answered: 0,
            response_us: 0,
            plain: 0,
            hits: 0,
            fill_bytes: 0,
            frozen: false,
        };
        Self { load: search.first_load, search, before, windows: Vec::new() }
    }

    /// Returns the load in the current window (span of time with a constant load), in requests per
    /// second.
    pub const fn load(&self) -> f64 {
        self.load
    }

    /// Returns the windows (spans of time with a constant load) that have ended.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Whether the workload has filled the cache twice.
    pub fn is_over(&self) -> bool {
        self.windows.last().is_some_and(|window| window.fill >= END)
    }

    /// Whether the last windows (spans of time with a constant load) had no answers at all.
    pub fn is_silent(&self) -> bool {
        let last = self.windows.iter().rev().take(SILENT);
        self.windows.len() >= SILENT && last.filter(|window| window.response.is_some()).count() == 0
    }

    /// Whether the load has reached its limit, at which all robots (clients) are active.
    pub fn lacks_robots(&self) -> bool {
        self.load >= self.search.most_load
    }

    /// Ends the current window (span of time with a constant load) and chooses the load of the next
    /// window. `seen` contains totals since the start of the run, such as the number of answers.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn end_window(&mut self, seen: &Seen) {
        let answered = seen.answered - self.before.answered;
        let plain = seen.plain - self.before.plain;
        let hits = seen.hits - self.before.hits;
        let response_us = seen.response_us - self.before.response_us;
        let response = (answered > 0).then(|| Duration::from_micros(response_us / answered));
        let number = u32::try_from(self.windows.len() + 1).unwrap_or(u32::MAX);
        self.windows.push(Window {
            end: self.search.window * number,
            load: self.load,
            answers: answered as f64 / self.search.window.as_secs_f64(),
            response,
            hit_ratio: hits as f64 / plain.max(1) as f64,
            fill: seen.fill_bytes as f64 / self.search.cache_size.max(1) as f64,
        });
        self.before = *seen;
        if self.windows.last().is_some_and(|window| window.fill < self.search.hold) {
            return;
        }
        self.load = self.search.law.next(self.load, response).min(self.search.most_load);
    }

    /// Returns the result. Returns `None` until the workload has filled the cache 1.5 times.
    pub fn summary(&self) -> Option<Summary> {
        let late: Vec<&Window> =
            self.windows.iter().filter(|window| window.fill >= SUMMARY_FROM).collect();
        let of = |value: fn(&Window) -> f64| {
            mean(&late.iter().map(|window| value(window)).collect::<Vec<_>>())
        };
        let within = |window: &Window| {
            let Law { low, high } = self.search.law;
            let tolerance = 1.0 + TOLERANCE;
            window.response.is_some_and(|time| {
                time.mul_f64(tolerance) >= low && time <= high.mul_f64(tolerance)
            })
        };
        let settled = late.iter().filter(|window| within(window)).count();
        #[expect(clippy::cast_precision_loss, reason = "windows of a run are few")]
        let settled = settled as f64 / late.len().max(1) as f64;
        (!late.is_empty()).then(|| Summary {
            windows: late.len(),
            answers: of(|window| window.answers),
            response: of(|window| window.response.unwrap_or_default().as_secs_f64()),
            hit_ratio: of(|window| window.hit_ratio),
            settled,
        })
    }
}

/// Runs the search as a plan for robots (clients that request pages). The run ends after two cache
/// fills, after windows (spans of time) without any answer, at the time limit, or when `watch`
/// stops it.
pub struct PeakPlan<'a> {
    /// The search for the peak load: its options, the current load, and the windows measured so
    /// far.
    pub finder: Finder,
    /// The time limit of the run.
    pub limit: Duration,
    /// A function that the plan calls after each window (span of time with a constant load). If it
    /// returns false, the run stops.
    pub watch: &'a mut dyn FnMut(&Window) -> bool,
}

impl Plan for PeakPlan<'_> {
    fn sections(&self) -> usize {
        1
    }

    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step> {
        let begun = u32::try_from(self.finder.windows.len() + 1).unwrap_or(u32::MAX);
        if elapsed >= self.finder.search.window * begun {
            self.finder.end_window(seen);
            let goes_on = self.finder.windows.last().is_some_and(|window| (self.watch)(window));
            let finder = &self.finder;
            if !goes_on || finder.is_over() || finder.is_silent() || elapsed >= self.limit {
                return None;
            }
        }
        let load = self.finder.load / self.finder.search.most_load;
        Some(Step { factors: Factors::full(load), section: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::figure::{NoVerdictReason, Verdict};

    fn search() -> Search {
        let law = Law::scaled(1);
        let window = Duration::from_secs(60);
        Search { law, window, cache_size: 1000, first_load: 100.0, hold: 0.0, most_load: 1000.0 }
    }

    #[test]
    fn three_silent_windows_end_the_search_and_a_pause_does_not() {
        let mut plan =
            PeakPlan { finder: Finder::new(search()), limit: Duration::MAX, watch: &mut |_| true };
        let mut seen = Seen::default();
        for (minute, answers) in [1, 0, 0, 1, 0, 0, 0].into_iter().enumerate() {
            seen.answered += answers;
            let minutes = u64::try_from(minute).expect("small") + 1;
            let goes_on = plan.step(Duration::from_secs(60 * minutes), &seen).is_some();
            assert_eq!(goes_on, minute < 6, "{minute}");
        }
    }

    #[test]
    fn fill_ends_the_search_and_its_last_quarter_is_the_summary() {
        let mut plan =
            PeakPlan { finder: Finder::new(search()), limit: Duration::MAX, watch: &mut |_| true };
        let mut seen = Seen::default();
        let mut minutes = 0;
        while plan.step(Duration::from_secs(60 * minutes), &seen).is_some() {
            minutes += 1;
            seen.answered += 600 * minutes;
            seen.response_us += 600 * minutes * 1_600_000;
            seen.fill_bytes += 250;
        }
        assert_eq!((minutes, plan.finder.windows().len()), (8, 8));
        let summary = plan.finder.summary().expect("filled");
        // Windows 6, 7 and 8 end at 1.5, 1.75 and 2 cache fills. They have 60, 70 and 80 answers
        // per second.
        assert_eq!((summary.windows, summary.answers, summary.settled), (3, 70.0, 1.0));
        assert!((summary.response - 1.6).abs() < 1e-9);
        let window = |response| Summary { response, ..summary }.window(&Law::scaled(1));
        assert_eq!(window(1.6).failure(Verdict::NoQuote), None);
        let late = Some(NoVerdictReason::OutsideWindow);
        assert_eq!(window(2.6).failure(Verdict::NoQuote), late);
        assert_eq!(plan.finder.load(), 100.0);
    }

    #[test]
    fn the_load_is_held_until_the_cache_is_filled_so_far() {
        let mut finder = Finder::new(Search { hold: 0.5, ..search() });
        let mut seen = Seen::default();
        let mut loads = Vec::new();
        for fill_bytes in [250, 499, 500] {
            seen = Seen { answered: seen.answered + 10, fill_bytes, ..seen };
            finder.end_window(&seen);
            loads.push(finder.load());
        }
        assert_eq!(loads, [100.0, 100.0, 105.0]);
    }

    #[test]
    fn fast_answers_raise_the_share_of_active_robots_until_there_are_no_more() {
        let mut finder = Finder::new(search());
        let mut seen = Seen::default();
        for _ in 0..60 {
            seen.answered += 10;
            finder.end_window(&seen);
        }
        assert!(finder.lacks_robots() && (finder.load() - 1000.0).abs() < 1e-9);
        assert_eq!(finder.summary(), None);
    }
}
