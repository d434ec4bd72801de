//! Presents the measures of LEAP, which sends each request to several proxies and compares their
//! answers. The pages have the headline of a run, and the charts of Table 4 of the LEAP paper
//! (paper 002 in docs/figures.md).

mod charts;
mod headline;

pub(super) use charts::charts;
pub use headline::{Headline, headline};
