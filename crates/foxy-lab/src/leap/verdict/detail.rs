//! Why an answer is not OK, in words.

use super::fields::Difference;
use crate::leap::PathFailure;
use foxy_http::DecodeError;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    None,
    Failed(PathFailure),
    NotHttp(DecodeError),
    /// Status of the reference, then of the answer.
    Status(u16, u16),
    Field(Difference),
    /// Body length of the reference, then of the answer.
    Body(u64, u64),
    /// The body belongs to this other URL.
    BodyOf(String),
    BrokenCoding,
    AmbiguousFraming,
    /// Equals an earlier answer of the reference.
    SeenBefore,
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
