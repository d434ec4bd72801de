//! Operations in flight, and where their completions go.

use crate::completion::{read, written};
use crate::contract::Outbox;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{Segment, Sequence};
use crate::webcosm::format::location::Spot;
use crate::webcosm::index::Known;
use crate::webcosm::reads::PendingRead;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::recovery::summaries::{LongSummary, Purpose};
use crate::webcosm::write::in_flight::Batch;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoDone, IoId, IoOp};

/// What an operation in flight is for.
pub enum Pending {
    /// A step of opening the file.
    Opening,
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
    /// A step of a script; a sync takes along the segments it makes durable, and what had failed
    /// before it.
    Script(Option<([Sequence; 2], u32)>),
    /// Reading uses, from this page of their region.
    ReadUses(u32),
    /// Uses being written.
    WriteUses,
    /// Letting go of a file that is no longer used.
    CloseFile,
    /// Giving back the space behind the end of a store that was made smaller.
    Trim,
}

impl Webcosm {
    /// Submits an operation.
    pub(crate) fn submit(&mut self, op: IoOp, what: Pending, out: &mut Outbox) -> u64 {
        if let (IoOp::Write { buffer, .. }, Some(held)) = (&op, &mut self.held) {
            held.spend(buffer.len());
        }
        self.next_io += 1;
        self.pending.insert(self.next_io, what);
        out.submit(IoId(self.next_io), op);
        self.next_io
    }

    /// Submits a read of the file.
    pub(crate) fn submit_read(
        &mut self,
        offset: u64,
        length: usize,
        what: Pending,
        out: &mut Outbox,
    ) {
        let op = IoOp::Read { file: self.file, offset, buffer: IoBuffer::zeroed(length) };
        self.submit(op, what, out);
    }

    /// Takes a completion to where it belongs.
    pub(crate) fn dispatch(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        let id = done.id;
        let Some(pending) = self.pending.remove(&id.0) else { return };
        let looking = matches!(pending, Pending::Opening);
        let failed =
            done.result.as_ref().is_err_and(|&error| !(looking && self.opening.looks_for(error)));
        if failed && !matches!(pending, Pending::CloseFile) {
            self.observer.statistics.device_errors.add(1);
        }
        if matches!(self.phase, Phase::Closed | Phase::Unusable) {
            return;
        }
        match pending {
            Pending::Opening => self.opened(done, out),
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
                self.batch_done(id.0, &batch, (result, done.buffer), out);
            }
            Pending::Summary(segment) => self.summary_done(segment, written(&done)),
            Pending::Script(synced) => {
                self.script_step_done(synced, written(&done), now, out);
            }
            Pending::ReadUses(page) => self.uses_read(page, read(done), now, out),
            Pending::WriteUses => self.uses_written(written(&done), now),
            Pending::CloseFile | Pending::Trim => {}
        }
    }
}
