//! Finds the end of a header section, and refuses what httparse would accept: LF without CR, folds
//! (continuation lines), and sections above the limits. The scanner remembers its position between
//! calls. So it visits each byte once, even if a head arrives in small pieces. The result does not
//! depend on where the pieces begin.

use crate::error::DecodeError;

/// Limits of a decoder, with sizes in bytes. The caller enforces timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of bytes in a head: first line, header lines and the empty line. At most
    /// `u32::MAX`.
    pub head: usize,
    /// Largest number of bytes in a request's first line with its CRLF. RFC 9112 §3 asks for a
    /// limit of at least 8000.
    pub request_line: usize,
    /// Largest number of header lines in a head, and of trailer lines in a trailer section.
    pub headers: usize,
    /// Largest number of bytes in all chunk extensions of a body together. The extensions of a
    /// single chunk have the same limit. The decoder skips extensions and never forwards them.
    pub chunk_extensions: usize,
    /// Largest number of bytes in a trailer section with its empty line. At most `u32::MAX`.
    pub trailers: usize,
    /// Largest number of 1xx responses before the final response.
    pub interim_responses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 64 << 10,
            request_line: 32 << 10,
            headers: 256,
            chunk_extensions: 4 << 10,
            trailers: 16 << 10,
            interim_responses: 32,
        }
    }
}

/// The rules for one header section: its limits, its first line, and the treatment of folds.
#[derive(Clone, Copy)]
pub(crate) struct SectionRules {
    /// Limit of the section in bytes, including the empty line. A longer section causes the error
    /// `too_long`.
    pub(crate) length: usize,
    pub(crate) too_long: DecodeError,
    pub(crate) first_line: FirstLine,
    pub(crate) headers: usize,
    pub(crate) folds: Folds,
}

impl SectionRules {
    pub(crate) const fn head(limits: &Limits, first_line: FirstLine, folds: Folds) -> Self {
        Self {
            length: limits.head,
            too_long: DecodeError::HeadTooLarge,
            first_line,
            headers: limits.headers,
            folds,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// The first line is a request line of at most this number of bytes, including CRLF.
    Request(usize),
    Status,
    /// The section has no first line, because it is a trailer section.
    Absent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folds {
    Refused,
    Allowed,
}

/// A complete header section at the front of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Number of bytes in the section, including the empty line.
    pub(crate) length: usize,
    /// Number of header lines in the section. A fold counts as part of the line that it continues.
    pub(crate) headers: usize,
    /// Number of folds in the section: lines that continue the previous line.
    pub(crate) folds: usize,
}

/// Progress of the scan in the section at the front of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SectionScanner {
    scanned: usize,
    line_start: usize,
    lines: usize,
    folds: usize,
}

impl SectionScanner {
    /// Continues the scan where the last call stopped. `buffer` must start with the same bytes as
    /// before. Returns `None` if more bytes are needed.
    pub(crate) fn scan(
        &mut self,
        buffer: &[u8],
        rules: &SectionRules,
    ) -> Result<Option<Section>, DecodeError> {
        let window = &buffer[..buffer.len().min(rules.length)];
        while let Some(found) = memchr::memchr(b'\n', &window[self.scanned..]) {
            let end = self.scanned + found;
            let line = &window[self.line_start..end];
            self.check_first_line_length(end + 1, rules)?;
            let Some((b'\r', content)) = line.split_last() else {
                return Err(DecodeError::BareLineFeed);
            };
            self.scanned = end + 1;
            self.line_start = end + 1;
            if content.is_empty() {
                return Ok(Some(self.finish(rules)));
            }
            self.take_line(content, rules)?;
        }
        self.scanned = window.len();
        self.check_first_line_length(window.len() + 1, rules)?;
        if window.len() == rules.length { Err(rules.too_long) } else { Ok(None) }
    }

    /// Refuses a first line that is too long. `length` is the number of bytes of the line so far.
    fn check_first_line_length(
        &self,
        length: usize,
        rules: &SectionRules,
    ) -> Result<(), DecodeError> {
        match rules.first_line {
            FirstLine::Request(most) if self.lines == 0 && length > most => {
                Err(DecodeError::RequestLineTooLong)
            }
            _ => Ok(()),
        }
    }

    fn take_line(&mut self, content: &[u8], rules: &SectionRules) -> Result<(), DecodeError> {
        self.lines += 1;
        let first_header = if rules.first_line == FirstLine::Absent { 1 } else { 2 };
        if matches!(content[0], b' ' | b'\t') && self.lines >= first_header {
            if rules.folds == Folds::Refused || self.lines == first_header {
                return Err(DecodeError::ObsoleteFold);
            }
            self.folds += 1;
        }
        if self.header_lines(rules) > rules.headers {
            Err(DecodeError::TooManyHeaders)
        } else {
            Ok(())
        }
    }

    fn header_lines(&self, rules: &SectionRules) -> usize {
        let first = usize::from(rules.first_line != FirstLine::Absent);
        self.lines.saturating_sub(first + self.folds)
    }

    fn finish(&self, rules: &SectionRules) -> Section {
        Section { length: self.scanned, headers: self.header_lines(rules), folds: self.folds }
    }
}
