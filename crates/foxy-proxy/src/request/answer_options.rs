//! The options of an answer: what the request says of its form.

use foxy_http::Version;

/// What of a request decides how its answer is framed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerOptions {
    /// Whether the method is HEAD.
    pub(crate) head_only: bool,
    /// The client's version.
    pub(crate) version: Version,
    /// Whether the client wants the connection kept.
    pub(crate) keep: bool,
    /// Whether it takes trailers.
    pub(crate) trailers: bool,
}
