//! A *purge* is a rule that removes stored responses. The rule applies to every response whose
//! fetch began before the purge, including responses in flight. A [`PurgeKeeper`] makes purges
//! durable. This module does no file IO.

mod followed;
pub mod journal;
mod lease;
mod rule;
mod table;

pub use followed::{FollowedLog, LogPlace};
pub use lease::PurgeLease;
pub use rule::{Named, Order, Rule, Scope, Strength, key_of};
pub(crate) use rule::{site_of, tags, url_of};
pub(crate) use table::{PurgeTable, Verdict};

use crate::cache::stored::Stored;
use crate::core::PurgeDoubt;
use foxy_base::{WallTime, clock};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for making a purge durable. It is shorter than the timeout of the admin server's
/// clients, so that they receive the result.
pub(crate) const PURGE_TIMEOUT: Duration = Duration::from_secs(4);

/// Number of purge rules that are added under one lock. Workers need the lock for look-ups, so the
/// number is small.
const RULES_PER_LOCK: usize = 256;

/// The last purge before a fetch began. Only purges with higher numbers affect the response of the
/// fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The random number of the purge journal. Zero belongs to no journal, so the cache does not
    /// use a response with this number.
    pub era: u64,
    /// The number of the last purge before the fetch began.
    pub moment: u64,
}

/// The number of a purge. All purges up to this number were compared with a stored response, and
/// none of them affects it. They are not compared again.
#[derive(Debug, Default)]
pub struct Cleared(AtomicU64);

impl Clone for Cleared {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

/// The purges that apply now. All workers share this value.
pub struct PurgeBook {
    era: u64,
    latest: AtomicU64,
    table: RwLock<PurgeTable>,
    lease: PurgeLease,
    followed: FollowedLog,
}

impl PurgeBook {
    /// Creates the book of the purges `rules`. `era` is the random number of the purge journal, and
    /// `latest` is the number of the last purge.
    pub fn new(era: u64, latest: u64, rules: &[Rule]) -> Self {
        let mut table = PurgeTable::default();
        rules.iter().for_each(|rule| table.add(rule));
        let newest = rules.iter().map(|rule| rule.moment).max().unwrap_or(0);
        Self {
            era: era.max(1),
            latest: AtomicU64::new(latest.max(newest)),
            table: RwLock::new(table),
            lease: PurgeLease::default(),
            followed: FollowedLog::default(),
        }
    }

    /// Returns the random number of the purge journal.
    pub const fn era(&self) -> u64 {
        self.era
    }

    /// Returns the number of the last purge.
    pub fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }

    /// Returns the lease of this node. A node without `fleet.engine` (a purge log that all nodes
    /// share) needs no lease.
    pub const fn lease(&self) -> &PurgeLease {
        &self.lease
    }

    /// Returns the position up to which this node has applied the purge log of its fleet.
    pub const fn followed(&self) -> &FollowedLog {
        &self.followed
    }

    /// Returns the stamp of a fetch that begins now: the number of the last purge before the fetch.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { era: self.era, moment: self.latest() }
    }

    /// Puts rules in force, in small batches so that workers do not wait long for the lock. If the
    /// cache has a store, the rules must already be durable. Stored responses contain the number of
    /// the last purge, so a crash must not undo this purge.
    pub fn apply(&self, rules: &[Rule]) {
        for part in rules.chunks(RULES_PER_LOCK) {
            let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
            part.iter().for_each(|rule| table.add(rule));
            if let Some(newest) = part.iter().map(|rule| rule.moment).max() {
                self.latest.fetch_max(newest, Ordering::AcqRel);
            }
        }
    }

    /// Returns all rules in force.
    pub fn rules(&self) -> Vec<Rule> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).rules()
    }

    /// Decides whether a purge affects a stored response. If no purge affects it, remembers this
    /// result until the next purge.
    pub(crate) fn judge(&self, stored: &Stored) -> Verdict {
        match self.judge_by_purges(stored) {
            verdict @ (Verdict::Gone | Verdict::InDoubt(_)) => verdict,
            _ if !self.lease.holds() => Verdict::InDoubt(PurgeDoubt::NoLease),
            verdict => verdict,
        }
    }

    fn judge_by_purges(&self, stored: &Stored) -> Verdict {
        let latest = self.latest();
        // A number that this list never gave comes from a list that was lost.
        if stored.begun.era != self.era || stored.begun.moment > latest {
            return Verdict::Gone;
        }
        if stored.begun.moment == latest || stored.cleared.0.load(Ordering::Relaxed) >= latest {
            return Verdict::Untouched;
        }
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let verdict =
            table.judge(url_of(&stored.key), tags(&stored.head.headers), stored.begun.moment);
        if verdict == Verdict::Untouched {
            stored.cleared.0.fetch_max(latest, Ordering::Relaxed);
        }
        verdict
    }

    /// Returns true if a purge after `begun` may affect the response of a fetch of `url` that is in
    /// progress. A node without a lease may not know all purges, so the result is then true.
    pub(crate) fn may_touch(&self, url: &[u8], begun: Stamp) -> bool {
        let may_touch = || {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            table.may_touch(url, begun.moment)
        };
        begun.era != self.era
            || (begun.moment < self.latest() && may_touch())
            || !self.lease.holds()
    }
}

/// The reason why a purge failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotPurged {
    /// The purge could not be made durable.
    NotDurable,
    /// Too many purges are queued.
    Busy,
    /// The proxy is stopping.
    Stopping,
    /// The disk or another node of the fleet was too slow. The purge may still take effect later.
    Late,
    /// The fleet's purge log (`fleet.engine`) is not reachable. The purge may still take effect.
    EngineAway,
    /// The cold tier's store does not answer, so the purge may not apply to records that come back.
    ColdAway,
}

impl NotPurged {
    /// Returns the reason as one word, for logs and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotDurable => "purge-not-durable",
            Self::Busy => "purge-busy",
            Self::Stopping => "purge-stopping",
            Self::Late => "purge-late",
            Self::EngineAway => "purge-engine-away",
            Self::ColdAway => "purge-cold-away",
        }
    }

    /// Returns a message of one line that tells the operator how to solve the problem.
    pub const fn description(self) -> &'static str {
        match self {
            Self::NotDurable => {
                "nothing was purged: the purge could not be written to disk; read foxy's messages, \
                 then purge again"
            }
            Self::Busy => {
                "nothing was purged: too many purges are waiting; try again, or purge by tag, \
                 prefix or site"
            }
            Self::Late => {
                "the disk or a node of the fleet did not confirm the purge in time, so the purge \
                 may take effect later; purge again to be sure"
            }
            Self::EngineAway => {
                "the engine of the fleet does not answer, so the purge may not reach all nodes; \
                 purge again when the engine is back"
            }
            Self::ColdAway => {
                "the purge holds on this node, but the cold tier's store did not record it; purge \
                 again when the store is back"
            }
            Self::Stopping => {
                "foxy is stopping, so the purge may have no effect; purge again when foxy runs"
            }
        }
    }
}

impl fmt::Display for NotPurged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

/// Callback that receives the result of a purge: the number of its last rule, or the reason of the
/// failure. The [`PurgeKeeper`] may call it on any thread.
pub type PurgeReply = Box<dyn FnOnce(Result<u64, NotPurged>) + Send>;

/// Makes purges durable and puts them in force, in the order of the calls. The methods return
/// without waiting for the disk.
pub trait PurgeKeeper: Send + Sync {
    /// Queues a purge of all `orders`. If the keeper drops the callback `reply` and never calls it,
    /// the purge failed with [`NotPurged::Stopping`].
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply);
}

/// The book of the purges that apply now, and the keepers that add purges to it and make them
/// durable.
#[derive(Clone)]
pub struct Purges {
    /// The purges in force.
    pub book: Arc<PurgeBook>,
    /// Adds purges to `book`, and makes them durable.
    pub keeper: Arc<dyn PurgeKeeper>,
    /// Purges on all nodes of the fleet. `None` if this node belongs to no fleet.
    pub fleet: Option<Arc<dyn PurgeKeeper>>,
}

impl Purges {
    /// Purges all `scopes` on all nodes of the fleet, or on this node if it has no fleet. Waits
    /// until each node has applied the purges durably, or has lost its lease (permission to serve
    /// without validation). Returns the number of the last purge.
    pub(crate) async fn purge(
        &self,
        scopes: &[Scope],
        strength: Strength,
    ) -> Result<u64, NotPurged> {
        self.purge_by(self.fleet.as_ref().unwrap_or(&self.keeper), scopes, strength).await
    }

    /// Like [`Self::purge`], but purges only on this node.
    pub(crate) async fn purge_here(
        &self,
        scopes: &[Scope],
        strength: Strength,
    ) -> Result<u64, NotPurged> {
        self.purge_by(&self.keeper, scopes, strength).await
    }

    async fn purge_by(
        &self,
        keeper: &Arc<dyn PurgeKeeper>,
        scopes: &[Scope],
        strength: Strength,
    ) -> Result<u64, NotPurged> {
        let at = clock::steady();
        let orders = scopes.iter().map(|scope| Order { scope: *scope, strength, at }).collect();
        let (sender, receiver) = oneshot::channel();
        let reply = move |answer| {
            // The client may no longer wait for the answer. The purge remains in force.
            let _ = sender.send(answer);
        };
        keeper.purge(orders, Box::new(reply));
        let answer = timeout(PURGE_TIMEOUT, receiver).await.map_err(|_| NotPurged::Late)?;
        answer.unwrap_or(Err(NotPurged::Stopping))
    }

    /// Creates purges that are kept in memory only, for a cache without a store.
    pub fn in_memory() -> Self {
        let book = Arc::new(PurgeBook::new(1, 0, &[]));
        let keeper = Arc::new(Unkept { book: Arc::clone(&book), turn: Mutex::default() });
        Self { keeper, book, fleet: None }
    }
}

/// Applies purges in memory only. A restart loses them, together with the cache.
struct Unkept {
    book: Arc<PurgeBook>,
    turn: Mutex<()>,
}

impl PurgeKeeper for Unkept {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = number(&orders, self.book.latest());
        self.book.apply(&rules);
        drop(turn);
        reply(Ok(self.book.latest()));
    }
}

/// Converts purge requests to rules with consecutive numbers, beginning with `latest` + 1.
pub fn number(orders: &[Order], latest: u64) -> Vec<Rule> {
    (latest + 1..).zip(orders).map(|(moment, order)| Rule { order: *order, moment }).collect()
}

impl Stored {
    /// Sets the stamp of the response: the number of the last purge before its fetch began.
    pub fn begun(self, begun: Stamp) -> Self {
        Self { begun, ..self }
    }

    /// Returns a copy of the response that the proxy must validate before it serves the copy. No
    /// exception for stale responses applies to the copy.
    pub fn in_doubt(&self, doubt: PurgeDoubt) -> Self {
        let mut copy = Self { doubt: Some(doubt), ..self.clone() };
        copy.control.no_cache = true;
        copy
    }

    /// Returns a copy of the response that is stale from `since` on, because of a soft purge.
    pub fn stale_since(&self, since: WallTime, now: WallTime) -> Self {
        let fresh_for = self.lifetime.min(self.times.age(since)).min(self.times.age(now));
        Self { lifetime: fresh_for, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::stored::StoredBody;
    use bytes::Bytes;
    use foxy_http::ResponseHead;
    use foxy_rules::{Policy, StoredTimes};

    fn stored(begun: Stamp) -> Stored {
        let mut head = ResponseHead::new(200);
        head.headers.append("Cache-Control", "max-age=100");
        let times = StoredTimes { received: WallTime(10_000), initial_age: 0 };
        let (key, body) =
            (Bytes::from_static(b"http://a.test/x\nvariant"), StoredBody::Whole(Bytes::new()));
        Stored::new(key, &head, Policy::default(), times, 0, body).begun(begun)
    }

    fn purge(purges: &Purges, named: Named, name: &str, strength: Strength) {
        let order = |scope| Order { scope, strength, at: WallTime(40_000) };
        let orders = named.scopes(name).expect("a name").into_iter().map(order).collect();
        purges.keeper.purge(orders, Box::new(|answer| assert!(answer.is_ok())));
    }

    #[test]
    fn a_purge_holds_for_what_was_begun_before_it_variants_too() {
        let purges = Purges::in_memory();
        let before = stored(purges.book.stamp());
        assert_eq!(purges.book.judge(&before), Verdict::Untouched);
        purge(&purges, Named::Url, "http://b.test/", Strength::Hard);
        assert_eq!(purges.book.judge(&before), Verdict::Untouched);
        purge(&purges, Named::Url, "http://a.test/x", Strength::Soft);
        assert_eq!(purges.book.judge(&before), Verdict::Stale { since: WallTime(40_000) });
        let between = stored(purges.book.stamp());
        purge(&purges, Named::Site, "http://a.test", Strength::Hard);
        assert_eq!(purges.book.judge(&before), Verdict::Gone);
        assert_eq!(purges.book.judge(&between), Verdict::Gone);
        assert_eq!(purges.book.judge(&stored(purges.book.stamp())), Verdict::Untouched);
    }

    #[test]
    fn what_was_stored_in_another_series_is_gone() {
        let book = PurgeBook::new(7, 3, &[]);
        assert_eq!(book.judge(&stored(Stamp { era: 8, moment: 9 })), Verdict::Gone);
        assert_eq!(book.judge(&stored(Stamp::default())), Verdict::Gone);
        assert_eq!(book.judge(&stored(Stamp { era: 7, moment: 3 })), Verdict::Untouched);
        let unknown = Stamp { era: 7, moment: 4 };
        assert_eq!(book.judge(&stored(unknown)), Verdict::Gone, "after a purge that was lost");
    }

    #[test]
    fn a_softly_purged_response_is_stale_whatever_the_clock_says() {
        let stale_by = |since, now| {
            let stale = stored(Stamp::default()).stale_since(WallTime(since), WallTime(now));
            stale.times.age(WallTime(now)).checked_sub(stale.lifetime)
        };
        assert_eq!(stale_by(40_000, 60_000), Some(20));
        assert_eq!(stale_by(40_000, 30_000), Some(0), "the clock was set back");
        assert_eq!(stale_by(40_000, 200_000), Some(160));
        assert_eq!(stale_by(0, 30_000), Some(20));
    }
}
