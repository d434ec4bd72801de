//! What became of the lines of a log: how many are gets, and why the others are not.

use super::Skip;
use super::read_error::Format;

/// Lines without a get whose text is kept.
const KEPT_EXAMPLES: usize = 5;

/// A line that gave no get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its number, from 1; in Parquet the row's.
    pub line: u64,
    /// Why.
    pub reason: Skip,
    /// Its first 120 characters.
    pub text: String,
}

/// What became of a log's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadReport {
    /// The format that was read.
    pub format: Format,
    /// Whether it was packed with gzip.
    pub packed: bool,
    /// Lines or rows read, a header not counted.
    pub lines: u64,
    /// Those that became gets.
    pub gets: u64,
    /// Those that became requests by other methods.
    pub others: u64,
    /// The first few that could not be understood.
    pub examples: Vec<Example>,
    skipped: [u64; Skip::ALL.len()],
}

impl ReadReport {
    pub(super) fn new(format: Format, packed: bool) -> Self {
        let skipped = [0; Skip::ALL.len()];
        Self { format, packed, lines: 0, gets: 0, others: 0, examples: Vec::new(), skipped }
    }

    /// How many lines were left out for this reason.
    pub fn skipped(&self, reason: Skip) -> u64 {
        self.skipped[reason as usize]
    }

    /// Reasons that occurred, with their counts.
    pub fn reasons(&self) -> impl Iterator<Item = (Skip, u64)> + '_ {
        Skip::ALL
            .iter()
            .map(|&reason| (reason, self.skipped(reason)))
            .filter(|&(_, count)| count > 0)
    }

    /// Counts a line that was read.
    pub(super) fn count(&mut self, outcome: Result<(), Skip>, text: impl FnOnce() -> String) {
        self.lines += 1;
        match outcome {
            Ok(()) => self.gets += 1,
            Err(reason) => {
                self.skipped[reason as usize] += 1;
                if reason.is_broken() && self.examples.len() < KEPT_EXAMPLES {
                    let text = text().chars().take(120).collect();
                    self.examples.push(Example { line: self.lines, reason, text });
                }
            }
        }
    }
}
