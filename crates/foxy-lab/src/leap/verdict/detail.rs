//! Why an answer is not OK, in words.

use super::fields::Difference;
use crate::leap::PathFailure;
use foxy_http::DecodeError;
use std::fmt;

/// Why an answer is not OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Nothing to say.
    None,
    /// How the exchange ended.
    Failed(PathFailure),
    /// What of it is not HTTP.
    NotHttp(DecodeError),
    /// The reference's status, and the answer's.
    Status(u16, u16),
    /// Which field differs, and how.
    Field(Difference),
    /// The lengths of the reference's body and of the answer's.
    Body(u64, u64),
    /// The body is the one that another URL has.
    BodyOf(String),
    /// The content coding cannot be undone: its bytes are broken.
    BrokenCoding,
    /// It says in two ways where it ends, which the reference does not.
    AmbiguousFraming,
    /// It is what the reference answered before.
    SeenBefore,
    /// Its Last-Modified is older than the reference's.
    OlderThanReference,
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Failed(failure) => f.write_str(failure.name()),
            Self::NotHttp(error) => {
                write!(f, "{}: {}", PathFailure::NotHttp.name(), error.description())
            }
            Self::Status(expected, found) => write!(f, "{found} instead of {expected}"),
            Self::Field(difference) => difference.fmt(f),
            Self::Body(expected, found) if expected == found => {
                write!(f, "other bytes, {found} as they should be")
            }
            Self::Body(expected, found) => write!(f, "{found} bytes instead of {expected}"),
            Self::BodyOf(url) => write!(f, "the body of {url}"),
            Self::BrokenCoding => f.write_str("the content coding is broken"),
            Self::AmbiguousFraming => f.write_str("Content-Length beside Transfer-Encoding"),
            Self::SeenBefore => f.write_str("what the reference answered before"),
            Self::OlderThanReference => f.write_str("Last-Modified is older than the reference's"),
        }
    }
}
