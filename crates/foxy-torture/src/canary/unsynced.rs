//! Wraps a production storage scheme so that its syncs do nothing. The torture tests must then find
//! lost data. This result proves that the tests would find a missing sync.

use foxy_base::Instant;
use foxy_device::{IoDone, IoOp, IoOutput};
use foxy_store::{Outbox, Scheme, StoreRequest};

/// A storage scheme whose syncs do nothing: it answers every sync with success at once, and never
/// passes the sync to the disk.
pub struct Unsynced(pub Box<dyn Scheme>);

impl Unsynced {
    fn pretend(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(at) =
            out.operations.iter().position(|(_, op)| matches!(op, IoOp::Sync { .. }))
        {
            let (id, _) = out.operations.remove(at);
            self.0.on_io_done(IoDone { id, result: Ok(IoOutput::Done), buffer: None }, now, out);
        }
    }
}

impl Scheme for Unsynced {
    fn start(&mut self, now: Instant, out: &mut Outbox) {
        self.0.start(now, out);
        self.pretend(now, out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        self.0.on_request(request, now, out);
        self.pretend(now, out);
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.0.on_io_done(done, now, out);
        self.pretend(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.0.on_deadline(now, out);
        self.pretend(now, out);
    }
}
