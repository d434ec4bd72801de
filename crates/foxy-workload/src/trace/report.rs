//! The formats of logs, the errors of reading a log, and the report on its lines.

use super::Skip;
use std::fmt;
use std::io;
use std::str::FromStr;

/// The format of a log. A log of any format may be compressed with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Squid's native access.log.
    Squid,
    /// The Common or Combined Log Format.
    Common,
    /// CSV with a header line that names at least `time`, `url` and `bytes`.
    Csv,
    /// Apache Parquet with the column names of CSV.
    Parquet,
    /// foxy's JSON access log.
    Json,
    /// oracleGeneral, the binary traces of libCacheSim.
    OracleGeneral,
}

impl Format {
    /// Formats with their names on the command line.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("squid", Self::Squid),
        ("common", Self::Common),
        ("csv", Self::Csv),
        ("parquet", Self::Parquet),
        ("json", Self::Json),
        ("oracle-general", Self::OracleGeneral),
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
                "trace format {text:?} is not known; use squid, common, combined, csv, parquet, \
                 json or oracle-general"
            )
        })
    }
}

/// The reason why a file cannot be read at all.
#[derive(Debug)]
pub enum ReadError {
    /// Reading failed.
    Io(io::Error),
    /// The file has no content.
    Empty,
    /// The first lines match no known format.
    UnknownFormat,
    /// The column of this name is missing.
    NoColumn(&'static str),
    /// The file is not readable Parquet. The text is the decoder's error.
    NotParquet(String),
    /// The gzip data have an error before their end. The text is the decoder's error.
    Corrupt(String),
    /// The file has a compression that foxy does not read.
    OtherPacking {
        /// Name of the compression.
        name: &'static str,
        /// Command that writes the unpacked content to standard output.
        unpack: &'static str,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot be read: {error}"),
            Self::Empty => f.write_str("the file is empty; name a log with requests"),
            Self::UnknownFormat => f.write_str(
                "the first lines match no known format; foxy reads a Squid access.log, a Common or \
                 Combined Log, CSV with a header that names time, url and bytes, Parquet with such \
                 columns, foxy's JSON log and oracleGeneral; if other lines come first, name the \
                 format with --format",
            ),
            Self::NoColumn(name) => {
                write!(
                    f,
                    "there is no column {name}; the header must name at least time, url and bytes"
                )
            }
            Self::NotParquet(error) => write!(f, "this Parquet file cannot be read: {error}"),
            Self::Corrupt(error) => write!(
                f,
                "the gzip data are corrupt ({error}); gzip finds damage only at the end, so \
                 earlier lines may be wrong; get the file again"
            ),
            Self::OtherPacking { name, unpack } => {
                write!(f, "this is a {name} file; unpack it first: {unpack} FILE | foxy … -")
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// Returns whether an error comes from damaged compressed data instead of a failed read. `packed`
/// says whether the data are compressed.
pub(super) fn is_damage(error: &io::Error, packed: bool) -> bool {
    packed && error.raw_os_error().is_none()
}

const MAX_EXAMPLES: usize = 5;

/// A line that the reader could not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Number of the line or row, from 1.
    pub line: u64,
    /// Reason why the line was skipped.
    pub reason: Skip,
    /// First 120 characters of the line.
    pub text: String,
}

/// The numbers of lines of a log, by result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReport {
    /// Format of the log.
    pub format: Format,
    /// Whether the log was compressed with gzip.
    pub packed: bool,
    /// Number of lines or rows, without the header.
    pub lines: u64,
    /// Number of lines that became GET requests.
    pub gets: u64,
    /// Number of lines that became requests with a method other than GET.
    pub others: u64,
    /// The first lines that the reader could not parse.
    pub examples: Vec<Example>,
    skipped: [u64; Skip::ALL.len()],
}

impl ReadReport {
    pub(super) fn new(format: Format, packed: bool) -> Self {
        let skipped = [0; Skip::ALL.len()];
        Self { format, packed, lines: 0, gets: 0, others: 0, examples: Vec::new(), skipped }
    }

    /// Returns the number of lines skipped for `reason`.
    pub fn skipped(&self, reason: Skip) -> u64 {
        self.skipped[reason as usize]
    }

    /// Returns each reason with at least one skipped line, and the number of lines.
    pub fn reasons(&self) -> impl Iterator<Item = (Skip, u64)> + '_ {
        Skip::ALL
            .iter()
            .map(|&reason| (reason, self.skipped(reason)))
            .filter(|&(_, count)| count > 0)
    }

    /// Handles an error in compressed data. If the data are truncated, counts the damage, because
    /// the earlier lines are correct. Otherwise returns an error, because any line may be wrong.
    pub(super) fn damaged(&mut self, error: &io::Error) -> Result<(), ReadError> {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return Err(ReadError::Corrupt(error.to_string()));
        }
        self.count(Err(Skip::Damaged), || error.to_string());
        Ok(())
    }

    pub(super) fn count(&mut self, outcome: Result<(), Skip>, text: impl FnOnce() -> String) {
        self.lines += 1;
        match outcome {
            Ok(()) => self.gets += 1,
            Err(reason) => {
                self.skipped[reason as usize] += 1;
                if reason.is_broken() && self.examples.len() < MAX_EXAMPLES {
                    let text = text().chars().take(120).collect();
                    self.examples.push(Example { line: self.lines, reason, text });
                }
            }
        }
    }
}
