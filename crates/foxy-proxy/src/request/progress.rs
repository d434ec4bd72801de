//! How far the answer to a request has come, for the log of a request that does not come to its
//! end.

use crate::request::cache_status::CacheStatus;
use std::cell::Cell;

/// What was sent of an answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    opened: Cell<Option<(u16, CacheStatus)>>,
    head: Cell<u64>,
    sent: Cell<u64>,
}

impl Progress {
    /// Nothing was sent yet.
    pub(crate) fn restart(&self) {
        self.opened.set(None);
        self.head.set(0);
        self.sent.set(0);
    }

    /// A head of so many bytes is about to be sent.
    pub(crate) fn open(&self, status: u16, outcome: CacheStatus, head: u64) {
        self.opened.set(Some((status, outcome)));
        self.head.set(head);
    }

    /// So many bytes were sent.
    pub(crate) fn send(&self, bytes: u64) {
        self.sent.set(self.sent.get() + bytes);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Bytes of the body that were sent; those of chunk lines count.
    pub(crate) fn body(&self) -> u64 {
        self.sent.get().saturating_sub(self.head.get())
    }

    /// The status that was sent, and what was done with the request.
    pub(crate) fn opened(&self) -> Option<(u16, CacheStatus)> {
        self.opened.get().filter(|_| self.sent.get() > 0)
    }
}
