//! Leases of members, without a clock. A member, the *holder*, may serve stored responses without
//! validation only within its lease. The holder counts from the moment when it asked for the lease;
//! other members count from the moment when they first saw the request. The holder counts a shorter
//! time, because its clock may be slower. So the lease ends for the holder before it ends for
//! others.

use super::entry::Process;
use super::witnesses::{Witnesses, hash};
use foxy_base::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Length of a lease, and the largest deviation of a member's clock from real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The time after which other members consider a lease as ended.
    pub length: Duration,
    /// Largest deviation of a clock's pace, in millionths.
    pub drift_ppm: u64,
}

impl LeaseTerms {
    /// The terms of every fleet: 2 seconds, with clocks that deviate by at most 1 %.
    pub const fn usual() -> Self {
        Self { length: Duration::from_secs(2), drift_ppm: 10_000 }
    }

    /// Returns the time after which the holder itself considers its lease as ended. If the holder's
    /// clock is slow and another member's clock is fast, this time still ends first.
    pub fn for_holder(self) -> Duration {
        const MILLION: u128 = 1_000_000;
        let drift = u128::from(self.drift_ppm).min(MILLION);
        let nanos = self.length.as_nanos() * (MILLION - drift) / (MILLION + drift);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The record that a process writes to the engine each time it renews its lease. All other members
/// read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The process that wrote this record.
    pub process: Process,
    /// Number of this record. Each renewal has the next number.
    pub counter: u64,
    /// The incarnation of the engine whose log the process follows. `None` if the process has not
    /// compared the log with its chain.
    pub attests: Option<u64>,
    /// Whether that log has every entry that the process should have applied since its saved place.
    /// False if the process missed entries.
    pub vouches: bool,
    /// Number of the chain that the process follows.
    pub chain: u64,
    /// Position of the last entry that the process has applied durably.
    pub position: u64,
    /// Hash of this entry.
    pub hash: u128,
    /// Whether the process wants a lease. A process that stops gives its lease up.
    pub wants_lease: bool,
}

const RECORD_VERSION: &str = "2";

impl MemberRecord {
    /// Returns everything except the process, as one line.
    pub fn text(&self) -> String {
        let Self { counter, attests, vouches, chain, position, hash, wants_lease, .. } = self;
        let attests = attests.map_or_else(|| "-".into(), |number| number.to_string());
        let wants = if *wants_lease { "lease" } else { "none" };
        let vouches = if *vouches { "vouches" } else { "missed" };
        format!(
            "{RECORD_VERSION} {counter} {attests} {vouches} {chain} {position} {hash:032x} {wants}"
        )
    }

    /// Reads the line that `text` writes.
    pub fn parse(process: Process, text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        (words.next()? == RECORD_VERSION).then_some(())?;
        let counter = words.next()?.parse().ok()?;
        let attests = match words.next()? {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        let vouches = match words.next()? {
            "vouches" => true,
            "missed" => false,
            _ => return None,
        };
        let (chain, position) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let hash = u128::from_str_radix(words.next()?, 16).ok()?;
        let wants_lease = match words.next()? {
            "lease" => true,
            "none" => false,
            _ => return None,
        };
        words.next().is_none().then_some(Self {
            process,
            counter,
            attests,
            vouches,
            chain,
            position,
            hash,
            wants_lease,
        })
    }
}

struct Sighting {
    record: MemberRecord,
    /// When this member first saw the record, or when the engine's incarnation changed after that.
    since: Instant,
}

/// The leases of all other processes, as this member sees them.
pub struct Leases {
    terms: LeaseTerms,
    me: Process,
    witnesses: Witnesses,
    /// When this member first saw the present incarnation of the engine.
    since: Instant,
    seen: BTreeMap<Process, Sighting>,
}

/// A place in the log that all members must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The engine's incarnation.
    pub incarnation: u64,
    /// The chain.
    pub chain: u64,
    /// The position in the log.
    pub position: u64,
}

impl Leases {
    /// Creates the view of a member that has seen nothing.
    pub fn new(terms: LeaseTerms, me: Process, witnesses: Witnesses) -> Self {
        Self { terms, me, witnesses, since: Instant::ZERO, seen: BTreeMap::new() }
    }

    /// Returns the members whose leases and records count.
    pub const fn witnesses(&self) -> &Witnesses {
        &self.witnesses
    }

    /// Replaces the list of members.
    pub fn set_members(&mut self, members: &[Box<str>]) {
        self.witnesses.set_listed(members);
    }

    /// Forgets each former member that has no lease. The caller has applied the whole log that it
    /// read at `read`, and has proved that this log is complete.
    pub fn release(&mut self, read: Instant) {
        if !self.has_ended(self.since, read) {
            return;
        }
        let leased = self.seen.iter().filter(|(_, one)| !self.has_no_lease(one, read));
        let leased: BTreeSet<_> = leased.map(|(process, _)| hash(&process.member)).collect();
        self.witnesses.release(|name| leased.contains(&name));
    }

    /// Notes another incarnation of the engine. This incarnation may have lost records, so each
    /// member may have a lease that begins now.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
        self.seen.values_mut().for_each(|sighting| sighting.since = now);
    }

    /// Notes the records that a read returned. `now` is a moment after the read.
    pub fn observe(&mut self, records: &[MemberRecord], now: Instant) {
        for record in records.iter().filter(|record| record.process != self.me) {
            match self.seen.get_mut(&record.process) {
                Some(known) if known.record.counter == record.counter => {
                    known.record = record.clone();
                }
                _ => {
                    self.witnesses.add(&record.process.member);
                    let sighting = Sighting { record: record.clone(), since: now };
                    self.seen.insert(record.process.clone(), sighting);
                }
            }
        }
        let (seen, at) = (&self.seen, now - self.terms.length * 4);
        let gone: Vec<Process> = seen
            .iter()
            .filter(|(process, sighting)| {
                sighting.since < at && !records.iter().any(|record| record.process == **process)
            })
            .map(|(process, _)| process.clone())
            .collect();
        gone.iter().for_each(|process| drop(self.seen.remove(process)));
    }

    /// Returns true if a lease first seen at `since` has ended at `at`.
    fn has_ended(&self, since: Instant, at: Instant) -> bool {
        at.0 >= since.0 && at.since(since) >= self.terms.length
    }

    fn has_no_lease(&self, sighting: &Sighting, at: Instant) -> bool {
        !sighting.record.wants_lease || self.has_ended(sighting.since, at)
    }

    /// Returns true if every other member has applied the log up to `place`, or has no lease.
    /// `agrees` tells whether the member of a record has applied the entries that this member has
    /// read. The last read of the records began at `read`, after the entry was appended.
    pub fn have_all_reached(
        &self,
        place: Place,
        agrees: impl Fn(&MemberRecord) -> bool,
        read: Instant,
    ) -> bool {
        let has_reached = |record: &MemberRecord| {
            record.attests == Some(place.incarnation)
                && record.chain == place.chain
                && record.position >= place.position
                && agrees(record)
        };
        let is_known = |name| self.seen.keys().any(|process| hash(&process.member) == name);
        self.seen
            .values()
            .all(|sighting| has_reached(&sighting.record) || self.has_no_lease(sighting, read))
            && (self.has_ended(self.since, read) || self.witnesses.all().all(is_known))
    }

    /// Returns true if all leases have ended that members got before they read the entry which was
    /// appended at `appended`. A member that reads the entry gets a lease only after it has applied
    /// the entry, even if others see a new record of this member earlier.
    pub fn have_earlier_ended(&self, appended: Instant, read: Instant) -> bool {
        self.has_ended(appended, read)
    }

    /// Returns true if each witness, and each process with a lease, attests and vouches for
    /// the log of this incarnation. Then the log lacks no acknowledged purge.
    pub fn do_all_attest(&self, incarnation: u64, read: Instant) -> bool {
        let attests =
            |one: &&Sighting| one.record.attests == Some(incarnation) && one.record.vouches;
        let has_attested = |name| {
            let mut runs = self.seen.iter().filter(|(process, _)| hash(&process.member) == name);
            runs.any(|(_, sighting)| attests(&sighting))
        };
        self.witnesses.all().all(has_attested)
            && self
                .seen
                .values()
                .filter(|one| !self.has_no_lease(one, read))
                .all(|one| attests(&one))
    }

    /// Returns the processes whose records can be removed: their leases ended long ago, and a newer
    /// process of the same member has a record, or the member has left the fleet.
    pub fn useless(&self, at: Instant) -> Vec<Process> {
        let is_old = |sighting: &Sighting| {
            at.since(sighting.since) >= self.terms.length * 4 && at.0 >= sighting.since.0
        };
        let has_heir = |process: &Process| {
            process.member == self.me.member
                || !self.witnesses.all().any(|name| name == hash(&process.member))
                || self.seen.iter().any(|(other, sighting)| {
                    other.member == process.member && other != process && !is_old(sighting)
                })
        };
        let useless = self.seen.iter().filter(|(process, one)| is_old(one) && has_heir(process));
        useless.map(|(process, _)| process.clone()).collect()
    }

    /// Returns the position and the rest of the lease of each other process.
    pub fn rows(&self, now: Instant) -> Vec<(Process, u64, Duration)> {
        let left = |sighting: &Sighting| {
            let left = (sighting.since + self.terms.length).since(now);
            if sighting.record.wants_lease { left } else { Duration::ZERO }
        };
        let row = |one: &Sighting| (one.record.process.clone(), one.record.position, left(one));
        self.seen.values().map(row).collect()
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
