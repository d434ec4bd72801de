//! What a look-up came to.

use crate::core::forward_reason::ForwardReason;
use crate::fill::update_stored::Described;
use crate::request::sent::{After, Sent};

/// How it went.
pub(crate) enum LookupResult {
    /// Answered.
    Answered(After, Sent),
    /// To be sent on as it is: a HEAD or a range that the cache could not answer. What is stored
    /// may be described anew by the answer to a HEAD.
    Forward(ForwardReason, Option<Described>),
}
