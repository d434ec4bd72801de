//! Reads a trace from a log: decompresses it, guesses its format, and counts skipped lines by
//! reason.

use super::csv::Csv;
#[cfg(feature = "parquet")]
use super::parquet;
use super::report::{Format, ReadError, ReadReport, is_damage};
use super::skip::Skip;
use super::{Builder, Trace, access_log, json_log, oracle_general};
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Maximum length of a line in bytes. The reader skips a longer line.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Number of bytes at the start of the file from which the reader guesses the format.
const HEAD_BYTES: usize = 1 << 16;

/// Compressed formats that foxy does not read: first bytes, name, and unpacking command.
const OTHER_PACKINGS: [(&[u8], &str, &str); 4] = [
    (b"PK\x03\x04", "zip", "unzip -p"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -dc"),
];

/// Reads the GET requests of a log. Guesses the format if `format` is `None`. Calls `progress` with
/// the number of lines read. The report counts unusable lines.
pub fn read(
    input: impl Read,
    format: Option<Format>,
    progress: &mut dyn FnMut(u64),
) -> Result<(Trace, ReadReport), ReadError> {
    read_into(Builder::default(), input, format, progress)
}

/// Reads like [`read`] into `builder`, which may also collect requests with other methods.
pub fn read_into(
    builder: Builder,
    input: impl Read,
    format: Option<Format>,
    progress: &mut dyn FnMut(u64),
) -> Result<(Trace, ReadReport), ReadError> {
    let plain = Resumed::new(input)?;
    if let Some((_, name, unpack)) =
        OTHER_PACKINGS.iter().find(|(magic, ..)| plain.head().starts_with(magic))
    {
        return Err(ReadError::OtherPacking { name, unpack });
    }
    if !plain.head().starts_with(&[0x1f, 0x8b]) {
        return read_unpacked(builder, plain, false, format, progress);
    }
    read_unpacked(builder, Resumed::new(MultiGzDecoder::new(plain))?, true, format, progress)
}

fn read_unpacked<R: Read>(
    mut builder: Builder,
    input: Resumed<R>,
    packed: bool,
    format: Option<Format>,
    progress: &mut dyn FnMut(u64),
) -> Result<(Trace, ReadReport), ReadError> {
    let unknown = if input.head().is_empty() { ReadError::Empty } else { ReadError::UnknownFormat };
    let format = format.or_else(|| guess(input.head())).ok_or(unknown)?;
    let mut report = ReadReport::new(format, packed);
    let buffered = |input| BufReader::with_capacity(HEAD_BYTES, input);
    match format {
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::read(input, &mut builder, &mut report, progress),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(ReadError::NotParquet(
            "only a foxy built with the feature lab reads this format".into(),
        )),
        Format::OracleGeneral => {
            oracle_general::read(buffered(input), &mut builder, &mut report, progress)
        }
        _ => read_lines(buffered(input), &mut builder, &mut report, progress),
    }?;
    report.others = builder.others() as u64;
    report.gets -= report.others;
    Ok((builder.finish(), report))
}

/// The parser for the next line.
enum Lines {
    Squid,
    Common,
    Json,
    Header,
    Csv(Csv),
}

fn read_lines(
    mut input: impl BufRead,
    builder: &mut Builder,
    report: &mut ReadReport,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ReadError> {
    let mut lines = match report.format {
        Format::Squid => Lines::Squid,
        Format::Common => Lines::Common,
        Format::Json => Lines::Json,
        Format::Csv | Format::Parquet | Format::OracleGeneral => Lines::Header,
    };
    let mut bytes = Vec::new();
    loop {
        let fits = match next_line(&mut input, &mut bytes) {
            Ok(Some(fits)) => fits,
            Ok(None) => break,
            Err(error) if is_damage(&error, report.packed) => {
                report.damaged(&error)?;
                break;
            }
            Err(error) => return Err(ReadError::Io(error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\r', '\n']);
        let outcome = match &lines {
            _ if !fits => Err(Skip::TooLong),
            _ if text.trim_start().is_empty() || text.starts_with('#') => Err(Skip::Blank),
            Lines::Squid => access_log::parse_squid(text).and_then(|entry| builder.add(entry)),
            Lines::Common => access_log::parse_common(text).and_then(|entry| builder.add(entry)),
            Lines::Json => json_log::parse(text, |entry| builder.add(entry)),
            Lines::Csv(csv) => csv.parse(text, |entry| builder.add(entry)),
            Lines::Header => {
                lines = Lines::Csv(Csv::new(text)?);
                continue;
            }
        };
        report.count(outcome, || text.to_string());
        progress(report.lines);
    }
    if matches!(lines, Lines::Header) {
        return Err(ReadError::NoColumn("time"));
    }
    Ok(())
}

/// Reads a line with its line end. Returns `None` at the end of the input. For a line that is too
/// long, returns `Some(false)` and leaves the start of the line in `line`.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    let limit = MAX_LINE_BYTES as u64;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(None);
    }
    if line.len() < MAX_LINE_BYTES || line.ends_with(b"\n") {
        return Ok(Some(true));
    }
    loop {
        let (used, found) = {
            let buffer = input.fill_buf()?;
            match buffer.iter().position(|&byte| byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            }
        };
        input.consume(used);
        if found {
            return Ok(Some(false));
        }
    }
}

/// Number of lines from which the reader guesses the format. If none of them has a known format,
/// the reader uses all lines at the start of the file.
const GUESSED_LINES: usize = 20;

/// Returns the format that most lines in `head` have.
fn guess(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    if oracle_general::is_likely(head) {
        return Some(Format::OracleGeneral);
    }
    let text = String::from_utf8_lossy(head);
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    if Csv::new(lines.first()?).is_ok() {
        return Some(Format::Csv);
    }
    let first = &lines[..lines.len().min(GUESSED_LINES)];
    guess_lines(first).or_else(|| guess_lines(&lines))
}

fn guess_lines(lines: &[&str]) -> Option<Format> {
    type Parse = fn(&str) -> Option<Skip>;
    let parsers: [(Format, Parse); 3] = [
        (Format::Common, |line| access_log::parse_common(line).err()),
        (Format::Json, |line| json_log::parse(line, |_| Ok(())).err()),
        (Format::Squid, |line| access_log::parse_squid(line).err()),
    ];
    let counts = parsers.map(|(format, parse)| {
        let fits = |line: &&&str| parse(line).is_none_or(|reason| !reason.is_broken());
        (lines.iter().filter(fits).count(), format)
    });
    let (count, format) = counts.into_iter().max_by_key(|(count, _)| *count)?;
    (count > 0).then_some(format)
}

/// A reader whose first bytes are already read into `head`.
struct Resumed<R> {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: R,
}

impl<R: Read> Resumed<R> {
    /// Reads the first [`HEAD_BYTES`]. If reading fails, a later `read` returns the bytes before
    /// the error, and then the error.
    fn new(mut rest: R) -> Result<Self, ReadError> {
        let mut head = Vec::new();
        let error = rest.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).err();
        match error {
            Some(error) if head.is_empty() => Err(ReadError::Io(error)),
            error => Ok(Self { head: Cursor::new(head), error, rest }),
        }
    }

    fn head(&self) -> &[u8] {
        self.head.get_ref()
    }
}

impl<R: Read> Read for Resumed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.head.read(out)?;
        if read > 0 || out.is_empty() {
            return Ok(read);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.rest.read(out),
        }
    }
}
