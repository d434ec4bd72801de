//! How a request ended.

use crate::intercept::Inside;
use crate::request::sent::{After, Cut, Told};

/// An answer given, or the connection to be given up.
pub(crate) enum Ended {
    Answered(After, Told),
    Cut(Cut),
    Tunnelled(Told),
    Intercepted(Inside, Told),
}
