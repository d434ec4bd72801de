//! Versions that the origin handed out and that clients saw, page by page, and the rules that no
//! answer may break.

use crate::pages::{LANGUAGES, Page};
use foxy_base::clock;
use foxy_base::time::Instant;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How much longer than its lifetime an answer may be reused: times are whole seconds on the wire,
/// and the machine is busy.
const SLACK: Duration = Duration::from_secs(2);

/// How far the time that a store has on disk may lag behind when foxy is killed.
const CLOCK_LAG: Duration = Duration::from_secs(2);

/// How long before the origin sees it a fetch may have begun in foxy, where only the origin saw it.
const FETCH_LEAD: Duration = Duration::from_secs(5);

/// Events that are kept of each page.
const REMEMBERED: usize = 60;

/// From when on an acknowledged version counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// From the end of the answer on.
    Always,
    /// Only once that run of foxy has ended.
    AfterRun(u64),
}

/// A version that a client has from the origin: nothing older may be answered to who asks later.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub version: u64,
    /// When what brought it began, at the latest that is sure.
    pub begun: Instant,
    pub ended: Instant,
    pub holds: Holds,
}

/// The times at which a version was handed out.
#[derive(Clone, Copy, Debug)]
struct Handed {
    first: Instant,
    last: Instant,
}

/// One variant of a page.
#[derive(Debug, Default)]
pub struct Shelf {
    /// The version that the origin has now.
    pub version: u64,
    /// 304s so far.
    pub renewals: u64,
    handed: HashMap<u64, Handed>,
    acks: Vec<Ack>,
}

/// How an answer was reached, as `Cache-Status` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the cache alone.
    Hit,
    /// By a fetch of its own, the origin's 304 included.
    Fetched,
    /// With the fetch that another request began.
    Joined,
}

/// An answer to a client.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub begun: Instant,
    pub version: u64,
    pub way: Way,
    /// The run of foxy that answered.
    pub run: u64,
    /// Whether the request asked past the cache.
    pub reload: bool,
}

/// A rule that an answer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// The bytes, the length or the fields belong to nothing that the origin has.
    Wrong,
    /// Older than a version that was acknowledged before its request began.
    Older,
    /// As `Older`, of a page whose slow fetch outlasted a storm.
    OlderAfterStorm,
    /// Reused for longer than its lifetime.
    Outlived,
    /// Reused although a purge was confirmed.
    Purged,
    /// A reload was answered without the origin.
    NotReloaded,
    /// foxy did not start, did not stop, or did not answer.
    Dead,
}

impl Shelf {
    /// Notes that the origin hands out its version now.
    pub fn hand_out(&mut self, now: Instant) {
        self.handed.entry(self.version).or_insert(Handed { first: now, last: now }).last = now;
    }

    pub fn acknowledge(&mut self, ack: Ack) {
        self.acks.push(ack);
    }

    /// Acknowledges a version that came from the cache, or with another client's fetch.
    pub fn acknowledge_reused(&mut self, version: u64, ended: Instant) {
        if let Some(handed) = self.handed.get(&version) {
            let begun = handed.first - FETCH_LEAD;
            let known = self.acks.iter().any(|ack| ack.version == version && ack.begun >= begun);
            if !known {
                self.acks.push(Ack { version, begun, ended, holds: Holds::Always });
            }
        }
    }

    /// The rule that this answer breaks, if any; `lifetime` is how long its version may be reused,
    /// and purges of the page are given as when they began and ended.
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

    /// When a version was handed out last.
    fn last(&self, version: u64) -> Option<Instant> {
        self.handed.get(&version).map(|handed| handed.last)
    }
}

/// All of a page.
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

    /// Whether the origin has handed out any of it.
    pub fn was_asked_for(&self) -> bool {
        self.shelves.iter().any(|shelf| !shelf.handed.is_empty())
    }

    pub fn purged(&mut self, begun: Instant, ended: Instant) {
        self.purges.push((begun, ended));
    }
}

/// A restart with the clock behind the latest time that foxy had seen: what passed meanwhile nobody
/// can know.
#[derive(Clone, Copy, Debug)]
pub struct Gap {
    pub died: Instant,
    pub back: Instant,
}

/// Numbers of the whole soak.
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

/// All pages with all that is known of them.
pub struct Ledger {
    pub pages: Vec<Page>,
    books: Vec<Mutex<Book>>,
    gaps: Mutex<Vec<Gap>>,
    found: Mutex<Vec<(Broken, String)>>,
    /// The first of the pages of storms.
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

    /// Judges an answer, and keeps it with the page's events when it breaks a rule.
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

    /// Keeps what is wrong, with the page's events.
    pub fn found(&self, broken: Broken, page: usize, what: &str) {
        let book = self.book(page);
        let mut text = format!("{broken:?}: {:?}\n  {what}\n", self.pages[page]);
        for (time, event) in &book.events {
            text.push_str(&format!("  {:10.4} s {event}\n", seconds(*time)));
        }
        drop(book);
        self.found_elsewhere(broken, text);
    }

    /// Keeps what is wrong and is of no page.
    pub fn found_elsewhere(&self, broken: Broken, text: String) {
        locked(&self.found).push((broken, text));
    }

    /// How many answers broke this rule.
    pub fn broken(&self, rule: Broken) -> usize {
        locked(&self.found).iter().filter(|(broken, _)| *broken == rule).count()
    }

    /// How much is wrong.
    pub fn total(&self) -> usize {
        locked(&self.found).len()
    }

    /// The first few of each kind of what is wrong, as text.
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

    /// A shelf whose versions 1 and 2 were handed out at these seconds, and 2 acknowledged by a
    /// request from 19 to 22.
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
            // The request began before the newer one had come whole.
            (10, Holds::Always, 21, None),
            // The older one was handed out while the newer was under way: nobody can know their
            // order.
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
