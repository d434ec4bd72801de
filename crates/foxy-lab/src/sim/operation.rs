//! URL operations: what a proxy's two cache levels ask of its disk (R9), as values and as a file any scheme can replay
//! (R10).

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Write};

/// What is done with a URL's content on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// It is read: a hit on disk.
    Read,
    /// It is written: a miss that was fetched.
    Write,
    /// It is deleted to make room.
    Delete,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub kind: OperationKind,
    /// With which URL.
    pub url: u32,
    /// Whose it is: the origin server's number.
    pub site: u32,
    /// Bytes of its content.
    pub size: u64,
}

/// A stream of operations and what it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The operations in order.
    pub list: Vec<Operation>,
    /// URL-gets they came from.
    pub gets: u64,
    /// URL-gets that memory answered.
    pub memory_hits: u64,
    /// Bytes of the disk cache.
    pub disk: u64,
}

impl Operations {
    /// How many operations are of a kind.
    #[must_use]
    pub fn count(&self, kind: OperationKind) -> u64 {
        self.list.iter().filter(|operation| operation.kind == kind).count() as u64
    }

    /// Bytes read and written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let moved = self.list.iter().filter(|operation| operation.kind != OperationKind::Delete);
        moved.map(|operation| operation.size).sum()
    }
}

const TITLE: &str = "foxy-operations 1";

/// Writes a stream: a title line with the sums, then `r|w|d url site size` a line.
///
/// # Errors
/// What the writer gives.
pub fn write(out: &mut impl Write, operations: &Operations) -> io::Result<()> {
    let Operations { list, gets, memory_hits, disk } = operations;
    writeln!(out, "{TITLE} {gets} {memory_hits} {disk}")?;
    for Operation { kind, url, site, size } in list {
        let letter = match kind {
            OperationKind::Read => 'r',
            OperationKind::Write => 'w',
            OperationKind::Delete => 'd',
        };
        writeln!(out, "{letter} {url} {site} {size}")?;
    }
    out.flush()
}

/// Why a stream of operations cannot be read.
#[derive(Debug)]
pub enum OperationsError {
    /// The first line is not the title of such a file.
    Title,
    /// This line is not an operation.
    Line(usize),
    /// This line reads or deletes what is not stored, writes what is, or stores more than the disk holds.
    Order(usize),
    /// The reader failed.
    Io(io::Error),
}

impl fmt::Display for OperationsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Title => {
                write!(f, "no operations: the first line must be \"{TITLE} GETS MEMORY-HITS DISK-BYTES\"")
            }
            Self::Line(number) => write!(f, "line {number}: must be \"r|w|d URL SITE SIZE\", all numbers"),
            Self::Order(number) => write!(
                f,
                "line {number}: must read or delete what an earlier line wrote, or write what is not stored and has \
                 room on the disk"
            ),
            Self::Io(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl std::error::Error for OperationsError {}

/// Reads a stream.
///
/// # Errors
/// The first line that is not what [`write()`] writes.
pub fn read(input: impl BufRead) -> Result<Operations, OperationsError> {
    let mut lines = (1..).zip(input.lines());
    let (_, title) = lines.next().ok_or(OperationsError::Title)?;
    let title = title.map_err(OperationsError::Io)?;
    let mut sums = title.strip_prefix(TITLE).ok_or(OperationsError::Title)?.split_ascii_whitespace();
    let mut sum = || sums.next().and_then(|text| text.parse().ok()).ok_or(OperationsError::Title);
    let mut operations = Operations { list: Vec::new(), gets: sum()?, memory_hits: sum()?, disk: sum()? };
    let mut stored = Stored { sizes: HashMap::new(), room: operations.disk };
    for (number, line) in lines {
        let line = line.map_err(OperationsError::Io)?;
        let operation = parse(&line).ok_or(OperationsError::Line(number))?;
        stored.carry_out(operation).ok_or(OperationsError::Order(number))?;
        operations.list.push(operation);
    }
    Ok(operations)
}

/// What a disk holds in the course of a stream.
struct Stored {
    sizes: HashMap<u32, u64>,
    room: u64,
}

impl Stored {
    /// None when the operation cannot be one of two cache levels: see [`OperationsError::Order`].
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
mod tests {
    use super::*;

    #[test]
    fn a_stream_reads_back_and_a_broken_line_is_named() {
        let operation = |kind, url| Operation { kind, url, site: 7, size: 1 << 40 };
        let list = vec![
            operation(OperationKind::Write, 1),
            operation(OperationKind::Read, 1),
            operation(OperationKind::Delete, 1),
            operation(OperationKind::Write, u32::MAX),
        ];
        let operations = Operations { list, gets: 5, memory_hits: 2, disk: 1 << 40 };
        let mut file = Vec::new();
        write(&mut file, &operations).expect("writing to memory");
        assert_eq!(read(&file[..]).expect("just written"), operations);
        let check = |text: &str, expected: &str| {
            let error = read(text.as_bytes()).expect_err("broken").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("", "first line");
        check("foxy-operations 1 5 2", "first line");
        check("foxy-operations 1 5 2 9\nw 1 2 3\nx 1 2 3\n", "line 3");
        check("foxy-operations 1 5 2 9\nw 1 2 3 4\n", "line 2");
        check("foxy-operations 1 5 2 9\nw 1 2 3\nd 2 2 3\n", "line 3: must read or delete");
        check("foxy-operations 1 5 2 9\nw 1 2 3\nr 1 2 4\n", "line 3: must read or delete");
        check("foxy-operations 1 5 2 9\nw 1 2 3\nw 1 2 3\n", "line 3");
        check("foxy-operations 1 5 2 9\nw 1 2 10\n", "line 2: must");
    }
}
