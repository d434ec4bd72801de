//! Types for values of settings that are neither a plain number nor a single word.

use foxy_base::ByteSize;
use foxy_proxy::upstream::Scheme;
use std::fmt::{self, Display};
use std::path::PathBuf;

/// Destination of log lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Off,
    Standard,
    /// foxy appends lines to this file.
    File(PathBuf),
}

impl Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Standard => f.write_str("-"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginUrl {
    pub scheme: Scheme,
    /// Host name or address. An IPv6 address has no brackets in this field.
    pub host: String,
    pub port: u16,
}

impl Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.as_str();
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

/// Prints a size in the largest unit that gives a whole number, so that the text is exact.
pub fn exact(size: ByteSize) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units.iter().find(|(shift, _)| size.0 != 0 && size.0.trailing_zeros() >= *shift);
    fits.map_or_else(
        || format!("{} B", size.0),
        |(shift, unit)| format!("{} {unit}", size.0 >> shift),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_without_loss() {
        for (bytes, text) in [(1536, "1536 B"), (2048, "2 KiB"), (10 << 30, "10 GiB"), (0, "0 B")] {
            assert_eq!(exact(ByteSize(bytes)), text);
            assert_eq!(text.parse(), Ok(ByteSize(bytes)));
        }
    }
}
