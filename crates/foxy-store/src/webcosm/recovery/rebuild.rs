//! Knowing the records again, of each log from the newest segment to the oldest, while requests are
//! served. What is met first counts; whatever is older under the same tag has been replaced. A
//! segment whose summary cannot be read may have forgotten anything, so all that is older in its
//! log is given up.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::{Fact, Summary};
use crate::webcosm::index::{Extent, Known, Tag};
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::recovery::summaries::Purpose;
use foxy_base::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Summaries of each log read at once.
const READS: usize = 16;

/// Reads of a summary before it counts as lost.
const TRIES: u32 = 3;

/// Records learned at once, so that requests are answered in between: about a millisecond.
pub const LEARNED_AT_ONCE: usize = 4096;

/// How far one log is known again.
#[derive(Debug, Default)]
struct Progress {
    /// Segments from this one on have been asked for.
    asked: Sequence,
    /// Segments from this one on are known.
    known: Sequence,
    reading: usize,
    summaries: BTreeMap<Sequence, Option<Summary>>,
    tries: BTreeMap<Sequence, u32>,
    doubted_end: Sequence,
}

/// The rebuilding of the index.
#[derive(Debug, Default)]
pub struct Rebuild {
    runs: bool,
    logs: [Progress; 2],
    facts: HashMap<Tag, Fact>,
    void: BTreeSet<Segment>,
    retired: BTreeSet<Segment>,
}

impl Rebuild {
    /// Everything in a log's segments before this one is given up, because it may have been
    /// forgotten.
    pub const fn doubted_end(&self, log: LogName) -> Sequence {
        self.logs[log as usize].doubted_end
    }

    /// A fact holds for all that is met from now on.
    pub fn forget(&mut self, fact: Fact) {
        if let Some(segment) = fact.voided() {
            self.void.insert(segment);
            if fact.retires() {
                self.retired.insert(segment);
            }
        } else if self.runs {
            self.facts.entry(fact.tag).or_insert(fact).join(fact);
        }
    }
}

impl Webcosm {
    pub(crate) fn begin_rebuild(&mut self, now: Instant, out: &mut Outbox) {
        self.rebuild = Rebuild { runs: true, ..Rebuild::default() };
        for (progress, log) in self.rebuild.logs.iter_mut().zip(&self.logs) {
            (progress.asked, progress.known) = (log.next, log.next);
        }
        for fact in self.forgetting.needed() {
            self.rebuild.forget(fact);
        }
        self.pump_rebuild(0, now, out);
    }

    /// Asks for summaries, learns so many of the records that have been read, and ends when there
    /// are no more.
    pub(crate) fn pump_rebuild(&mut self, mut budget: usize, now: Instant, out: &mut Outbox) {
        let mut known = true;
        for log in LogName::ALL {
            known &= self.rebuild_log(log, &mut budget, out);
        }
        if known && self.life.phase() == Phase::Rebuilding {
            let Rebuild { retired, .. } = std::mem::take(&mut self.rebuild);
            retired.into_iter().for_each(|segment| self.retire(self.geometry.slot(segment)));
            self.observer.statistics.recovered.add(self.index.len());
            self.enter(Phase::Serving);
            self.read_uses(0, now, out);
        }
    }

    /// The first segment of a log whose records are wanted.
    fn wanted_from(&self, log: LogName) -> Sequence {
        self.logs[log as usize].kept_from().max(self.rebuild.doubted_end(log))
    }

    /// Whether there is more to be learned from what has been read.
    pub(crate) fn rebuild_is_due(&self) -> bool {
        self.life.phase().learns()
            && LogName::ALL.iter().any(|&log| {
                let Progress { known, summaries, .. } = &self.rebuild.logs[log as usize];
                *known > self.wanted_from(log) && summaries.contains_key(&(known - 1))
            })
    }

    /// Whether all of a log is known, and what is doubted is durably given up. Stops once `budget`
    /// records are learned.
    fn rebuild_log(&mut self, log: LogName, budget: &mut usize, out: &mut Outbox) -> bool {
        loop {
            self.ask_for_summaries(log, out);
            let from = self.wanted_from(log);
            let progress = &mut self.rebuild.logs[log as usize];
            if progress.known <= from {
                return progress.reading == 0
                    && self.logs[log as usize].tail >= progress.doubted_end;
            }
            if *budget == 0 {
                return false;
            }
            let sequence = progress.known - 1;
            let Some(mut summary) = progress.summaries.remove(&sequence) else { return false };
            let segment = Segment { log, sequence };
            match &mut summary {
                _ if self.rebuild.void.contains(&segment) => {}
                Some(summary) => self.learn(segment, summary, budget),
                None => self.rebuild.logs[log as usize].doubted_end = sequence + 1,
            }
            match summary {
                Some(Summary { ref records, .. }) if !records.is_empty() && *budget == 0 => {
                    self.summary_known(segment, summary);
                }
                _ => self.rebuild.logs[log as usize].known = sequence,
            }
        }
    }

    fn ask_for_summaries(&mut self, log: LogName, out: &mut Outbox) {
        let from = self.wanted_from(log);
        loop {
            let progress = &mut self.rebuild.logs[log as usize];
            let enough = progress.reading >= READS || progress.summaries.len() >= 2 * READS;
            if enough || progress.asked <= from {
                return;
            }
            progress.asked -= 1;
            let segment = Segment { log, sequence: progress.asked };
            if self.rebuild.void.contains(&segment) {
                self.summary_known(segment, Some(Summary::default()));
            } else if let Some(summary) = self.unsealed_summary(segment) {
                self.summary_known(segment, Some(summary));
            } else {
                self.ask_for(segment, out);
            }
        }
    }

    fn summary_known(&mut self, Segment { log, sequence }: Segment, summary: Option<Summary>) {
        self.rebuild.logs[log as usize].summaries.insert(sequence, summary);
    }

    fn ask_for(&mut self, segment: Segment, out: &mut Outbox) {
        let progress = &mut self.rebuild.logs[segment.log as usize];
        progress.reading += 1;
        *progress.tries.entry(segment.sequence).or_default() += 1;
        self.read_summary(Purpose::Rebuild, segment, out);
    }

    pub(crate) fn rebuild_summary_read(
        &mut self,
        segment: Segment,
        found: Option<(u64, Summary)>,
        out: &mut Outbox,
    ) {
        let gone = segment.sequence < self.wanted_from(segment.log);
        let progress = &mut self.rebuild.logs[segment.log as usize];
        progress.reading -= 1;
        let tries = progress.tries.get(&segment.sequence).copied().unwrap_or(TRIES);
        if found.is_none() && tries < TRIES && !gone {
            return self.ask_for(segment, out);
        }
        progress.tries.remove(&segment.sequence);
        if let Some((life, _)) = found
            && !gone
        {
            self.take_slot(segment, life);
        }
        self.summary_known(segment, found.map(|(_, summary)| summary));
    }

    /// Takes the facts of a segment, then records from its end, as many as `budget` says.
    fn learn(&mut self, segment: Segment, summary: &mut Summary, budget: &mut usize) {
        for fact in summary.facts.drain(..) {
            self.rebuild.forget(fact);
        }
        let slot = self.geometry.slot(segment);
        let left = summary.records.len().saturating_sub(*budget);
        *budget = budget.saturating_sub(summary.records.len().max(1));
        for listed in summary.records.drain(left..).rev() {
            let byte = u64::from(listed.step) * 64;
            let page = u32::try_from(byte / PAGE as u64).expect("steps are small");
            let position = Position::new(segment, page);
            let forgotten =
                self.rebuild.facts.get(&listed.tag).is_some_and(|fact| fact.reaches(position));
            let in_segment = page < self.geometry.segment_pages;
            if !forgotten && in_segment && self.index.get(listed.tag).is_none() {
                let place = self.geometry.place(slot, byte);
                let extent = Extent::of_class(listed.class);
                self.index.insert(listed.tag, Known { place, extent, uses: 0 });
            }
        }
    }
}
