//! Operations in flight, and where their completions go.

use crate::completion::{read, written};
use crate::contract::Outbox;
use crate::one_file::io_sequence::FailuresBefore;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{Segment, Sequence};
use crate::webcosm::format::location::Spot;
use crate::webcosm::index::Known;
use crate::webcosm::reads::PendingRead;
use crate::webcosm::recovery::summaries::{LongSummary, Purpose};
use crate::webcosm::write::in_flight::Batch;
use foxy_base::Instant;
use foxy_device::IoDone;

/// What an operation in flight is for.
pub enum Pending {
    /// Reading the active journal half.
    Journal,
    /// Looking for the newest segment: the last page of one.
    LookAtEnd(Segment),
    /// The first page of one without a summary.
    LookAtStart(Segment),
    /// All of one without a summary.
    LookAtAll(Segment),
    /// The end of a segment, where its summary is.
    SummaryEnd(Purpose, Segment),
    /// A whole summary, which is longer than that.
    LongSummary(Purpose, LongSummary),
    /// A record in use, or a page with some, of a segment to be given up.
    Copy(Known, Spot),
    /// A get.
    Read(PendingRead),
    /// A batch of records being written.
    Batch(Batch),
    /// A segment's summary being written.
    Summary(Segment),
    /// A step of the IO sequence.
    Step(PendingStep),
    /// Reading uses, from this page of their region.
    ReadUses(u32),
    /// Uses being written.
    WriteUses,
    /// Giving back the space behind the end of a store that was made smaller.
    Trim,
}

/// A step of the IO sequence in flight.
pub enum PendingStep {
    Write,
    /// The summary of a segment.
    Summary(Segment),
    /// Of each log, the end of what the sync makes durable.
    Sync([Sequence; 2], FailuresBefore),
}

impl Webcosm {
    /// Takes a completion to where it belongs.
    pub(crate) fn dispatch(
        &mut self,
        pending: Pending,
        done: IoDone,
        now: Instant,
        out: &mut Outbox,
    ) {
        match pending {
            Pending::Journal => self.journal_read(read(done), out),
            Pending::LookAtEnd(segment) => self.looked_at_end(segment, read(done), out),
            Pending::LookAtStart(segment) => self.looked_at_start(segment, read(done), out),
            Pending::LookAtAll(segment) => self.looked_at_all(segment, read(done), out),
            Pending::SummaryEnd(purpose, segment) => {
                self.summary_end_read(purpose, segment, read(done), out)
            }
            Pending::LongSummary(purpose, whole) => {
                self.long_summary_read(purpose, whole, read(done), out)
            }
            Pending::Copy(known, spot) => self.copy_read(known, spot, read(done)),
            Pending::Read(pending) => self.read_done(pending, read(done), out),
            Pending::Batch(batch) => {
                let result = written(&done);
                self.batch_done(done.id, &batch, (result, done.buffer), out);
            }
            Pending::Summary(segment) => self.summary_done(segment, written(&done)),
            Pending::Step(step) => self.step_done(step, written(&done), now, out),
            Pending::ReadUses(page) => self.uses_read(page, read(done), now, out),
            Pending::WriteUses => self.uses_written(written(&done), now),
            Pending::Trim => {}
        }
    }
}
