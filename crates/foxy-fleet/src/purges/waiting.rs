//! The purges that a member has appended to the log, and that wait for other members.

use super::chain::Broken;
use super::engine::LogView;
use super::entry::Entry;
use super::session::Ticket;
use foxy_base::Instant;

/// An entry with purges that wait until every other member has applied it or lost its lease.
pub struct Waiting {
    /// The purges.
    pub tickets: Vec<Ticket>,
    /// Number of the chain that the entry belongs to.
    pub chain: u64,
    /// Position of the entry.
    pub position: u64,
    /// Hash of the entry. `None` after this member has read the entry in the log, or a new chain
    /// has taken its place.
    pub unread: Option<u128>,
    /// When the entry was appended.
    pub appended: Instant,
}

/// Finds the entries that this member has appended. If the log has another entry in their place, or
/// ends before them, the engine has lost an entry that it confirmed.
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
