//! Finds the end of a header section and refuses what httparse would let pass: LF alone, folds,
//! excess. It keeps its place between calls, so a head that trickles in costs linear time; its
//! verdict does not depend on where the bytes were split.

use crate::error::DecodeError;

/// What a header section may contain.
#[derive(Clone, Copy)]
pub(crate) struct SectionRules {
    /// The most bytes with the empty line, and the error for more.
    pub(crate) length: usize,
    pub(crate) too_long: DecodeError,
    pub(crate) first_line: FirstLine,
    /// The most header lines.
    pub(crate) headers: usize,
    pub(crate) folds: Folds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstLine {
    /// A request line of at most so many bytes with CRLF.
    Request(usize),
    Status,
    /// A trailer section has header lines only.
    Absent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folds {
    Refused,
    Allowed,
}

/// A complete section at the front of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// Bytes with the empty line.
    pub(crate) length: usize,
    /// Header lines; a fold is part of the line it continues.
    pub(crate) headers: usize,
    /// Lines that continue another.
    pub(crate) folds: usize,
}

/// How far the section at the front of the buffer was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SectionScanner {
    scanned: usize,
    line_start: usize,
    lines: usize,
    folds: usize,
}

impl SectionScanner {
    /// Goes on where the last call stopped; `buffer` must start with the same bytes. `None`: more
    /// bytes are needed.
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

    /// `length` is the least the line that starts the section takes.
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
