//! Sizes of caches as people give them for a trace: a share of its unique bytes, or a number of bytes.

use foxy_base::ByteSize;
use std::str::FromStr;

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheSize {
    /// So many in a hundred of the trace's unique bytes.
    Percent(f64),
    /// So many bytes.
    Bytes(ByteSize),
}

impl CacheSize {
    /// The size in bytes for a trace of so many unique bytes.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of bytes, never negative, to the nearest byte"
    )]
    pub fn of(&self, unique_bytes: u64) -> u64 {
        match self {
            Self::Percent(percent) => (unique_bytes as f64 * percent / 100.0).round() as u64,
            Self::Bytes(ByteSize(bytes)) => *bytes,
        }
    }
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(number) = text.trim().strip_suffix('%') {
            let percent = number.trim().parse().ok().filter(|percent| (0.0..=1000.0).contains(percent));
            return percent.map(Self::Percent).ok_or_else(|| {
                format!("cache size {text:?} is no percentage from 0% to 1000%; write one such as 0.5%")
            });
        }
        text.parse().map(Self::Bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shares_or_bytes() {
        assert_eq!("0.1%".parse::<CacheSize>().map(|size| size.of(10_000)), Ok(10));
        assert_eq!("2K".parse::<CacheSize>().map(|size| size.of(10)), Ok(2048));
        for wrong in ["-1%", "x%", "nan%", "many", ""] {
            assert!(wrong.parse::<CacheSize>().is_err(), "{wrong}");
        }
    }
}
