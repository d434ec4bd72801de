//! The formats of traces, and why a trace cannot be read.

use std::fmt;
use std::io::{self};
use std::str::FromStr;

/// How a log is written. All but Parquet are lines of text; each may be packed with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Squid's native access.log.
    Squid,
    /// The Common Log Format, and the Combined one.
    Common,
    /// Separated values with a header line that names at least `time`, `url` and `bytes`.
    Csv,
    /// Apache Parquet with columns named as for CSV.
    Parquet,
}

impl Format {
    /// Every format with the name people give it.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("squid", Self::Squid),
        ("common", Self::Common),
        ("csv", Self::Csv),
        ("parquet", Self::Parquet),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::NAMES.iter().find(|(_, format)| format == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES
            .iter()
            .find(|(name, _)| *name == text || (text == "combined" && *name == "common"));
        found.map(|(_, format)| *format).ok_or_else(|| {
            format!(
                "trace format {text:?} is not known; use squid, common, combined, csv or parquet"
            )
        })
    }
}

/// Why a file gives no trace at all.
#[derive(Debug)]
pub enum ReadError {
    /// Reading failed.
    Io(io::Error),
    /// The first lines are of no known format.
    UnknownFormat,
    /// No column is known to be this.
    NoColumn(&'static str),
    /// Not a Parquet file that can be read, with what its reader says.
    NotParquet(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::UnknownFormat => f.write_str(
                "the first lines are of no known format; a Squid access.log, a Common or Combined Log, CSV with a \
                 header that names time, url and bytes, or Parquet with such columns would be right; if it is one of \
                 these below lines of something else, name it with --format",
            ),
            Self::NoColumn(name) => {
                write!(f, "there is no column {name}; the header must name at least time, url and bytes")
            }
            Self::NotParquet(error) => write!(f, "this Parquet file cannot be read: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// Whether an error tells of broken packed data, as against a disk that does not give it.
pub(super) fn is_damage(error: &io::Error, packed: bool) -> bool {
    packed && error.raw_os_error().is_none()
}
