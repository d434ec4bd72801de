//! Limits that a rule sets for each client: the rate of requests, and the rate of bytes.

use foxy_base::ByteSize;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// Highest rate of requests, written `10/s`, `600/m` or `1000/h`. A client may send `requests`
/// requests at once. After that it may send `requests` in each `period`, evenly spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// Number of requests that a client may send in a period.
    pub requests: NonZeroU32,
    /// Length of the period: a second, a minute or an hour.
    pub period: Duration,
}

impl FromStr for RequestRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (requests, unit) = text.split_once('/')?;
            let seconds = match unit.trim() {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                _ => return None,
            };
            let requests = requests.trim().parse().ok()?;
            Some(Self { requests, period: Duration::from_secs(seconds) })
        };
        read().ok_or_else(|| format!("`{text}` is not a rate; write 10/s, 600/m or 1000/h"))
    }
}

/// Highest rate of bytes, written `1M/s`, in steps of 1 KiB per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// Number of KiB per second that a client may receive.
    pub kibibytes: NonZeroU32,
}

impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let size: ByteSize = text.trim().strip_suffix("/s")?.parse().ok()?;
            let kibibytes = u32::try_from(size.0 >> 10).ok().and_then(NonZeroU32::new)?;
            Some(Self { kibibytes })
        };
        read().ok_or_else(|| format!("`{text}` is not a bandwidth; write 1M/s, and at least 1K/s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let rate: RequestRate = "600/m".parse().expect("a rate");
        assert_eq!((rate.requests.get(), rate.period.as_secs()), (600, 60));
        for text in ["", "10", "0/s", "10/d", "-1/s", "1.5/s"] {
            assert!(text.parse::<RequestRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn bandwidths_are_read() {
        let bandwidth: Bandwidth = "2M/s".parse().expect("a bandwidth");
        assert_eq!(bandwidth.kibibytes.get(), 2048);
        for text in ["", "2M", "1/s", "0/s", "9999T/s", "fast/s"] {
            assert!(text.parse::<Bandwidth>().is_err(), "{text}");
        }
    }
}
