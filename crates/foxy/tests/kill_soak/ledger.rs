//! The ledger of the soak test: for each page, the versions that the origin sent and that clients
//! received. Also has the rules that every response must obey. A version is acknowledged when a
//! client has received it completely.

use crate::pages::{LANGUAGES, Page};
use foxy_base::clock;
use foxy_base::time::Instant;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Tolerance: foxy may reuse a response for this time after its lifetime. HTTP times are whole
/// seconds, and the test machine is busy.
const SLACK: Duration = Duration::from_secs(2);

/// After a kill, the clock time in foxy's file may be behind the time of the kill by up to this
/// duration.
const CLOCK_LAG: Duration = Duration::from_secs(2);

/// Longest time between the start of a fetch in foxy and its arrival at the origin. Used if the
/// test knows only the arrival.
const FETCH_LEAD: Duration = Duration::from_secs(5);

/// Number of recent events that are kept for each page.
const REMEMBERED: usize = 60;

/// Tells which requests must no longer receive a version older than the acknowledged version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Each request that begins after the end of the acknowledged response.
    Always,
    /// Each request to a run of foxy after the run with this number.
    AfterRun(u64),
}

/// An acknowledgement: a client received this version from the origin. Later requests must not
/// receive an older version.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub version: u64,
    /// Latest possible time at which the request that fetched this version began.
    pub begun: Instant,
    pub ended: Instant,
    pub holds: Holds,
}

/// The first and the last time at which the origin sent a version of a page.
#[derive(Clone, Copy, Debug)]
struct Handed {
    first: Instant,
    last: Instant,
}

/// A variant of a page: the versions that the origin sent, and the acknowledgements.
#[derive(Debug, Default)]
pub struct Shelf {
    /// The current version at the origin.
    pub version: u64,
    /// Number of 304 responses that the origin sent.
    pub renewals: u64,
    handed: HashMap<u64, Handed>,
    acks: Vec<Ack>,
}

/// Source of a response, according to `Cache-Status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The cache answered without the origin.
    Hit,
    /// foxy sent a request to the origin. The origin may have confirmed the stored response with a
    /// 304.
    Fetched,
    /// The response came from a fetch that another request had begun.
    Joined,
}

/// A response that a client received.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub begun: Instant,
    pub version: u64,
    pub way: Way,
    /// Number of the run of foxy that sent the response. A run lasts from a start of foxy to its
    /// end.
    pub run: u64,
    /// Whether the client asked for a fresh response (`Cache-Control: no-cache`).
    pub reload: bool,
}

/// A rule that a response broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// Bytes, length or fields of the response do not belong to any version that the origin sent.
    Wrong,
    /// The version is older than a version that was acknowledged before the request began.
    Older,
    /// Like `Older`, for a page whose slow fetch was in progress during a storm (a burst of
    /// thousands of requests).
    OlderAfterStorm,
    /// foxy reused the response for longer than its lifetime.
    Outlived,
    /// foxy reused the response although a purge of it was confirmed.
    Purged,
    /// foxy answered a reload without asking the origin.
    NotReloaded,
    /// foxy did not start, did not stop, or did not answer.
    Dead,
}

impl Shelf {
    /// Records that the origin sends its current version at the time `now`.
    pub fn hand_out(&mut self, now: Instant) {
        self.handed.entry(self.version).or_insert(Handed { first: now, last: now }).last = now;
    }

    pub fn acknowledge(&mut self, ack: Ack) {
        self.acks.push(ack);
    }

    /// Acknowledges a version that a client received from the cache or from another client's fetch.
    /// Assumes that the fetch began [`FETCH_LEAD`] before the origin first sent the version.
    pub fn acknowledge_reused(&mut self, version: u64, ended: Instant) {
        if let Some(handed) = self.handed.get(&version) {
            let begun = handed.first - FETCH_LEAD;
            let known = self.acks.iter().any(|ack| ack.version == version && ack.begun >= begun);
            if !known {
                self.acks.push(Ack { version, begun, ended, holds: Holds::Always });
            }
        }
    }

    /// Returns the rule that the response breaks, or `None`. `lifetime` is the time for which its
    /// version may be reused. `purges` has the start and end of each purge of the page.
    pub fn judge(
        &self,
        seen: Seen,
        lifetime: Duration,
        purges: &[(Instant, Instant)],
    ) -> Option<Broken> {
        let Some(handed) = self.handed.get(&seen.version) else { return Some(Broken::Wrong) };
        let in_force = |ack: &&Ack| match ack.holds {
            Holds::Always => true,
            Holds::AfterRun(run) => seen.run > run,
        };
        let newer = |ack: &Ack| {
            ack.version > seen.version && ack.ended < seen.begun && handed.last < ack.begun
        };
        if self.acks.iter().filter(in_force).any(newer) {
            return Some(Broken::Older);
        }
        if seen.way != Way::Hit {
            return None;
        }
        if seen.reload {
            return Some(Broken::NotReloaded);
        }
        if seen.begun.since(handed.last) > lifetime {
            return Some(Broken::Outlived);
        }
        let purged =
            purges.iter().any(|(begun, ended)| *ended < seen.begun && handed.last < *begun);
        purged.then_some(Broken::Purged)
    }

    /// Returns the time at which the origin last sent a version.
    fn last(&self, version: u64) -> Option<Instant> {
        self.handed.get(&version).map(|handed| handed.last)
    }
}

/// The records of a page: its variants, purges and recent events.
#[derive(Default)]
pub struct Book {
    pub shelves: [Shelf; LANGUAGES.len()],
    purges: Vec<(Instant, Instant)>,
    events: VecDeque<(Instant, String)>,
}

impl Book {
    pub fn note(&mut self, event: String) {
        self.events.push_back((clock::monotonic(), event));
        if self.events.len() > REMEMBERED {
            self.events.pop_front();
        }
    }

    /// Whether the origin has received a request for the page.
    pub fn was_asked_for(&self) -> bool {
        self.shelves.iter().any(|shelf| !shelf.handed.is_empty())
    }

    pub fn purged(&mut self, begun: Instant, ended: Instant) {
        self.purges.push((begun, ended));
    }
}

/// A period in which foxy was down and the clock was set back. The clock cannot tell foxy how long
/// the period was.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub died: Instant,
    pub back: Instant,
}

/// Counters of events in the whole soak test.
#[derive(Default)]
pub struct Counts {
    pub whole: AtomicU64,
    pub hits: AtomicU64,
    pub renewed: AtomicU64,
    pub joined: AtomicU64,
    pub reloads: AtomicU64,
    pub unsafe_requests: AtomicU64,
    pub purges: AtomicU64,
    pub broken_off: AtomicU64,
    pub refused: AtomicU64,
    pub bytes: AtomicU64,
}

pub fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// All pages and their records.
pub struct Ledger {
    pub pages: Vec<Page>,
    books: Vec<Mutex<Book>>,
    gaps: Mutex<Vec<Gap>>,
    found: Mutex<Vec<(Broken, String)>>,
    /// Index in `pages` of the first page for storms, which are bursts of thousands of requests. All
    /// pages after it are for storms too.
    storms_from: usize,
    pub counts: Counts,
}

impl Ledger {
    pub fn new(pages: Vec<Page>, storms_from: usize) -> Self {
        let books = pages.iter().map(|_| Mutex::default()).collect();
        let (gaps, found, counts) = (Mutex::default(), Mutex::default(), Counts::default());
        Self { pages, books, gaps, found, storms_from, counts }
    }

    pub fn book(&self, page: usize) -> MutexGuard<'_, Book> {
        locked(&self.books[page])
    }

    pub fn gap(&self, gap: Gap) {
        locked(&self.gaps).push(gap);
    }

    /// Judges a response. If it breaks a rule, records a finding with the recent events of the
    /// page.
    pub fn judge(&self, page: usize, language: usize, seen: Seen) -> Option<Broken> {
        let about = &self.pages[page];
        let book = self.book(page);
        let shelf = &book.shelves[about.variant(language)];
        let mut lifetime = Duration::from_secs(about.max_age) + SLACK;
        if let Some(last) = shelf.last(seen.version) {
            let gaps = locked(&self.gaps);
            let since = gaps.iter().filter(|gap| gap.back > last && gap.died < seen.begun);
            lifetime += since.map(|gap| gap.back.since(gap.died) + CLOCK_LAG).sum::<Duration>();
        }
        let mut broken = shelf.judge(seen, lifetime, &book.purges);
        if broken == Some(Broken::Older) && page >= self.storms_from {
            broken = Some(Broken::OlderAfterStorm);
        }
        drop(book);
        if let Some(broken) = broken {
            self.found(broken, page, &format!("{}: {seen:?}", LANGUAGES[about.variant(language)]));
        }
        broken
    }

    /// Records a finding about a page, with the recent events of the page.
    pub fn found(&self, broken: Broken, page: usize, what: &str) {
        let book = self.book(page);
        let mut text = format!("{broken:?}: {:?}\n  {what}\n", self.pages[page]);
        for (time, event) in &book.events {
            text.push_str(&format!("  {:10.4} s {event}\n", seconds(*time)));
        }
        drop(book);
        self.found_elsewhere(broken, text);
    }

    /// Records a finding that belongs to no single page.
    pub fn found_elsewhere(&self, broken: Broken, text: String) {
        locked(&self.found).push((broken, text));
    }

    pub fn broken(&self, rule: Broken) -> usize {
        locked(&self.found).iter().filter(|(broken, _)| *broken == rule).count()
    }

    /// Returns the number of all findings.
    pub fn total(&self) -> usize {
        locked(&self.found).len()
    }

    /// Returns the first `most` findings of each kind as text.
    pub fn findings(&self, most: usize) -> Vec<String> {
        let found = locked(&self.found);
        let mut texts: Vec<(Broken, usize, String)> = Vec::new();
        for (broken, text) in found.iter() {
            match texts.iter_mut().find(|(known, ..)| known == broken) {
                Some((_, more, _)) if *more + 1 >= most => {}
                Some((_, more, all)) => {
                    *more += 1;
                    all.push_str(text);
                }
                None => texts.push((*broken, 0, text.clone())),
            }
        }
        texts.into_iter().map(|(_, _, text)| text).collect()
    }
}

pub fn seconds(time: Instant) -> f64 {
    time.since(Instant::ZERO).as_secs_f64()
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Creates the records of a variant. The origin sent version 1 at the second `first`, and
    /// version 2 at the second `second`. A request from second 19 to second 22 acknowledged version
    /// 2.
    fn shelf(first: u64, second: u64, holds: Holds) -> Shelf {
        let mut shelf = Shelf::default();
        for (version, time) in [(1, first), (2, second)] {
            shelf.version = version;
            shelf.hand_out(at(time));
        }
        shelf.acknowledge(Ack { version: 2, begun: at(19), ended: at(22), holds });
        shelf
    }

    fn seen(version: u64, begun: u64, way: Way) -> Seen {
        Seen { begun: at(begun), version, way, run: 1, reload: false }
    }

    #[test]
    fn an_older_answer_is_one_to_a_request_after_the_newer_was_acknowledged() {
        for (first, holds, begun, verdict) in [
            (10, Holds::Always, 30, Some(Broken::Older)),
            // This request began before the newer version had arrived completely.
            (10, Holds::Always, 21, None),
            // The origin sent the older version after the request for the newer version had begun.
            // So their order in foxy is unknown.
            (20, Holds::Always, 30, None),
            (10, Holds::AfterRun(1), 30, None),
            (10, Holds::AfterRun(0), 30, Some(Broken::Older)),
        ] {
            let shelf = shelf(first, 21, holds);
            assert_eq!(
                shelf.judge(seen(1, begun, Way::Hit), HOUR, &[]),
                verdict,
                "{first} {holds:?} {begun}"
            );
        }
        assert_eq!(shelf(10, 21, Holds::Always).judge(seen(2, 30, Way::Joined), HOUR, &[]), None);
    }

    #[test]
    fn what_was_never_handed_out_is_wrong() {
        let shelf = shelf(10, 21, Holds::Always);
        assert_eq!(shelf.judge(seen(3, 30, Way::Fetched), HOUR, &[]), Some(Broken::Wrong));
    }

    #[test]
    fn a_hit_must_not_outlive_its_answer_a_purge_or_a_reload() {
        let shelf = shelf(10, 21, Holds::Always);
        let short = Duration::from_secs(5);
        let hit = |begun| seen(2, begun, Way::Hit);
        assert_eq!(shelf.judge(hit(26), short, &[]), None);
        assert_eq!(shelf.judge(hit(27), short, &[]), Some(Broken::Outlived));
        assert_eq!(shelf.judge(hit(27), HOUR, &[(at(23), at(24))]), Some(Broken::Purged));
        assert_eq!(shelf.judge(hit(27), HOUR, &[(at(20), at(24))]), None);
        let reload = Seen { reload: true, ..hit(27) };
        assert_eq!(shelf.judge(reload, HOUR, &[]), Some(Broken::NotReloaded));
    }
}
