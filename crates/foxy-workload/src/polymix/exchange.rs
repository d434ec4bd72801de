//! What an exchange of PolyMix-4 draws beside its request: the server's think time and whether a
//! side breaks it off. Each is a function of the request's number, so that either side knows what
//! the other does.

use super::ABORT_SHARE;
use crate::distribution::{floor, normal, zipf_count};
use foxy_base::Random;
use std::time::Duration;

/// Most requests on a connection of a robot: zipf(64).
const ROBOT_USES: u32 = 64;
/// Most requests on a connection of a server: zipf(16).
const SERVER_USES: u32 = 16;
/// How long a connection stays open unused.
pub const IDLE_LIMIT: Duration = Duration::from_secs(15);

/// Which side breaks an exchange off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The robot.
    Client,
    /// The origin.
    Server,
}

/// After how many bytes of a body of `length` that side breaks off the exchange of a request;
/// nearly always never.
pub fn breaks_off(side: Side, request: u64, length: u64) -> Option<u64> {
    let salt = match side {
        Side::Client => 0x636c_6965,
        Side::Server => 0x7365_7276,
    };
    let mut random = Random::new(request ^ (salt << 32));
    random.chance(ABORT_SHARE).then(|| random.below(length))
}

/// How long the server waits before it answers a request: norm(2.5 s, 1 s), negative is none.
pub fn think_time(request: u64, delay_scale: u32) -> Duration {
    let seconds = normal(&mut Random::new(request ^ (0x7468_696e << 32)), 2.5, 1.0).max(0.0);
    Duration::from_micros(floor(seconds * 1e6 / f64::from(delay_scale)))
}

/// How many requests a side lets a connection carry.
pub fn connection_uses(side: Side, connection: u64) -> u32 {
    let most = match side {
        Side::Client => ROBOT_USES,
        Side::Server => SERVER_USES,
    };
    zipf_count(&mut Random::new(connection ^ (0x7573_6573 << 32)), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 requests: four standard deviations of the mean think time are 0.013 s, of the count
    /// of aborts 40.
    #[test]
    fn think_times_and_aborts_have_their_means() {
        let think: Duration = (0..100_000).map(|request| think_time(request, 10)).sum();
        let mean = think.as_secs_f64() * 10.0 / 100_000.0;
        // Cutting off what is negative adds 0.002 s to the mean.
        assert!((2.487..=2.517).contains(&mean), "{mean}");
        for side in [Side::Client, Side::Server] {
            let aborts: Vec<u64> =
                (0..100_000).filter_map(|request| breaks_off(side, request, 1000)).collect();
            assert!((60..=140).contains(&aborts.len()), "{} aborts", aborts.len());
            assert!(aborts.iter().all(|&at| at < 1000));
        }
    }
}
