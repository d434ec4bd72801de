//! How a connection was lost before an answer was whole. What that is called is each report's own
//! matter.

use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    Unanswered,
    Within,
    Reset,
}

impl Loss {
    /// `error`: `None` for a plain close. `begun`: part of the answer had come.
    pub fn of(error: Option<&io::Error>, begun: bool) -> Self {
        match error.map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => Self::Reset,
            _ if begun => Self::Within,
            _ => Self::Unanswered,
        }
    }
}
