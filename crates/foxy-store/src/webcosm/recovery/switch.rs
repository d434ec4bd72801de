//! Making an opening durable before anything is written to the log: what the process before left in
//! the system's cache, the summaries that were missing, then the journal's other half with what is
//! still to be forgotten, then a superblock that counts this life from here on. Gets need none of
//! it and are answered meanwhile.

use crate::beginning::AnewReason;
use crate::contract::Outbox;
use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::superblock::Superblock;
use crate::status::OpenStoreError;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::format::incarnation::{begins_at, first_of_life};
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::tombstones::io_sequence::After;
use crate::webcosm::write::log::Log;
use crate::webcosm::write::seal::Seals;
use foxy_base::Instant;
use foxy_device::IoError;

impl Webcosm {
    /// The newest segments are known: those without a summary get one, gaps are void. First of all
    /// what a killed process wrote becomes durable, as it may be readable and yet be lost when the
    /// power fails.
    pub(crate) fn heads_found(&mut self, out: &mut Outbox) {
        let resizes = self.finding.resizing.is_some();
        self.enter(if resizes { Phase::Switching } else { Phase::Reading });
        let mut void = std::mem::take(&mut self.finding.gaps);
        for log in LogName::ALL {
            let first = first_of_life(self.file.superblock(), log);
            let log = &mut self.logs[log as usize];
            // A log has no more segments than slots, whatever a superblock says.
            let first = first.min(log.tail + log.segments());
            void.extend((log.next..first).map(|sequence| log.segment(sequence)));
            log.next = log.next.max(first);
        }
        void.into_iter().for_each(|segment| self.void(segment));
        let missing = self.finding.unsealed.iter().map(|(&segment, (life, records))| {
            let (offset, buffer) = self.summary_of(segment, *life, records, &[]);
            IoStep::Optional(segment, offset, buffer)
        });
        let mut steps: Vec<_> = [IoStep::Sync].into_iter().chain(missing).collect();
        if steps.len() > 1 {
            steps.push(IoStep::Sync);
        }
        if !resizes {
            self.begin_rebuild(Instant::ZERO, out);
        }
        self.run(steps, After::Resealed, Instant::ZERO, out);
    }

    /// First comes the superblock as it was read: it may not be durable, and the journal half that
    /// it does not name is overwritten next.
    pub(crate) fn resealed(&mut self, result: Result<(), IoError>, now: Instant, out: &mut Outbox) {
        if let Err(error) = result {
            return self.fail(OpenStoreError::Device(error), out);
        }
        let Some(resized) = self.resized() else {
            return self
                .begin_anew(AnewReason::other_size(self.file.superblock(), &self.settings), out);
        };
        for log in &mut self.logs {
            log.seals = Seals::all_before(log.next);
        }
        let durable = begins_at(self.logs.each_ref().map(|log| log.next));
        let superblock = self.file.next_superblock();
        let superblock = Superblock { opens: superblock.opens + 1, durable, ..superblock };
        let superblock = resized.apply(superblock);
        let facts = self.forgetting.needed();
        let tails = self.logs.each_ref().map(Log::kept_from);
        let (compaction, blocks) = self.compaction_steps(&superblock, &facts, tails);
        let mut steps = Vec::from(superblock_steps(self.file.superblock()));
        steps.extend(self.extension());
        steps.extend(compaction);
        steps.extend(superblock_steps(&superblock));
        self.run(steps, After::Switched(superblock, blocks), now, out);
    }

    pub(crate) fn switched(
        &mut self,
        superblock: Superblock,
        blocks: u32,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        match result {
            Ok(()) => {}
            Err(IoError::NoSpace) => return self.fail(OpenStoreError::NoSpace, out),
            Err(error) => return self.fail(OpenStoreError::Device(error), out),
        }
        self.file.set_superblock(superblock);
        self.adopt_size(out);
        self.forgetting.unwritten.clear();
        let half = self.geometry.journal[superblock.journal_half as usize];
        self.forgetting.begin(half, blocks);
        let resized = self.life.phase() == Phase::Switching;
        self.enter(Phase::Rebuilding);
        if resized {
            self.begin_rebuild(now, out);
        }
    }
}
