//! Byte sizes as people write them: `512`, `64K`, `10 MiB`, `2GB`. Units are powers of two, as in
//! Squid and nginx.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

/// The reason why a text is not a byte size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// The text does not start with a number.
    NoNumber(String),
    /// The unit of the size is unknown.
    UnknownUnit(String),
    /// The size is 2^64 bytes or more.
    TooLarge(String),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber(text) => {
                write!(
                    f,
                    "size {text:?} does not start with a number; write a size such as 512M or 10G"
                )
            }
            Self::UnknownUnit(text) => {
                write!(f, "size {text:?} has an unknown unit; use B, K, M, G or T")
            }
            Self::TooLarge(text) => {
                write!(f, "size {text:?} is too large; give a size below 2^64 bytes")
            }
        }
    }
}

impl std::error::Error for SizeError {}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
        if digits == 0 {
            return Err(SizeError::NoNumber(text.into()));
        }
        let number: u64 =
            trimmed[..digits].parse().map_err(|_| SizeError::TooLarge(text.into()))?;
        let shift = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            _ => return Err(SizeError::UnknownUnit(text.into())),
        };
        number.checked_mul(1 << shift).map(Self).ok_or_else(|| SizeError::TooLarge(text.into()))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let mut number = usize::try_from(self.0.checked_ilog2().unwrap_or(0) / 10).unwrap_or(0);
        let mut tenths = rounded_tenths(self.0, number);
        if tenths == 10_240 {
            (number, tenths) = (number + 1, 10);
        }
        let (whole, rest, unit) = (tenths / 10, tenths % 10, units[number]);
        if rest == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{rest} {unit}") }
    }
}

/// Returns `bytes` in tenths of the unit of 1024 to the power `unit`, rounded.
fn rounded_tenths(bytes: u64, unit: usize) -> u128 {
    let whole = 1_u128 << (10 * unit);
    (u128::from(bytes) * 10 + whole / 2) / whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let cases = [
            ("512", 512),
            ("64K", 65_536),
            ("10 MiB", 10_485_760),
            ("2GB", 2 << 30),
            ("1t", 1 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn bad_sizes_say_what_is_wrong() {
        assert_eq!("G".parse::<ByteSize>(), Err(SizeError::NoNumber("G".into())));
        assert_eq!(
            "5 parsecs".parse::<ByteSize>(),
            Err(SizeError::UnknownUnit("5 parsecs".into()))
        );
        assert_eq!(
            "99999999999T".parse::<ByteSize>(),
            Err(SizeError::TooLarge("99999999999T".into()))
        );
    }

    #[test]
    fn sizes_print_rounded_to_one_decimal() {
        assert_eq!(ByteSize(1536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize(10 << 30).to_string(), "10 GiB");
        assert_eq!(ByteSize(42_949_673).to_string(), "41 MiB");
        assert_eq!(ByteSize(6_923).to_string(), "6.8 KiB");
        assert_eq!(ByteSize((1 << 20) - 1).to_string(), "1 MiB");
        assert_eq!(ByteSize(973 << 10).to_string(), "973 KiB");
        assert_eq!(ByteSize(1023).to_string(), "1023 B");
        assert_eq!(ByteSize(17).to_string(), "17 B");
    }
}
