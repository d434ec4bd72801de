//! Giving up the oldest segments: what is in use is carried over, then the journal says durably
//! that they are gone, then the index forgets what was in them. Only after that their slots are
//! written to.

pub(crate) mod copy;
pub(crate) mod ghost;
pub(crate) mod uses;

use crate::contract::Outbox;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Segment, Sequence, kept_clean};
use crate::webcosm::format::summary::{Listed, Summary};
use crate::webcosm::index::{Known, Tag};
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::recovery::summaries::Purpose;
use crate::webcosm::write::log::Log;

/// Records that are looked at, or leave the index, at once, so that requests are answered in
/// between: a millisecond or a few where records are small.
const AT_ONCE: usize = 512;

/// What is known of a segment's records.
#[derive(Debug)]
pub enum Gone {
    /// These, where they were.
    Listed(Vec<(Tag, u64)>),
    /// Nothing: the whole index must be looked through, from that partition on.
    Unknown(usize),
    /// That there are none in the index.
    Nothing,
}

/// A segment whose records are looked at, for those that are worth carrying over.
#[derive(Debug)]
struct Weighing {
    segment: Segment,
    records: Vec<Listed>,
    /// How many of them were looked at.
    done: usize,
    worth: Vec<(u64, Known)>,
}

/// The segment on its way out.
#[derive(Debug, Default)]
pub struct Reclaim {
    reading: bool,
    weighing: Option<Weighing>,
    copying: Option<(LogName, Gone)>,
}

impl Webcosm {
    /// Whether the index may not grow any more.
    pub(crate) fn is_crowded(&self) -> bool {
        self.records() >= u64::from(self.settings.record_limit)
    }

    /// Begins to give up a segment when clean ones become few, and takes it on.
    pub(crate) fn pump_reclaim(&mut self, out: &mut Outbox) {
        if self.reclaim.copying.is_some() {
            self.pump_copies(out);
            if self.copies.is_idle()
                && let Some((log, gone)) = self.reclaim.copying.take()
            {
                self.log_mut(log).ready.push_back(gone);
            }
        }
        for log in LogName::ALL {
            while self.log_mut(log).next_tail() < self.rebuild.doubted_end(log)
                && !self.is_reclaiming()
            {
                self.log_mut(log).ready.push_back(Gone::Nothing);
            }
            if !self.is_reclaiming() && self.wants_clean(log) {
                self.begin_reclaim(log, out);
            }
        }
    }

    const fn log_mut(&mut self, log: LogName) -> &mut Log {
        &mut self.logs[log as usize]
    }

    const fn is_reclaiming(&self) -> bool {
        self.reclaim.reading || self.reclaim.weighing.is_some() || self.reclaim.copying.is_some()
    }

    /// Whether clean segments are few, or the index is full and this log is the longer one.
    fn wants_clean(&self, name: LogName) -> bool {
        let log = &self.logs[name as usize];
        let segments = log.segments();
        let ahead = if segments < 4 && log.open.is_some() { 0 } else { kept_clean(segments) };
        let longest = self.logs.iter().map(|log| log.next - log.tail).max();
        let crowded =
            self.is_crowded() && log.ready.is_empty() && longest == Some(log.next - log.tail);
        log.clean() < ahead || crowded
    }

    fn begin_reclaim(&mut self, name: LogName, out: &mut Outbox) {
        let log = &self.logs[name as usize];
        let candidate = log.segment(log.next_tail());
        if self.flying.writes_to(candidate) {
            return;
        }
        if self.bad_slots.unskip(candidate) {
            return self.log_mut(name).ready.push_back(Gone::Nothing);
        }
        if candidate.sequence < log.seals.end {
            self.reclaim.reading = true;
            self.read_summary(Purpose::Reclaim, candidate, out);
        } else if log.open.as_ref().is_some_and(|open| open.segment == candidate) {
            self.seal(name, out);
        }
    }

    pub(crate) fn reclaim_records(&mut self, segment: Segment, summary: Option<Summary>) {
        self.reclaim.reading = false;
        let Some(Summary { records, .. }) = summary else {
            return self.log_mut(segment.log).ready.push_back(Gone::Unknown(0));
        };
        let done = if self.life.phase() == Phase::Serving { 0 } else { records.len() };
        self.reclaim.weighing = Some(Weighing { segment, records, done, worth: Vec::new() });
        self.weigh(0);
    }

    /// Looks at so many of the records of the segment on its way out; once all are, those that are
    /// worth it are carried over.
    fn weigh(&mut self, most: usize) {
        let Some(mut weighing) = self.reclaim.weighing.take() else { return };
        let slot = self.geometry.slot(weighing.segment);
        let end = weighing.records.len().min(weighing.done + most);
        let some = &weighing.records[weighing.done..end];
        weighing.worth.extend(some.iter().filter_map(|listed| self.worth(slot, listed)));
        weighing.done = end;
        if end < weighing.records.len() {
            self.reclaim.weighing = Some(weighing);
            return;
        }
        self.begin_copies(weighing.worth);
        let place =
            |listed: &Listed| (listed.tag, self.geometry.place(slot, u64::from(listed.step) * 64));
        let gone = Gone::Listed(weighing.records.iter().map(place).collect());
        self.reclaim.copying = Some((weighing.segment.log, gone));
    }

    /// Whether there is more to do for what is given up that needs nothing but this thread.
    pub(crate) fn has_more_to_reclaim(&self) -> bool {
        self.reclaim.weighing.is_some() || self.logs.iter().any(|log| log.leaving() > 0)
    }

    /// Does a part of that.
    pub(crate) fn reclaim_more(&mut self) {
        self.weigh(AT_ONCE);
        self.pump_leaving(AT_ONCE);
    }

    /// The journal says durably that a log's segments before `tail` are gone. Their records leave
    /// the index from now on.
    pub(crate) fn give_up_to(&mut self, name: LogName, tail: Sequence) {
        self.log_mut(name).given_up = tail;
    }

    /// Has so many records of what is given up leave the index. Only a segment all of whose records
    /// have left makes room.
    pub(crate) fn pump_leaving(&mut self, mut budget: usize) {
        let before = self.index.len();
        for name in LogName::ALL {
            while budget > 0 && self.logs[name as usize].leaving() > 0 {
                let log = self.log_mut(name);
                let (gone, segment) = (log.ready.pop_front(), log.segment(log.tail));
                let gone = gone.expect("the journal was told of as many");
                match self.leave(segment, gone, &mut budget) {
                    Some(rest) => self.log_mut(name).ready.push_front(rest),
                    None => self.log_mut(name).tail += 1,
                }
            }
        }
        self.observer.statistics.evicted.add(before - self.index.len());
    }

    /// Has records of a segment leave the index, as far as the budget goes; what is left of them.
    fn leave(&mut self, segment: Segment, gone: Gone, budget: &mut usize) -> Option<Gone> {
        match gone {
            Gone::Listed(mut records) => {
                let leaving = records.split_off(records.len().saturating_sub(*budget));
                *budget -= leaving.len();
                self.forget_places(segment.log, leaving);
                (!records.is_empty()).then_some(Gone::Listed(records))
            }
            Gone::Unknown(from) => {
                let slot = self.geometry.slot(segment);
                let places = self.geometry.place(slot, 0)..self.geometry.place(slot + 1, 0);
                self.index.remove_range(&places, from, budget).map(Gone::Unknown)
            }
            Gone::Nothing => None,
        }
    }

    fn forget_places(&mut self, log: LogName, records: Vec<(Tag, u64)>) {
        for (tag, place) in records {
            if self.index.remove_at(tag, place) && log == LogName::Probation {
                self.ghost.add(tag);
            }
        }
    }
}
