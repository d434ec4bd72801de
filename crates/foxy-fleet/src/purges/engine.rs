//! The services that the purge log needs from an engine: an ordered log, and a record of each
//! member's process. `redis` and `nats` implement them.
//!
//! # The order of steps
//!
//! Each step takes effect at one moment between its call and its return. The steps are: append an
//! entry, write a record, remove a record, read a record, read the log. An exchange writes,
//! removes, reads all records, and then reads the log. Other processes may act between these
//! steps. In Redis, an exchange is one step.
//!
//! **A purger counts every lease that may lack its entry.** A member writes its record, then reads
//! the log, and gets a lease. If its log lacks an entry, the append came later. The purger reads
//! the records after the append, so it finds this record, or a later record of the same process. If
//! a later record tells the entry's position, the member has applied the entry. Otherwise the lease
//! began before the purger saw the record, so it ends before the purger stops to wait.
//!
//! **A position in a record is about the entry that the purger finds.** A record has the hash of
//! the last applied entry. The purger counts the position only if it has read an entry with this
//! hash there.
//!
//! **A record shows what the log lost.** A purger acknowledges a purge only after its own record
//! tells the entry's position. After a rollback, a member that returns finds a position beyond the
//! end of the log, or another hash, and breaks the chain. So the records are read before the log:
//! otherwise newer entries would look like lost entries.
//!
//! **A proof is no younger than the log.** A record attests that the log of an incarnation lacks
//! no entry that the process knows. The reader then reads the log. If it read the log first,
//! another process could begin a new chain after that, and attest only the new chain. The reader
//! would trust the old log.

use super::entry::Process;
use super::lease::MemberRecord;
use std::fmt;
use std::time::Duration;

/// The reason why a call of the engine failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The address of the engine is unusable.
    BadAddress(String),
    /// The engine refuses the request, or cannot be reached.
    Away(String),
    /// The answer has an unexpected form.
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
    /// The engine does so.
    Always,
    /// A setting of the engine prevents this. The text names the setting and its value.
    Weak(String),
    /// The engine does not tell its settings.
    Unknown,
}

/// Facts about the engine at the other end of a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// Number of the run of the engine's server. After a restart or a takeover by another server,
    /// the number differs.
    pub incarnation: u64,
    /// Whether entries survive a crash of the engine.
    pub durability: Durability,
}

/// An entry to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The position, which must be higher than every position that the log ever had.
    pub position: u64,
    /// The binary form of the entry.
    pub bytes: Vec<u8>,
    /// Whether the log drops all entries before this entry.
    pub drops_earlier: bool,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log has the entry.
    Done,
    /// Another process took the position. The log does not have the entry.
    Taken,
}

/// The records, and the log at one moment after the records were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    /// Position of the first entry that is still in the log.
    pub first: u64,
    /// Highest position that the log ever had.
    pub tail: u64,
    /// Number of entries in the log.
    pub count: u64,
    /// The last entry.
    pub last: Option<Vec<u8>>,
    /// The next entries with their positions.
    pub entries: Vec<(u64, Vec<u8>)>,
    /// The records of all processes.
    pub records: Vec<MemberRecord>,
}

/// An ordered log, and records of the members' processes. A call may block, but not longer
/// than [`CALL_TIMEOUT`]. After an error, the next call must be `connect`.
pub trait Engine: Send {
    /// Opens a new connection. Until the next call of `connect`, all calls reach the same server.
    fn connect(&mut self) -> Result<Connected, EngineError>;

    /// Appends an entry, unless the log ever had an entry at this position or later.
    fn append(&mut self, append: &Append) -> Result<Appended, EngineError>;

    /// Writes a record, if there is any, and then removes the records of the processes `gone`. Then
    /// reads all records. At last, reads the log with the entries after the position `after`. The
    /// module's documentation explains this order.
    fn exchange(
        &mut self,
        record: Option<&MemberRecord>,
        gone: &[Process],
        after: u64,
    ) -> Result<LogView, EngineError>;
}

/// Waits for new entries on a connection of its own.
pub trait Watch: Send {
    /// Returns when the log has an entry after the position `after`, or after [`WATCH_TIMEOUT`].
    fn wait(&mut self, after: u64) -> Result<(), EngineError>;
}

/// Time limit of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_millis(1000);
/// Time limit of a wait for new entries.
pub const WATCH_TIMEOUT: Duration = Duration::from_millis(500);
/// Largest number of entries in a [`LogView`].
pub const MAX_VIEW_ENTRIES: usize = 256;
