//! Performs `Look` steps. They simulate another thread that looks a record up in the store without
//! sending the storage scheme a request. The model checks the result like the answer to a `get`.

use super::{Run, brief};
use crate::content;
use crate::model::Asked;
use crate::violation::Violation;
use foxy_store::{AbsentReason, Answer, Look, StoreReply, Ticket};

impl Run<'_> {
    /// Looks up a key without disk reads. Returns whether the result is that the record is absent.
    pub(super) fn says_absent(&self, key: u32) -> bool {
        let look =
            self.lookup.as_ref().map(|lookup| lookup.look(content::key(key), &mut |_, _, _| None));
        look == Some(Look::Absent)
    }

    /// Looks up a key. Reads the disk's current content, even if writes are in flight.
    pub(super) fn look(&mut self, key: u32) -> Result<(), Violation> {
        let Some(lookup) = &self.lookup else { return Ok(()) };
        let disk = &mut self.disk;
        let mut read = |file, offset, length| disk.read_now(file, offset, length);
        let answer = match lookup.look(content::key(key), &mut read) {
            Look::Unsure => return Ok(()),
            Look::Absent => Answer::Absent(AbsentReason::NotIndexed),
            Look::Found(record) => Answer::Found(record),
        };
        self.tickets += 1;
        let reply = StoreReply { ticket: Ticket(self.tickets), answer };
        self.note(|| format!("  look {}: {}", reply.ticket.0, brief(&reply.answer)));
        self.tally.looked_up += u64::from(matches!(reply.answer, Answer::Found(_)));
        self.model.ask(reply.ticket, Asked::Get(key));
        self.tally.count(self.model.answer(&reply)?);
        Ok(())
    }
}
