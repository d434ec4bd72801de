//! The purges that a member has appended to the log, and that are not acknowledged yet.

use super::chain::Broken;
use super::engine::LogView;
use super::entry::Entry;
use super::session::Ticket;
use foxy_base::Instant;

/// A log entry whose purges wait until every other member has applied the entry or lost its lease.
pub struct Waiting {
    /// The numbers of the purges in the entry.
    pub tickets: Vec<Ticket>,
    /// Number of the chain to which the entry belongs.
    pub chain: u64,
    /// Position of the entry in the purge log.
    pub position: u64,
    /// Hash of the entry, until this member has read the entry in the purge log. Then `None`. Also
    /// `None` once the purge log has begun a new chain of entries. The purges of the entry then
    /// wait for the beginning of that chain.
    pub unread: Option<u128>,
    /// The time when the entry was appended, or when a new chain replaced it.
    pub appended: Instant,
}

/// Finds the entries in the log that this member has appended itself. Returns a reason if the
/// engine has lost a confirmed entry: the log has another entry at its position, or ends before it.
pub fn find_own(waiting: &mut [Waiting], view: &LogView) -> Result<(), Broken> {
    for waiting in waiting {
        let Some(hash) = waiting.unread else { continue };
        if view.tail < waiting.position {
            return Err(Broken::LostTail);
        }
        let found = view.entries.iter().find(|(position, _)| *position == waiting.position);
        match found {
            Some((_, bytes)) if Entry::hash(bytes) == hash => waiting.unread = None,
            Some(_) => return Err(Broken::LostOfWriter),
            None => {}
        }
    }
    Ok(())
}
