//! Performs `Look` steps. They simulate another thread that looks a record up in the store without
//! sending the storage scheme a request. The thread reads the disk itself, in two parts, so that
//! the store may change at any moment of the look-up. The model checks the result like the answer to
//! a `get`.

use super::{Run, brief};
use crate::content;
use crate::model::Asked;
use crate::violation::Violation;
use foxy_device::IoBuffer;
use foxy_store::{AbsentReason, Answer, Find, Look, RecordPlace, StoreReply, StoreRequest, Ticket};
use std::sync::Arc;

/// A look-up whose disk read is in progress.
pub(super) struct OpenLook {
    ticket: Ticket,
    key: u32,
    place: RecordPlace,
    /// The bytes of the record that were read so far.
    read: Vec<u8>,
}

impl Run<'_> {
    /// Looks up a key without disk reads. Returns whether the result is that the record is absent.
    pub(super) fn says_absent(&self, key: u32) -> bool {
        let look =
            self.lookup.as_ref().map(|lookup| lookup.look(content::key(key), &mut |_, _, _| None));
        look == Some(Look::Absent)
    }

    /// Begins to look up a key. In half of the cases, the look-up ends before the next event.
    pub(super) fn look(&mut self, key: u32) -> Result<(), Violation> {
        let Some(lookup) = &self.lookup else { return Ok(()) };
        let find = lookup.find(content::key(key));
        if find == Find::Unsure {
            return Ok(());
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.model.ask(ticket, Asked::Get(key));
        let Find::At(place) = find else {
            return self.looked(ticket, Answer::Absent(AbsentReason::NotIndexed));
        };
        self.note(|| format!("  look {}: {place:?}", ticket.0));
        self.looks.push(OpenLook { ticket, key, place, read: Vec::new() });
        if self.random.chance(0.5) {
            while self.looks.last().is_some_and(|look| look.ticket == ticket) {
                self.go_on_looking(self.looks.len() - 1)?;
            }
        }
        Ok(())
    }

    /// Does the next step of a random look-up in progress. Returns false if no look-up is in
    /// progress.
    pub(super) fn go_on_with_a_look(&mut self) -> Result<bool, Violation> {
        let count = self.looks.len() as u64;
        if count == 0 {
            return Ok(false);
        }
        let which = usize::try_from(self.random.below(count)).unwrap_or(0);
        self.go_on_looking(which).map(|()| true)
    }

    /// Does the next step of a look-up: reads a part of its bytes from the disk, or verifies the
    /// bytes. The read sees the disk's current content, even if writes are in flight.
    fn go_on_looking(&mut self, which: usize) -> Result<(), Violation> {
        let look = &mut self.looks[which];
        let RecordPlace { file, offset, length } = look.place;
        let begin = look.read.len();
        if begin < length {
            let most = (length - begin) as u64;
            let half = if begin == 0 { 1 + self.random.below(most) } else { most };
            let part = usize::try_from(half).unwrap_or(length);
            if let Some(bytes) = self.disk.read_now(file, offset + begin as u64, part) {
                look.read.extend_from_slice(bytes.as_ref());
                return Ok(());
            }
            // The look-up could not read the record from the disk. It then becomes a `get` request
            // to the storage scheme.
            look.read.clear();
        }
        let look = self.looks.swap_remove(which);
        let Some(lookup) = self.lookup.as_ref().map(Arc::clone) else { return Ok(()) };
        let whole = look.read.len() == length;
        let buffer = whole.then(|| IoBuffer::copy_of(&look.read));
        let key = content::key(look.key);
        match buffer.and_then(|buffer| lookup.verify(key, look.place, buffer)) {
            Some(record) => self.looked(look.ticket, Answer::Found(record)),
            None => {
                let request = StoreRequest::Get { ticket: look.ticket, key };
                self.scheme.on_request(request, self.now, &mut self.out);
                self.carry_out()
            }
        }
    }

    fn looked(&mut self, ticket: Ticket, answer: Answer) -> Result<(), Violation> {
        let reply = StoreReply { ticket, answer };
        self.note(|| format!("  look {}: {}", reply.ticket.0, brief(&reply.answer)));
        self.tally.looked_up += u64::from(matches!(reply.answer, Answer::Found(_)));
        self.tally.count(self.model.answer(&reply)?);
        Ok(())
    }
}
