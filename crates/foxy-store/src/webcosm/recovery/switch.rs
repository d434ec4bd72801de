//! Makes an opening durable before the store writes new records. The steps are: sync the file,
//! write missing summaries, fill the other half of the journal, and write a superblock that counts
//! this opening. The store answers `get` requests during these steps.

use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::superblock::Superblock;
use crate::status::OpenStoreError;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::format::incarnation::{begins_at, first_of_incarnation};
use crate::webcosm::phase::Phase;
use crate::webcosm::recovery::{Parts, StoreRecovery};
use crate::webcosm::tombstones::After;
use crate::webcosm::write::log::Seals;
use crate::webcosm::write::summary_of;
use foxy_device::IoError;

impl StoreRecovery {
    /// Continues after the newest segments of both logs were found. Segments without a summary
    /// (list of records) receive a summary. Gaps (segments without content) are marked as void.
    ///
    /// The sync comes first. Data from a killed process may be readable now, but a power failure
    /// could still lose it.
    pub fn heads_found(&mut self, on: &mut Parts<'_>) {
        let resizes = self.resizing.is_some();
        on.cx.enter(if resizes { Phase::Switching } else { Phase::Reading });
        let mut void = std::mem::take(&mut self.gaps);
        for name in LogName::ALL {
            let first = first_of_incarnation(on.cx.file.superblock(), name);
            let log = on.writer.log_mut(name);
            // The number of the first segment that this opening of the store may write was read
            // from disk and may be wrong. A log has no more segments than slots.
            let first = first.min(log.tail + log.segments());
            void.extend((log.next..first).map(|sequence| log.segment(sequence)));
            log.next = log.next.max(first);
        }
        void.into_iter().for_each(|segment| on.writer.void(on.cx, on.tombstones, segment));
        let missing = self.rebuild.unsealed.iter().map(|(&segment, unsealed)| {
            let (offset, buffer) =
                summary_of(on.cx, segment, unsealed.incarnation, &unsealed.records, &[]);
            IoStep::Optional(segment, offset, buffer)
        });
        let mut steps: Vec<_> = std::iter::once(IoStep::Sync).chain(missing).collect();
        if steps.len() > 1 {
            steps.push(IoStep::Sync);
        }
        if !resizes {
            self.rebuild.begin(on.writer, on.tombstones);
            self.rebuild.pump(on.cx, on.writer, 0);
        }
        on.tombstones.run(on.cx, on.writer, steps, After::Resealed);
    }

    /// Prepares the journal half and the superblock of this opening. First writes the current
    /// superblock again, because it may not be durable. Otherwise a crash could bring back an older
    /// superblock, which names the journal half that the next step overwrites.
    pub fn resealed(&mut self, on: &mut Parts<'_>, result: Result<(), IoError>) {
        if let Err(error) = result {
            return on.cx.fail(OpenStoreError::Device(error));
        }
        let Some(resized) = self.resized(on) else { return self.begin_with_other_size(on) };
        for log in LogName::ALL {
            let log = on.writer.log_mut(log);
            log.seals = Seals::all_before(log.next);
        }
        let durable = begins_at(on.writer.logs().each_ref().map(|log| log.next));
        let superblock = on.cx.file.next_superblock();
        let superblock = Superblock { opens: superblock.opens + 1, durable, ..superblock };
        let superblock = resized.apply(superblock);
        let (compaction, blocks) = on.tombstones.compaction_steps(
            on.cx,
            on.writer,
            &superblock,
            &on.tombstones.needed(),
            on.writer.kept_from(),
        );
        let mut steps = Vec::from(superblock_steps(on.cx.file.superblock()));
        steps.extend(self.extension(&on.cx.file));
        steps.extend(compaction);
        steps.extend(superblock_steps(&superblock));
        on.tombstones.run(on.cx, on.writer, steps, After::Switched(superblock, blocks));
    }

    /// Continues the opening after the write of its superblock. If that write failed, marks the
    /// store as unusable.
    pub fn switched(
        &mut self,
        on: &mut Parts<'_>,
        superblock: Superblock,
        blocks: u32,
        result: Result<(), IoError>,
    ) {
        match result {
            Ok(()) => {}
            Err(IoError::NoSpace) => return on.cx.fail(OpenStoreError::NoSpace),
            Err(error) => return on.cx.fail(OpenStoreError::Device(error)),
        }
        on.cx.file.set_superblock(superblock);
        self.adopt_size(on);
        on.tombstones.switched(on.cx.journal_half(&superblock), blocks);
        let was_resized = on.cx.phase() == Phase::Switching;
        on.cx.enter(Phase::Rebuilding);
        if was_resized {
            self.rebuild.begin(on.writer, on.tombstones);
        }
    }
}
