//! Failures of commands, and their exit codes.

use std::fmt;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A bar of `--fail-if` was missed, or damage was found: exit code 1.
    Missed(String),
    /// Arguments, configuration or files are unusable: exit code 2.
    Unusable(String),
    /// The run itself failed: exit code 3.
    Failed(String),
    /// A child command ended with this exit code and has reported the reason itself.
    Ended(u8),
    /// A child command could not run: the reason and the shell's exit code for it.
    NotRun(String, u8),
}

impl Failure {
    /// The exit code of the process.
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
