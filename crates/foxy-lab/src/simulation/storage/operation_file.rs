//! Reads and writes a file of URL operations (reads, writes and deletions of objects), which any
//! scheme can replay. The last line has the count and a checksum, so a reader refuses a truncated
//! or edited file.

use super::operation::{Operation, OperationKind, Operations};
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Write};
use xxhash_rust::xxh3::Xxh3;

const NAME: &str = "foxy-operations";
const VERSION: &str = "2";
const TITLE: &str = "GETS MEMORY-HITS DISK-BYTES OPERATIONS";
const END: &str = "end";

/// Writes the file. The first line is `foxy-operations 2 GETS MEMORY-HITS DISK-BYTES OPERATIONS`.
/// Each operation has a line `r|w|d URL SITE SIZE`. The last line is `end OPERATIONS CHECKSUM`. The
/// checksum is XXH3-64 of all bytes before the last line, in hexadecimal digits.
pub fn write(out: &mut impl Write, operations: &Operations) -> io::Result<()> {
    let Operations { list, gets, memory_hits, disk } = operations;
    let mut sum = Xxh3::new();
    let mut line = |text: String| {
        sum.update(text.as_bytes());
        out.write_all(text.as_bytes())
    };
    line(format!("{NAME} {VERSION} {gets} {memory_hits} {disk} {}\n", list.len()))?;
    for Operation { kind, url, site, size } in list {
        let letter = match kind {
            OperationKind::Read => 'r',
            OperationKind::Write => 'w',
            OperationKind::Delete => 'd',
        };
        line(format!("{letter} {url} {site} {size}\n"))?;
    }
    writeln!(out, "{END} {} {:016x}", list.len(), sum.digest())?;
    out.flush()
}

#[derive(Debug)]
pub enum OperationsError {
    Title,
    Version(String),
    Sums(SumReason),
    Line(usize),
    /// The operation of this line is impossible. It reads or deletes a URL that is not stored, or
    /// writes a URL that is already stored. Or it makes the stored objects larger than the disk.
    Order(usize),
    /// The file ends before its last line.
    Truncated {
        found: usize,
        announced: usize,
    },
    Count {
        line: usize,
        found: usize,
        announced: usize,
    },
    After(usize),
    Checksum(usize),
    Io(io::Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumReason {
    NoDisk,
    MoreHitsThanGets,
    MoreOperationsThanMisses,
}

impl fmt::Display for SumReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDisk => "the disk has 0 bytes; it must have at least 1",
            Self::MoreHitsThanGets => "there are more memory hits than gets",
            Self::MoreOperationsThanMisses => {
                "there are more reads and writes than gets that missed memory; each such get \
                 causes at most one"
            }
        })
    }
}

impl fmt::Display for OperationsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = "make the file again with --save-operations";
        f.write_str(&match self {
            Self::Title => format!(
                "line 1: this is not a file of operations; line 1 must be \"{NAME} {VERSION} \
                 {TITLE}\", all numbers"
            ),
            Self::Version(version) => format!(
                "line 1: foxy cannot read version {version:?} of this format, only version \
                 {VERSION}; {again}"
            ),
            Self::Sums(reason) => format!("line 1: {reason}"),
            Self::Line(line) => {
                format!("line {line}: must be \"r|w|d URL SITE SIZE\", all numbers")
            }
            Self::Order(line) => format!(
                "line {line}: a read or delete needs an earlier write of the object; a write needs \
                 an object that is not stored, and free space"
            ),
            Self::Truncated { found, announced } => format!(
                "the file ends after {found} of {announced} operations, without the line \"{END} \
                 OPERATIONS CHECKSUM\"; {again}"
            ),
            Self::Count { line, found, announced } => format!(
                "line {line}: the file ends after {found} operations, but line 1 announces \
                 {announced}; {again}"
            ),
            Self::After(line) => {
                format!("line {line}: nothing may follow the line that begins with {END}")
            }
            Self::Checksum(line) => format!(
                "line {line}: the checksum does not match the lines before it, so they were \
                 changed; {again}"
            ),
            Self::Io(error) => format!("cannot be read: {error}"),
        })
    }
}

impl std::error::Error for OperationsError {}

pub fn read(input: impl BufRead) -> Result<Operations, OperationsError> {
    let mut sum = Xxh3::new();
    let mut lines = (1..).zip(input.lines());
    let (_, title) = lines.next().ok_or(OperationsError::Title)?;
    let title = title.map_err(OperationsError::Io)?;
    let (mut operations, announced) = head(&title)?;
    add(&mut sum, &title);
    let mut stored = Stored { sizes: HashMap::new(), room: operations.disk };
    for (number, line) in lines.by_ref() {
        let line = line.map_err(OperationsError::Io)?;
        if let Some(end) = line.strip_prefix(END) {
            finish(number, end, &operations, announced, sum.digest())?;
            return match lines.next() {
                Some((number, _)) => Err(OperationsError::After(number)),
                None => Ok(operations),
            };
        }
        let operation = parse(&line).ok_or(OperationsError::Line(number))?;
        stored.carry_out(operation).ok_or(OperationsError::Order(number))?;
        operations.list.push(operation);
        add(&mut sum, &line);
    }
    Err(OperationsError::Truncated { found: operations.list.len(), announced })
}

fn add(sum: &mut Xxh3, line: &str) {
    sum.update(line.as_bytes());
    sum.update(b"\n");
}

fn head(title: &str) -> Result<(Operations, usize), OperationsError> {
    let mut words = title.split_ascii_whitespace();
    if words.next() != Some(NAME) {
        return Err(OperationsError::Title);
    }
    match words.next() {
        Some(VERSION) => {}
        Some(other) => return Err(OperationsError::Version(other.into())),
        None => return Err(OperationsError::Title),
    }
    let mut sum =
        || words.next().and_then(|text| text.parse::<u64>().ok()).ok_or(OperationsError::Title);
    let operations =
        Operations { list: Vec::new(), gets: sum()?, memory_hits: sum()?, disk: sum()? };
    let announced = usize::try_from(sum()?).map_err(|_| OperationsError::Title)?;
    if words.next().is_some() {
        return Err(OperationsError::Title);
    }
    let reason = if operations.disk == 0 {
        Some(SumReason::NoDisk)
    } else {
        (operations.memory_hits > operations.gets).then_some(SumReason::MoreHitsThanGets)
    };
    reason.map_or(Ok((operations, announced)), |reason| Err(OperationsError::Sums(reason)))
}

fn finish(
    number: usize,
    end: &str,
    operations: &Operations,
    announced: usize,
    digest: u64,
) -> Result<(), OperationsError> {
    let words: Vec<&str> = end.split_ascii_whitespace().collect();
    let [count, checksum] = words[..] else { return Err(OperationsError::Line(number)) };
    let found = operations.list.len();
    if count.parse() != Ok(found) || announced != found {
        return Err(OperationsError::Count { line: number, found, announced });
    }
    if checksum.len() != 16 || u64::from_str_radix(checksum, 16) != Ok(digest) {
        return Err(OperationsError::Checksum(number));
    }
    let moved = operations.count(OperationKind::Read) + operations.count(OperationKind::Write);
    if moved > operations.gets - operations.memory_hits {
        return Err(OperationsError::Sums(SumReason::MoreOperationsThanMisses));
    }
    Ok(())
}

struct Stored {
    sizes: HashMap<u32, u64>,
    room: u64,
}

impl Stored {
    /// Applies an operation to the model of the stored URLs. Returns `None` if the operation is
    /// impossible; see [`OperationsError::Order`].
    fn carry_out(&mut self, operation: Operation) -> Option<()> {
        let Operation { kind, url, size, .. } = operation;
        match kind {
            OperationKind::Read => (self.sizes.get(&url) == Some(&size)).then_some(()),
            OperationKind::Delete => {
                self.room += self.sizes.remove(&url).filter(|stored| *stored == size)?;
                Some(())
            }
            OperationKind::Write => {
                self.room = self.room.checked_sub(size)?;
                self.sizes.insert(url, size).is_none().then_some(())
            }
        }
    }
}

fn parse(line: &str) -> Option<Operation> {
    let mut words = line.split_ascii_whitespace();
    let kind = match words.next()? {
        "r" => OperationKind::Read,
        "w" => OperationKind::Write,
        "d" => OperationKind::Delete,
        _ => return None,
    };
    let (url, site) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let size = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Operation { kind, url, site, size })
}

#[cfg(test)]
#[path = "operation_file_tests.rs"]
mod tests;
