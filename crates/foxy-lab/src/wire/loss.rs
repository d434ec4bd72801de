//! How a connection was lost before an answer was whole. What that is called is each report's own
//! matter.

use std::io;

/// How it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Closed before a byte of the answer.
    Unanswered,
    /// Closed within the answer.
    Within,
    /// Reset, before the answer or within it.
    Reset,
}

impl Loss {
    /// With an error or, where there is none, closed; `begun` when some of the answer had come.
    pub fn of(error: Option<&io::Error>, begun: bool) -> Self {
        match error.map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => Self::Reset,
            _ if begun => Self::Within,
            _ => Self::Unanswered,
        }
    }
}
