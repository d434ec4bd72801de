//! The services that the purge log needs from an engine (an external server): an ordered log, and a
//! record of each member's process. The modules `redis` and `nats` implement these services.
//!
//! # The order of steps
//!
//! Each step takes effect at one moment between its call and its return. The steps are: append an
//! entry, write a record, remove a record, read a record, read the log. An exchange writes a
//! record, removes records, reads all records, and then reads the log. Other processes may act
//! between these steps. In Redis, an exchange is one step.
//!
//! **A process that purges counts every lease that may lack its entry.** A member writes its
//! record, then reads the log, and gets a lease. If its log lacks an entry, the append came later.
//! The process that purges reads the records after the append, so it finds this record, or a later
//! record of the same member. If a later record contains the entry's position, the member has
//! applied the entry. Otherwise the lease began before that process saw the record. So the lease
//! ends before that process stops to wait.
//!
//! **The position in a record must be about the same entry.** A record has the hash of the last
//! applied entry. A process that purges accepts the position in a record only if it has read an
//! entry with this hash at this position.
//!
//! **A record shows what the log lost.** A process acknowledges a purge only after its own record
//! contains the entry's position. The engine may then roll its log back. A member that returns
//! finds a record with a position beyond the end of the log, or with another hash. It then knows
//! that the chain is broken. So each exchange reads the records before the log. Otherwise newer
//! entries would look like lost entries.
//!
//! **The log is not older than the proof that it is complete.** An incarnation is one run of the
//! engine's server. A record attests that the log of an incarnation lacks no entry that its process
//! knows. An exchange reads these records first and the log afterwards. In the other order, another
//! process could begin a new chain after the read of the log, and attest only the new chain. The
//! reader would then trust the old log.

use super::entry::Process;
use super::lease::MemberRecord;
use std::fmt;
use std::time::Duration;

/// The reason why a call of the engine (the server with the purge log) failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The address of the engine is unusable.
    BadAddress(String),
    /// The engine refuses the request, or foxy cannot reach it. Contains the reason.
    Away(String),
    /// The engine's answer has an unexpected form. Contains the name of the unexpected part.
    Unexpected(&'static str),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadAddress(why) => write!(f, "the engine's address is unusable: {why}"),
            Self::Away(why) => f.write_str(why),
            Self::Unexpected(what) => write!(f, "the engine's answer has no usable {what}"),
        }
    }
}

/// Whether an engine writes each entry to disk before it confirms the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The engine writes each entry to disk before it confirms the entry.
    Always,
    /// Because of a setting, the engine may confirm an entry before the entry is on disk. The text
    /// names the setting and its value.
    Weak(String),
    /// The engine does not reveal its settings.
    Unknown,
}

/// Facts about the engine's server to which foxy has just connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Number that identifies this run of the engine's server. It changes after a restart, or if
    /// another server takes over.
    pub incarnation: u64,
    /// Whether the entries of the purge log survive a crash of the engine.
    pub durability: Durability,
}

/// An entry that a member appends to the purge log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The position of the entry. It must be higher than every position that the log ever had.
    pub position: u64,
    /// The binary form of the entry to append.
    pub bytes: Vec<u8>,
    /// Whether the log drops all entries before this entry.
    pub drops_earlier: bool,
}

/// The result of appending an entry to the purge log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log now contains the entry.
    Done,
    /// Another process has appended an entry at this position. The log does not contain this
    /// process's entry.
    Taken,
}

/// The result of an exchange with the engine: the records of all members, and the purge log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    /// Position of the first entry that is still in the purge log.
    pub first: u64,
    /// Highest position that the purge log ever had.
    pub tail: u64,
    /// Number of entries in the purge log.
    pub count: u64,
    /// The binary form of the last entry in the purge log.
    pub last: Option<Vec<u8>>,
    /// The entries after the position from which the exchange reads. Each has its position and its
    /// binary form.
    pub entries: Vec<(u64, Vec<u8>)>,
    /// The records that all members' processes have written to the engine.
    pub records: Vec<MemberRecord>,
}

/// A server with an ordered purge log and with records of the members' processes. A call may block,
/// but not longer than [`CALL_TIMEOUT`]. After an error, the next call must be `connect`.
pub trait Engine: Send {
    /// Opens a new connection to the engine. Until the next call of `connect`, all calls reach the
    /// same server.
    fn connect(&mut self) -> Result<Connected, EngineError>;

    /// Appends an entry to the purge log. Refuses the entry if the log ever had an entry at this
    /// position or later.
    fn append(&mut self, append: &Append) -> Result<Appended, EngineError>;

    /// Writes `record` (if it is not `None`) to the engine, and then removes the records of the
    /// processes `gone`. Then reads all records. Finally reads the purge log, with the entries
    /// after the position `after`. The module's documentation explains this order.
    fn exchange(
        &mut self,
        record: Option<&MemberRecord>,
        gone: &[Process],
        after: u64,
    ) -> Result<LogView, EngineError>;
}

/// Waits for new entries of the purge log, on its own connection to the engine.
pub trait Watch: Send {
    /// Returns when the log has an entry after the position `after`, or when [`WATCH_TIMEOUT`] has
    /// passed.
    fn wait(&mut self, after: u64) -> Result<(), EngineError>;
}

/// Time limit of a call to the engine.
pub const CALL_TIMEOUT: Duration = Duration::from_millis(1000);
/// Time limit of a wait for new entries of the purge log.
pub const WATCH_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest number of entries that one exchange reads from the purge log.
pub const MAX_VIEW_ENTRIES: usize = 256;
