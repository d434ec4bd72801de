//! Values of settings that are more than a number or a word.

use foxy_base::ByteSize;
use foxy_proxy::upstream::Scheme;
use std::path::PathBuf;

/// Where lines are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Off,
    /// To standard output.
    Standard,
    /// Appended to a file.
    File(PathBuf),
}

/// An origin server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginUrl {
    /// What is spoken with it.
    pub scheme: Scheme,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A size in its largest whole unit, so that reading it back gives the same number.
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
