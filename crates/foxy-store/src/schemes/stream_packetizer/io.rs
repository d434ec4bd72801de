//! Operations in flight, and where their completions go.

use super::StreamPacketizer;
use super::reads::PendingRead;
use super::script::{LaneName, Synced};
use super::state::Phase;
use crate::contract::Outbox;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput};

/// What an operation in flight is for.
pub enum Pending {
    /// Opening the file.
    Open,
    /// Creating the file, of this size.
    Create(u64),
    /// Reading the superblocks.
    Superblocks,
    /// Reading on in a file that begins with zeros, from this byte.
    Blank(u64),
    /// Reading the active journal half.
    Journal,
    /// Reading the first page of a checkpoint area.
    CheckpointHead(usize),
    /// Reading pages of a checkpoint, from this one.
    CheckpointPages(u32),
    /// Reading pages of records for their headers.
    Scan(crate::pages::Run),
    /// A get.
    Read(PendingRead),
    /// A page buffer being written.
    Window,
    /// A step of a script; a sync takes along what it makes durable.
    Script(LaneName, Option<Synced>),
    /// Reading a record that may not be durable, to write it again.
    Settle(crate::pages::Run),
    /// Making what an earlier process wrote durable, before any of it is read.
    FirstSync,
    /// Letting go of a file that is no longer used.
    CloseFile,
}

impl StreamPacketizer {
    /// Submits an operation.
    pub(super) fn submit(&mut self, op: IoOp, what: Pending, out: &mut Outbox) -> u64 {
        self.next_io += 1;
        self.pending.insert(self.next_io, what);
        out.submit(IoId(self.next_io), op);
        self.next_io
    }

    /// Submits a read of the file.
    pub(super) fn submit_read(&mut self, offset: u64, length: usize, what: Pending, out: &mut Outbox) {
        let op = IoOp::Read { file: self.file, offset, buffer: IoBuffer::zeroed(length) };
        self.submit(op, what, out);
    }

    /// Takes a completion to where it belongs.
    pub(super) fn dispatch(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        let IoDone { id, result, buffer } = done;
        let Some(pending) = self.pending.remove(&id.0) else { return };
        let looked_for = matches!(pending, Pending::Open) && matches!(result, Err(IoError::NotFound));
        if result.is_err() && !looked_for && !matches!(pending, Pending::CloseFile) {
            self.observer.statistics.device_errors.add(1);
        }
        if matches!(self.phase, Phase::Closed | Phase::Unusable) {
            return;
        }
        match pending {
            Pending::Open => self.opened(result, out),
            Pending::Create(size) => self.created(size, result, out),
            Pending::Superblocks => self.superblocks_read(read(result, buffer), out),
            Pending::Blank(from) => self.blank_read(from, read(result, buffer), out),
            Pending::Journal => self.journal_read(read(result, buffer), out),
            Pending::CheckpointHead(area) => self.checkpoint_head_read(area, read(result, buffer), out),
            Pending::CheckpointPages(from) => self.checkpoint_pages_read(from, read(result, buffer), out),
            Pending::FirstSync => self.first_synced(result.map(|_| ()), out),
            Pending::Settle(run) => self.settle_read(run, read(result, buffer), now, out),
            Pending::Scan(run) => self.scanned(run, read(result, buffer), now, out),
            Pending::Read(pending) => self.read_done(pending, read(result, buffer), out),
            Pending::Window => self.window_done(id.0, written(result, buffer.as_ref())),
            Pending::Script(lane, synced) => {
                let result = written(result, buffer.as_ref());
                drop(buffer);
                self.script_step_done(lane, synced, result, now, out);
            }
            Pending::CloseFile => {}
        }
    }
}

/// A read's bytes, cut to what was moved.
fn read(result: Result<IoOutput, IoError>, buffer: Option<IoBuffer>) -> Result<IoBuffer, IoError> {
    match (result?, buffer) {
        (IoOutput::Moved { count }, Some(mut buffer)) if count <= buffer.len() => {
            buffer.truncate(count);
            Ok(buffer)
        }
        _ => Err(IoError::Device),
    }
}

/// Whether a write moved everything; operations without a buffer only succeed or fail.
fn written(result: Result<IoOutput, IoError>, buffer: Option<&IoBuffer>) -> Result<(), IoError> {
    match (result?, buffer) {
        (IoOutput::Moved { count }, Some(buffer)) if count < buffer.len() => Err(IoError::Device),
        _ => Ok(()),
    }
}
