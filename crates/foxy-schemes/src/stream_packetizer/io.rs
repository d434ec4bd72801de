//! Operations in flight, and where their completions go.

use super::StreamPacketizer;
use super::pending::Pending;
use super::state::Phase;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoDone, IoId, IoOp};
use foxy_store::completion::{read, written};
use foxy_store::contract::Outbox;

impl StreamPacketizer {
    /// Submits an operation.
    pub(super) fn submit(&mut self, op: IoOp, what: Pending, out: &mut Outbox) -> u64 {
        self.next_io += 1;
        self.pending.insert(self.next_io, what);
        out.submit(IoId(self.next_io), op);
        self.next_io
    }

    /// Submits a read of the file.
    pub(super) fn submit_read(
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
    pub(super) fn dispatch(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
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
            Pending::CheckpointHead(area) => self.checkpoint_head_read(area, read(done), out),
            Pending::CheckpointPages(from) => self.checkpoint_pages_read(from, read(done), out),
            Pending::Settle(run) => self.settle_read(run, read(done), now, out),
            Pending::Scan(run) => self.scanned(run, read(done), now, out),
            Pending::Read(pending) => self.read_done(pending, read(done), out),
            Pending::Window => self.window_done(id.0, written(&done)),
            Pending::Script(lane, synced) => {
                let result = written(&done);
                drop(done);
                self.script_step_done(lane, synced, result, now, out);
            }
            Pending::CloseFile => {}
        }
    }
}
