//! The workload model `polymix-4/2`: PolyMix-4, the standard load of the cache-offs, which compared
//! caching proxies with Web Polygraph. Knobs (settings) adapt the load to machine and proxy. The
//! version of the model fixes everything else. This file contains the knobs, and the random draws
//! that client and origin share. Both draw the same values, because they use the number of the
//! request as the seed.

mod collection;
pub mod content;
pub mod phases;
pub mod requests;

use crate::distribution::{floor, normal, zipf_count, zipf_count_mean};
use crate::knobs::{Knobs, WorkloadError};
use content::{Kind, MAX_IMAGES};
use foxy_base::Random;
use phases::TOP;
use std::time::Duration;

/// Requests per second of one robot (a simulated user). Requests for images count too.
pub const ROBOT_RATE: f64 = 0.4;
/// Largest number of connections of one robot (client).
pub const ROBOT_CONNECTIONS: usize = 4;
/// Share of requests whose response the client aborts. The server aborts an equal share.
const ABORT_SHARE: f64 = 0.001;

/// The knobs of the model `polymix-4/2`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolyMix4 {
    /// Requests per second in the top phases, which are the measured phases with full load.
    pub peak_rate: f64,
    /// Requests per second in the fill phase, which fills the cache before the measurement.
    pub fill_rate: f64,
    /// Cache size in bytes before the division by `time_scale`. The fill phase ends after twice
    /// this number of bytes.
    pub cache_size: u64,
    /// Number by which durations, times between changes, and cache size are divided.
    pub time_scale: u32,
    /// Number by which the time is divided that a server waits before it answers.
    pub delay_scale: u32,
    /// Number of origins. `None` means 500 plus a tenth of the number of robots (clients). A scaled
    /// run needs fewer origins: its small cache holds few documents of each of 500 origins. Most
    /// requests would then repeat the same few documents.
    pub servers: Option<u32>,
}

impl PolyMix4 {
    pub(crate) fn read(knobs: &mut Knobs) -> Result<Self, WorkloadError> {
        let read = Self {
            peak_rate: knobs.number("peak-rate")?,
            fill_rate: knobs.number("fill-rate")?,
            cache_size: knobs.size("cache-size")?,
            time_scale: knobs.small_count("time-scale")?,
            delay_scale: knobs.small_count("delay-scale")?,
            servers: None,
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

    /// Returns the number of robots (clients) that produce the peak rate.
    pub fn robots(&self) -> u32 {
        u32::try_from(floor((self.peak_rate / ROBOT_RATE).ceil())).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the number of origins: `servers`, or 500 + 0.1 × robots.
    pub fn origins(&self) -> u32 {
        self.servers.unwrap_or_else(|| 500 + self.robots() / 10)
    }

    /// Returns how many cachable misses one phase must have before the working set (the documents
    /// that requests repeat) stops growing. This is the expected number of cachable misses in a top
    /// phase (full load), but at least 1,000. The expected number is peak rate × 45 % misses × 80 %
    /// cachable × 4 h / `time_scale`.
    fn working_set(&self) -> u64 {
        floor(self.peak_rate * 0.45 * 0.8 * TOP.as_secs_f64() / f64::from(self.time_scale))
            .max(1000)
    }

    /// Returns the number of bytes of cachable misses that the fill phase needs. The phase then
    /// continues while the working set (the documents that requests repeat) still grows.
    pub fn fill_bytes(&self) -> u64 {
        2 * (self.cache_size / u64::from(self.time_scale)).max(1)
    }
}

/// Returns the mean number of requests, including requests for images, that a robot (client) sends
/// to fetch one page or single document.
pub fn requests_per_start() -> f64 {
    let all: u32 = Kind::DIRECT.iter().map(|(_, share)| share).sum();
    let pages: u32 =
        Kind::DIRECT.iter().filter(|(kind, _)| *kind == Kind::Html).map(|(_, share)| share).sum();
    let images = f64::from(pages) / f64::from(all) * zipf_count_mean(MAX_IMAGES);
    1.0 + images * (1.0 - requests::POST_SHARE - requests::HEAD_SHARE)
}

/// Largest number of requests that a robot (client) sends on a connection. The number is drawn by
/// `zipf_count(64)`.
const MAX_ROBOT_USES: u32 = 64;
/// Largest number of requests that a server accepts on a connection. The number is drawn by
/// `zipf_count(16)`.
const MAX_SERVER_USES: u32 = 16;
/// Idle timeout of a connection.
pub const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The robot, a simulated client.
    Client,
    /// The origin.
    Server,
}

/// Returns the number of body bytes, below `length`, after which `side` (client or server) closes
/// the connection in the middle of the response. Returns `None` for nearly all requests, which are
/// not aborted.
pub fn breaks_off(side: Side, request: u64, length: u64) -> Option<u64> {
    let salt = match side {
        Side::Client => 0x636c_6965,
        Side::Server => 0x7365_7276,
    };
    let mut random = Random::new(request ^ (salt << 32));
    random.chance(ABORT_SHARE).then(|| random.below(length))
}

/// Returns the time that a server waits before it answers. The time is normally distributed with
/// mean 2.5 s and deviation 1 s, at least zero, divided by `delay_scale`.
pub fn think_time(request: u64, delay_scale: u32) -> Duration {
    let seconds = normal(&mut Random::new(request ^ (0x7468_696e << 32)), 2.5, 1.0).max(0.0);
    Duration::from_micros(floor(seconds * 1e6 / f64::from(delay_scale)))
}

/// Returns the number of requests that `side` (client or server) permits on a connection.
pub fn connection_uses(side: Side, connection: u64) -> u32 {
    let most = match side {
        Side::Client => MAX_ROBOT_USES,
        Side::Server => MAX_SERVER_USES,
    };
    zipf_count(&mut Random::new(connection ^ (0x7573_6573 << 32)), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_servers_replace_the_500_of_the_robots() {
        let knobs = PolyMix4 {
            peak_rate: 100.0,
            fill_rate: 50.0,
            cache_size: 1 << 30,
            time_scale: 60,
            delay_scale: 1,
            servers: None,
        };
        assert_eq!(knobs.origins(), 525);
        assert_eq!(PolyMix4 { servers: Some(20), ..knobs }.origins(), 20);
    }

    /// The tolerances are four standard deviations over 100,000 requests: 0.013 s for the mean
    /// think time (the server's wait), and 40 for the number of aborts.
    #[test]
    fn think_times_and_aborts_have_their_means() {
        let think: Duration = (0..100_000).map(|request| think_time(request, 10)).sum();
        let mean = think.as_secs_f64() * 10.0 / 100_000.0;
        // Negative draws are raised to zero, which adds 0.002 s to the mean.
        assert!((2.487..=2.517).contains(&mean), "{mean}");
        for side in [Side::Client, Side::Server] {
            let aborts: Vec<u64> =
                (0..100_000).filter_map(|request| breaks_off(side, request, 1000)).collect();
            assert!((60..=140).contains(&aborts.len()), "{} aborts", aborts.len());
            assert!(aborts.iter().all(|&at| at < 1000));
        }
    }
}
