//! How a command can end badly, and the exit code scripts see for it.

use std::fmt;
use std::process::ExitCode;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// A bar given with `--fail-if` was missed, or damage was found where it was looked for: exit
    /// code 1.
    Missed(String),
    /// Arguments, configuration or files that cannot be used: exit code 2.
    Unusable(String),
    /// The run itself failed: exit code 3.
    Failed(String),
    /// A command that was run for the user ended with this exit code, and has said itself why.
    Ended(u8),
    /// A command was to be run for the user and could not be: the reason and the exit code, as a
    /// shell gives it.
    NotRun(String, u8),
}

impl Failure {
    /// The process's exit code.
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
