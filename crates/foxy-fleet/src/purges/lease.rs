//! The leases of a fleet's members; this module reads no clock. A member may serve stored responses
//! without validation only within its lease. This member, the *holder*, counts from the moment when
//! it asked for the lease. Other members count from the moment when they first saw the request. The
//! holder also counts a shorter time, because its clock may be slower. So the lease ends for the
//! holder before it ends for others.

use super::entry::Process;
use super::witnesses::{Witnesses, hash};
use foxy_base::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The length of a lease, and the largest error of a member's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The time after which other members treat a lease as ended.
    pub length: Duration,
    /// Largest difference between the rate of a member's clock and real time, in millionths.
    pub drift_ppm: u64,
}

impl LeaseTerms {
    /// Returns the terms of every fleet: leases of 2 seconds, and clocks whose rate is wrong by at
    /// most 1 %.
    pub const fn usual() -> Self {
        Self { length: Duration::from_secs(2), drift_ppm: 10_000 }
    }

    /// Returns the time after which the holder itself treats its lease as ended. Even if the
    /// holder's clock is slow and another member's clock is fast, the lease ends first for the
    /// holder.
    pub fn for_holder(self) -> Duration {
        const MILLION: u128 = 1_000_000;
        let drift = u128::from(self.drift_ppm).min(MILLION);
        let nanos = self.length.as_nanos() * (MILLION - drift) / (MILLION + drift);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The record that a member's process writes to the engine each time it renews its lease. All other
/// members read this record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// The process that wrote this record.
    pub process: Process,
    /// Number of this record. Each renewal by the process has the next number.
    pub counter: u64,
    /// The incarnation (run of the engine's server) whose purge log the process follows. `None` if
    /// the process has not yet compared this log with the entries that it knows.
    pub attests: Option<u64>,
    /// Whether the attested log contains every entry that the process had to apply since it last
    /// saved its position. False if entries left the log before the process read them.
    pub vouches: bool,
    /// Number of the chain of log entries that the process follows.
    pub chain: u64,
    /// Position of the last entry that the process has applied durably.
    pub position: u64,
    /// Hash of the last entry that the process has applied durably.
    pub hash: u128,
    /// Whether the process wants a lease. False if the process stops, and so gives up its lease.
    pub wants_lease: bool,
}

const RECORD_VERSION: &str = "2";

impl MemberRecord {
    /// Returns the record as one line, without the process.
    pub fn text(&self) -> String {
        let Self { counter, attests, vouches, chain, position, hash, wants_lease, .. } = self;
        let attests = attests.map_or_else(|| "-".into(), |number| number.to_string());
        let wants = if *wants_lease { "lease" } else { "none" };
        let vouches = if *vouches { "vouches" } else { "missed" };
        format!(
            "{RECORD_VERSION} {counter} {attests} {vouches} {chain} {position} {hash:032x} {wants}"
        )
    }

    /// Reads a record from the line that `text` writes.
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
    /// The time when this member first saw the record. If the engine's server restarted later, the
    /// time of that restart.
    since: Instant,
}

/// The leases of all other processes, as this member sees them.
pub struct Leases {
    terms: LeaseTerms,
    me: Process,
    witnesses: Witnesses,
    /// The time when this member first saw the present incarnation (run of the engine's server).
    since: Instant,
    seen: BTreeMap<Process, Sighting>,
}

/// A position in the purge log that all members must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The incarnation (run of the engine's server) that has the log.
    pub incarnation: u64,
    /// Number of the chain to which the entry at this position belongs.
    pub chain: u64,
    /// The position in the purge log that all members must reach.
    pub position: u64,
}

impl Leases {
    /// Creates an empty view: the member `me` has read no records yet.
    pub fn new(terms: LeaseTerms, me: Process, witnesses: Witnesses) -> Self {
        Self { terms, me, witnesses, since: Instant::ZERO, seen: BTreeMap::new() }
    }

    /// Returns the witnesses: the members that may know a purge which the log has lost.
    pub const fn witnesses(&self) -> &Witnesses {
        &self.witnesses
    }

    /// Replaces the list of the fleet's members.
    pub fn set_members(&mut self, members: &[Box<str>]) {
        self.witnesses.set_listed(members);
    }

    /// Removes former members without a lease from the witnesses. The caller must have applied the
    /// whole purge log that it read at `read`, and must have proved that this log is complete.
    pub fn release(&mut self, read: Instant) {
        if !self.has_ended(self.since, read) {
            return;
        }
        let leased = self.seen.iter().filter(|(_, one)| !self.has_no_lease(one, read));
        let leased: BTreeSet<_> = leased.map(|(process, _)| hash(&process.member)).collect();
        self.witnesses.release(|name| leased.contains(&name));
    }

    /// Notes a new incarnation (run of the engine's server). The server may have lost records, so
    /// each member may have a lease that begins only now.
    pub fn restart(&mut self, now: Instant) {
        self.since = now;
        self.seen.values_mut().for_each(|sighting| sighting.since = now);
    }

    /// Notes the records of all members that an exchange with the engine read. `now` is a time
    /// after this read.
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

    /// Returns whether a lease that was first seen at `since` has ended at `at`.
    fn has_ended(&self, since: Instant, at: Instant) -> bool {
        at.0 >= since.0 && at.since(since) >= self.terms.length
    }

    fn has_no_lease(&self, sighting: &Sighting, at: Instant) -> bool {
        !sighting.record.wants_lease || self.has_ended(sighting.since, at)
    }

    /// Returns whether every other member has applied the log up to `place`, or has no lease.
    /// `agrees` says whether a member has applied the same entries as this member. The records were
    /// last read at `read`, after the entry at `place` was appended.
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

    /// Returns whether enough time has passed since `appended`, when an entry was appended. Then
    /// every lease has ended that a member got before it read the entry. A member that reads the
    /// entry gets a lease only after it has applied the entry.
    pub fn have_earlier_ended(&self, appended: Instant, read: Instant) -> bool {
        self.has_ended(appended, read)
    }

    /// Returns whether the records of all witnesses, and of all processes with a lease, attest and
    /// vouch for the purge log of this incarnation (run of the engine's server). Then the log lacks
    /// no acknowledged purge.
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

    /// Returns the processes whose records foxy can remove from the engine. The lease of such a
    /// process ended long ago. In addition, a newer process of the same member has a record, or the
    /// member has left the fleet.
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

    /// Returns, for each other process, its position in the purge log and the remaining time of its
    /// lease.
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
