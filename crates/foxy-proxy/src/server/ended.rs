//! How a request ended.

use crate::intercept::Inside;
use crate::request::sent::{Aborted, After, Sent};

/// An answer given, or the connection to be given up.
pub(crate) enum Ended {
    Answered(After, Sent),
    Aborted(Aborted),
    Tunnelled(Sent),
    Intercepted(Inside, Sent),
}
