//! The storage scheme `null` (requirement R58 of `foxy figure requirements`), which stores nothing.
//! Every get finds no record, and every put is refused with a reason.

use crate::contract::{AbsentReason, Answer, Outbox, RefusedReason, Scheme, StoreRequest};
use crate::observe::Observer;
use crate::status::StoreStatus;
use foxy_base::Instant;
use foxy_device::IoDone;

/// A storage scheme that stores nothing.
#[derive(Debug)]
pub struct Null {
    observer: Observer,
    closed: bool,
}

impl Null {
    pub const fn new(observer: Observer) -> Self {
        Self { observer, closed: false }
    }
}

impl Scheme for Null {
    fn start(&mut self, _now: Instant, _out: &mut Outbox) {
        self.observer.status.set(StoreStatus::Serving);
    }

    fn on_request(&mut self, request: StoreRequest, _now: Instant, out: &mut Outbox) {
        let closed = self.closed;
        let answer = match request {
            StoreRequest::Get { .. } if closed => Answer::Absent(AbsentReason::Closed),
            StoreRequest::Get { .. } => Answer::Absent(AbsentReason::NotIndexed),
            StoreRequest::Put { .. } | StoreRequest::Remove { .. } if closed => {
                Answer::Refused(RefusedReason::Closed)
            }
            StoreRequest::Put { .. } => Answer::Refused(RefusedReason::StoresNothing),
            StoreRequest::Remove { .. } => Answer::Removed,
            StoreRequest::Close { .. } => {
                self.closed = true;
                self.observer.status.set(StoreStatus::Closed);
                Answer::Closed
            }
        };
        out.reply(request.ticket(), answer);
    }

    fn on_io_done(&mut self, _done: IoDone, _now: Instant, _out: &mut Outbox) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Key, Record, Ticket};

    #[test]
    fn it_answers_everything_and_stores_nothing() {
        let mut null = Null::new(Observer::default());
        let (ticket, key) = (Ticket(1), Key([7; 16]));
        let mut check = |request, expected| {
            let mut out = Outbox::default();
            null.on_request(request, Instant::ZERO, &mut out);
            assert_eq!(out.replies.len(), 1);
            assert_eq!(out.replies[0].answer, expected);
        };
        let put = || StoreRequest::Put {
            ticket,
            key,
            record: Record::default(),
            hint: Default::default(),
        };
        check(put(), Answer::Refused(RefusedReason::StoresNothing));
        check(StoreRequest::Get { ticket, key }, Answer::Absent(AbsentReason::NotIndexed));
        check(StoreRequest::Remove { ticket, key }, Answer::Removed);
        check(StoreRequest::Close { ticket }, Answer::Closed);
        check(put(), Answer::Refused(RefusedReason::Closed));
    }
}
