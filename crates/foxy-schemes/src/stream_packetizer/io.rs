//! Where completions go.

use super::StreamPacketizer;
use super::pending::Pending;
use foxy_base::Instant;
use foxy_device::IoDone;
use foxy_store::completion::{read, written};
use foxy_store::contract::Outbox;

impl StreamPacketizer {
    /// Takes a completion to where it belongs.
    pub(super) fn dispatch(
        &mut self,
        pending: Pending,
        done: IoDone,
        now: Instant,
        out: &mut Outbox,
    ) {
        match pending {
            Pending::Journal => self.journal_read(read(done), out),
            Pending::CheckpointHead(area) => self.checkpoint_head_read(area, read(done), out),
            Pending::CheckpointPages(from) => self.checkpoint_pages_read(from, read(done), out),
            Pending::Settle(run) => self.settle_read(run, read(done), now, out),
            Pending::Scan(run) => self.scanned(run, read(done), now, out),
            Pending::Read(pending) => self.read_done(pending, read(done), out),
            Pending::Window => self.window_done(done.id, written(&done)),
            Pending::Step(lane, synced) => {
                let result = written(&done);
                drop(done);
                self.step_done(lane, synced, result, now, out);
            }
        }
    }
}
