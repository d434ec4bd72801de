//! Replaces the running process by a process of another binary, without an interruption for
//! clients. The old process starts the new process, and passes it the listening sockets. Then it
//! closes the stores, so that the new process can open them (docs/decisions/upgrade.md).

mod binary;
pub mod keeper;
mod link;
pub mod moving_clients;
pub mod predecessor;
pub mod successor;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time limit from the start of the new process until it is ready to open the stores.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the new process to open the stores. New connections wait meanwhile.
const OPEN_LIMIT: Duration = Duration::from_secs(15);
/// Longest time that an upgrade may take. Clients of the admin server wait up to this time.
pub const LONGEST: Duration = Duration::from_secs(60);

/// A request to replace this process.
pub struct UpgradeWish {
    /// Path of the new binary. `None` stands for the program of this process.
    pub binary: Option<String>,
    pub reply: oneshot::Sender<Result<Upgraded, NotUpgraded>>,
}

/// The result of a successful upgrade.
#[derive(Clone, Copy, Debug)]
pub struct Upgraded {
    pub process: u32,
    /// Time for which no process accepted connections, so that new connections waited.
    pub gap: Duration,
}

/// The reason why an upgrade failed. The old process continues to serve.
#[derive(Debug)]
pub enum NotUpgraded {
    /// Another user could have written this file, or could replace it.
    Untrusted(PathBuf),
    /// The configuration came from a pipe, which cannot be read again.
    UnreadableSettings(String),
    /// The disk of the store in this folder does not answer.
    SilentDisk(String),
    /// The operating system refused to start the process.
    CannotStart(String, io::Error),
    /// The new process ended with this error.
    Failed(String),
    /// The new process ended without an error message.
    Ended(Option<ExitStatus>),
    /// The new process was not ready within [`START_LIMIT`].
    StartTooSlow,
    /// The new process did not open the stores within [`OPEN_LIMIT`].
    OpenTooSlow,
    /// foxy is stopping, or another process has taken over.
    Leaving,
}

impl fmt::Display for NotUpgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the old process continues to serve: ")?;
        match self {
            Self::Untrusted(path) => write!(
                f,
                "another user may write {}; name a binary that belongs to root or to foxy's user, \
                 in folders that only they may write",
                path.display()
            ),
            Self::UnreadableSettings(why) => f.write_str(why),
            Self::SilentDisk(folder) => write!(f, "the disk of the store {folder} does not answer"),
            Self::CannotStart(binary, error) => write!(f, "{binary} cannot be started: {error}"),
            Self::Failed(why) => write!(f, "the new process failed: {why}"),
            Self::Ended(Some(status)) => write!(
                f,
                "the new process ended ({status}); read its messages on foxy's standard error; the \
                 binary must be a foxy that has the command `upgrade`"
            ),
            Self::Ended(None) => f.write_str("the new process ended"),
            Self::StartTooSlow => write!(
                f,
                "the new process was not ready after {} s; the binary must be a foxy that has the \
                 command `upgrade`",
                START_LIMIT.as_secs()
            ),
            Self::OpenTooSlow => write!(
                f,
                "the new process did not open the stores within {} s",
                OPEN_LIMIT.as_secs()
            ),
            Self::Leaving => f.write_str("foxy is stopping"),
        }
    }
}
