//! The logs that a command reads: rings (log files of fixed size), access logs, standard input.

use crate::failure::Failure;
use crate::terminal::{self, Level};
use flate2::read::MultiGzDecoder;
use foxy_log::group::Totals;
use foxy_log::lines;
use foxy_log::query::Query;
use foxy_log::ring::reader::{Ring, scan};
use foxy_log::transaction::Transaction;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Smallest part of an access log for which another thread is worth its start.
const SMALLEST_PART: u64 = 4 << 20;

pub enum LogSource {
    Ring(PathBuf, Ring),
    Lines(PathBuf),
    StandardInput,
}

impl LogSource {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::StandardInput);
        }
        let ring =
            File::open(path).and_then(Ring::open).map_err(|error| unreadable(path, &error))?;
        Ok(match ring {
            Some(ring) => Self::Ring(path.to_owned(), ring),
            None => Self::Lines(path.to_owned()),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Ring(path, _) | Self::Lines(path) => path,
            Self::StandardInput => Path::new("-"),
        }
    }
}

pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Unusable(format!("cannot read {}: {error}", path.display()))
}

/// Numbers about the logs that the command has read.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Number of all transactions in the period of the query, including transactions of which the
    /// logs have no entry.
    pub seen: u64,
    /// Number of entries that rings lack because a worker's buffer was full.
    pub lost: u64,
    /// Number of lines without a known format.
    unread: u64,
    /// Times of the first and the last transaction.
    pub times: Option<(u64, u64)>,
    /// Messages about the parts of logs that the command could not read.
    complaints: Vec<String>,
}

impl Counted {
    fn add(&mut self, transaction: &Transaction<'_>) {
        self.seen += u64::from(transaction.seen);
        self.lost += u64::from(transaction.lost);
        self.extend(transaction.end, transaction.end);
    }

    fn extend(&mut self, first: u64, last: u64) {
        let (from, to) = self.times.unwrap_or((first, last));
        self.times = Some((from.min(first), to.max(last)));
    }

    fn merge(&mut self, other: Self) {
        self.seen += other.seen;
        self.lost += other.lost;
        if let Some((first, last)) = other.times {
            self.extend(first, last);
        }
    }

    /// Returns a line about the entries from which `totals` are counted.
    pub fn basis(&self, totals: &Totals) -> String {
        let Self { seen, lost, .. } = self;
        let mut text = format!("{} entries", totals.entries);
        if totals.is_estimate() {
            let about = totals.requests;
            text.push_str(&format!(
                " stand for about {about} requests: the log keeps a sample of the {seen} requests \
                 of this time"
            ));
        }
        if *lost > 0 {
            text.push_str(&format!(
                "; {lost} more entries were lost, because writing was too slow"
            ));
        }
        text
    }

    /// Reports lines that have no known format, and damaged rings.
    pub fn report_unread(&self) {
        for complaint in &self.complaints {
            terminal::report(Level::Warning, &format!("foxy: {complaint}"));
        }
    }

    /// Keeps messages about the parts of `source` that the command could not read.
    fn complain(&mut self, source: &LogSource, unread: u64, destroyed: u64) {
        let name = source.path().display();
        if unread > 0 {
            self.complaints.push(format!("{name}: {unread} lines have no known format"));
        }
        if destroyed > 0 {
            let text = format!("{name} is damaged; records skipped: at least {destroyed}");
            self.complaints.push(text);
        }
    }
}

/// Passes the transactions that match the query to `add`. Several threads may read a large log.
/// Each thread adds to its own value from `begin`. Returns these values in the order of the logs.
pub fn collect<T: Send>(
    sources: &[LogSource],
    query: &Query,
    begin: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, &Transaction<'_>) + Sync,
) -> Result<(Vec<T>, Counted), Failure> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let times = query.times();
    let start = || (begin(), Counted::default());
    let take = |(value, counted): &mut (T, Counted), transaction: &Transaction<'_>| {
        if times.contains(&transaction.end) {
            counted.add(transaction);
            if query.matches(transaction) {
                add(value, transaction);
            }
        }
    };
    let take_line = |both: &mut (T, Counted), line: &[u8]| match lines::parse(line) {
        Some(transaction) => take(both, &transaction),
        None => both.1.unread += u64::from(!line.trim_ascii().is_empty()),
    };
    let (mut values, mut all) = (Vec::new(), Counted::default());
    for source in sources {
        let read = match source {
            LogSource::Ring(_, ring) => scan(ring, &times, threads, start, take),
            LogSource::Lines(path) => {
                read_lines(path, threads, start, take_line).map(|found| (found, 0))
            }
            LogSource::StandardInput => {
                let mut both = start();
                let read = lines::each(io::stdin().lock(), |line| take_line(&mut both, line));
                read.map(|()| (vec![both], 0))
            }
        };
        let (found, destroyed) = read.map_err(|error| unreadable(source.path(), &error))?;
        all.complain(source, found.iter().map(|(_, counted)| counted.unread).sum(), destroyed);
        for (value, counted) in found {
            values.push(value);
            all.merge(counted);
        }
    }
    Ok((values, all))
}

/// Reads an access log in parts, which begin and end at line breaks. Reads a log that gzip
/// compressed in one part.
fn read_lines<T: Send>(
    path: &Path,
    threads: usize,
    begin: impl Fn() -> T + Sync,
    take: impl Fn(&mut T, &[u8]) + Sync,
) -> io::Result<Vec<T>> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        let mut value = begin();
        lines::each(MultiGzDecoder::new(file), |line| take(&mut value, line))?;
        return Ok(vec![value]);
    }
    let length = file.get_ref().metadata()?.len();
    let parts = (length / SMALLEST_PART).clamp(1, threads as u64);
    let mut bounds = vec![0];
    for part in 1..parts {
        file.seek(SeekFrom::Start(length * part / parts))?;
        file.read_until(b'\n', &mut Vec::new())?;
        bounds.push(file.stream_position()?);
    }
    bounds.push(u64::MAX);
    let run = |from: u64, to: u64| {
        let (mut value, mut file) = (begin(), File::open(path)?);
        if from > 0 {
            file.seek(SeekFrom::Start(from))?;
        }
        lines::each(file.take(to - from), |line| take(&mut value, line))?;
        Ok(value)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let parts = bounds.windows(2).map(|two| (two[0], two[1]));
        let threads: Vec<_> = parts.map(|(from, to)| scope.spawn(move || run(from, to))).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_from_a_sample_are_estimates() {
        let counted = Counted { seen: 1000, ..Counted::default() };
        let whole = Totals { entries: 7, requests: 7, ..Totals::default() };
        assert_eq!(counted.basis(&whole), "7 entries");
        let sample = Totals { entries: 31, requests: 990, ..Totals::default() };
        let expected = "31 entries stand for about 990 requests: the log keeps a sample of the \
                        1000 requests of this time";
        assert_eq!(counted.basis(&sample), expected);
        let lost = Counted { lost: 2, ..counted }.basis(&whole);
        assert_eq!(lost, "7 entries; 2 more entries were lost, because writing was too slow");
    }
}
