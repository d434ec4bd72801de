//! Ways in which a command can fail, with the exit code of each.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::process::ExitCode;

/// Reason why a command failed. The reason determines the exit code of foxy.
#[derive(Debug)]
pub enum Failure {
    /// A measured value violated a condition of `--fail-if`, or a check found damage. The exit code
    /// is 1.
    Missed(String),
    /// Arguments, settings or files are invalid. The exit code is 2.
    Unusable(String),
    /// Something failed during the command, although its arguments were valid. The exit code is 3.
    Failed(String),
    /// Another program, which the command started, has ended with this exit code. That program has
    /// reported the reason itself.
    Ended(u8),
    /// The command could not start another program. Contains the reason and the exit code that a
    /// shell would return.
    NotRun(String, u8),
}

impl Failure {
    /// Returns the exit code with which foxy must end.
    pub fn exit_code(&self) -> ExitCode {
        self.code().into()
    }

    /// Returns the number of the exit code, for a thread that ends foxy.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Missed(_) => 1,
            Self::Unusable(_) => 2,
            Self::Failed(_) => 3,
            Self::Ended(code) | Self::NotRun(_, code) => *code,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missed(text)
            | Self::Unusable(text)
            | Self::Failed(text)
            | Self::NotRun(text, _) => f.write_str(text),
            Self::Ended(code) => write!(f, "the command ended with exit code {code}"),
        }
    }
}

/// Describes why a file or folder cannot be written, with the remedy. `otherwise` is the remedy if
/// the disk is neither full nor read-only.
pub fn unwritten(error: &Error, otherwise: &str) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk or quota is full; free some space there".to_owned()
        }
        ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; mount it for writing".to_owned()
        }
        _ => format!("{error}; {otherwise}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_and_a_read_only_disk_have_their_own_remedies() {
        for (kind, expected) in [
            (ErrorKind::StorageFull, "the disk or quota is full; free some space there"),
            (ErrorKind::ReadOnlyFilesystem, "the file system is read-only; mount it for writing"),
            (ErrorKind::PermissionDenied, "permission denied; name another file"),
        ] {
            assert_eq!(unwritten(&kind.into(), "name another file"), expected);
        }
    }
}
