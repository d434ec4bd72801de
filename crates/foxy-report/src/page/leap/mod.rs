//! Presents the measures of LEAP: the headline of a run, and the charts of Table 4 of paper 002.

mod charts;
mod headline;

pub(super) use charts::charts;
pub use headline::{Headline, headline};
