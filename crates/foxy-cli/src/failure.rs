//! Ways in which a command can fail, with the exit code of each.

use std::fmt;
use std::process::ExitCode;

/// Reason why a command failed. Determines the exit code of foxy.
#[derive(Debug)]
pub enum Failure {
    /// A measured value violated a condition of `--fail-if`, or a check found damage. Exit code 1.
    Missed(String),
    /// Arguments, settings or files are invalid. Exit code 2.
    Unusable(String),
    /// The operation itself failed. Exit code 3.
    Failed(String),
    /// The program that foxy started has ended with this exit code. The other program has reported
    /// the reason itself.
    Ended(u8),
    /// The program could not be started. Contains the reason and the exit code that a shell would
    /// return.
    NotRun(String, u8),
}

impl Failure {
    /// Returns the exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Missed(_) => ExitCode::from(1),
            Self::Unusable(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(3),
            Self::Ended(code) | Self::NotRun(_, code) => ExitCode::from(*code),
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
