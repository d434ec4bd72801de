//! The model `polymix-4/1`: the standard mix of the cache-offs (WORKLOADS §2), with knobs for the
//! machine and the proxy. Everything else, from content types to request types, is fixed by the
//! version.

pub mod content;
pub mod exchange;
pub mod phases;
pub mod requests;

use crate::distribution::{floor, zipf_count_mean};
use crate::knobs::{Knobs, WorkloadError};
use content::{Kind, MOST_IMAGES};

/// Requests a second of one robot, embedded fetches included.
pub const ROBOT_RATE: f64 = 0.4;
/// Most connections of one robot.
pub const ROBOT_CONNECTIONS: usize = 4;
/// Share of exchanges that each side breaks off.
pub const ABORT_SHARE: f64 = 0.001;

/// The knobs of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct PolyMix4 {
    /// Requests a second at the top.
    pub peak_rate: f64,
    /// Requests a second while the cache is filled.
    pub fill_rate: f64,
    /// The proxy's cache in bytes, unscaled: filling ends at twice that.
    pub cache_size: u64,
    /// What durations, life cycles and the cache are divided by.
    pub time_scale: u32,
    /// What the servers' think time is divided by.
    pub delay_scale: u32,
}

impl PolyMix4 {
    pub(crate) fn read(knobs: &mut Knobs) -> Result<Self, WorkloadError> {
        let read = Self {
            peak_rate: knobs.number("peak-rate")?,
            fill_rate: knobs.number("fill-rate")?,
            cache_size: knobs.size("cache-size")?,
            time_scale: knobs.small_count("time-scale")?,
            delay_scale: knobs.small_count("delay-scale")?,
        };
        if read.fill_rate > read.peak_rate {
            let right = format!("a rate up to peak-rate, which is {}", read.peak_rate);
            return Err(knobs.refusal("fill-rate", read.fill_rate, &right));
        }
        if read.cache_size == 0 {
            return Err(knobs.refusal(
                "cache-size",
                0,
                "a size above 0, such as cache-size = \"8G\"",
            ));
        }
        Ok(read)
    }

    /// How many robots make the peak.
    pub fn robots(&self) -> u32 {
        u32::try_from(floor((self.peak_rate / ROBOT_RATE).ceil())).unwrap_or(u32::MAX).max(1)
    }

    /// How many origins they ask: 500 + 0.1 × robots.
    pub fn origins(&self) -> u32 {
        500 + self.robots() / 10
    }

    /// The working set is frozen at that many objects: the cachable misses of one top phase, as
    /// PolyMix-4 counts them (peak × 0.45 × 0.8 × 4 h).
    pub fn working_set(&self) -> u64 {
        floor(self.peak_rate * 0.45 * 0.8 * phases::TOP.as_secs_f64() / f64::from(self.time_scale))
            .max(1000)
    }

    /// Bytes of cachable misses that end the fill.
    pub fn fill_bytes(&self) -> u64 {
        2 * (self.cache_size / u64::from(self.time_scale)).max(1)
    }
}

/// Requests that come of one that is made directly, itself included, in the mean: what a robot's
/// rate is divided by to know how often it begins.
pub fn requests_per_start() -> f64 {
    let all: u32 = Kind::DIRECT.iter().map(|(_, share)| share).sum();
    let pages: u32 =
        Kind::DIRECT.iter().filter(|(kind, _)| *kind == Kind::Html).map(|(_, share)| share).sum();
    let images = f64::from(pages) / f64::from(all) * zipf_count_mean(MOST_IMAGES);
    1.0 + images * (1.0 - requests::POST_SHARE - requests::HEAD_SHARE)
}
