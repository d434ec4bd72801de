//! Estimates the hits of caches with other sizes and policies, from a sample of the requested keys.
//! Each cache is simulated in miniature (Waldspurger, Saemundsson, Ahmad and Park, ATC 2017). If
//! 1/100 of the keys are sampled, a cache of 1/100 of the size hits about as often. The simulation
//! uses the policies of `foxy-schemes`. This crate reads no clock and does no IO.

mod cache;
mod curve;
mod estimator;
mod hosts;
mod rate;
mod sums;

pub use curve::{Estimate, Point, Totals};
pub use estimator::{Estimator, SampledRequest, Tier};
pub use hosts::HostCurve;
pub use rate::SampleRate;
