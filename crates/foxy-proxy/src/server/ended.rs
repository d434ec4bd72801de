//! How a request ended.

use crate::intercept::Inside;
use crate::request::answered::{Aborted, Answered, SentResponse};

/// An answer given, or the connection to be given up.
pub(crate) enum Ended {
    Answered(Answered),
    Aborted(Aborted),
    Tunnelled(SentResponse),
    Intercepted(Inside, SentResponse),
}
