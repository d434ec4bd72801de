//! Finds out whether a field block (the headers or trailers of HTTP/2) begins with a pseudo-field,
//! such as `:path`. Trailers with a pseudo-field are malformed (RFC 9113 §8.1), but the HTTP/2
//! library drops the pseudo-field silently. The library itself refuses a block in which a
//! pseudo-field follows a regular field. So this code checks only the first field.
//!
//! This code tracks only one part of the HPACK state (RFC 7541): which entries of the dynamic table
//! are pseudo-fields. An index counts from the newest entry, so sizes and evictions do not matter.
//! The library closes the connection on an invalid index.

use crate::core::frames::{Frame, flag};
use std::collections::VecDeque;

/// Index of the last pseudo-field in the static table (RFC 7541, appendix A).
const LAST_PSEUDO: usize = 14;
/// Index of the last entry in the static table.
const LAST_STATIC: usize = 61;

/// Largest number of entries in a dynamic table. The table has 4,096 bytes by default, and each
/// entry counts as at least 32 bytes (RFC 7541 §4.1).
const MAX_TABLE_ENTRIES: usize = 4096 / 32;

/// The seven-bit Huffman code of `:` (RFC 7541, appendix B). The first byte of an encoded name
/// contains these seven bits and one more bit.
const HUFFMAN_COLON: u8 = 0b101_1100;

/// The kind of the first field in a block. A pseudo-field has a name that begins with `:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstField {
    Pseudo,
    /// A regular field, or no field at all.
    Regular,
}

/// The way in which a field is encoded (RFC 7541 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Indexed,
    Added,
    NotAdded,
    NewSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Name,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Index,
    Length(Text),
}

/// The next element of the field block that the decoder expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockStep {
    Field,
    Length(Text),
    More(Number),
    Text(Text),
}

/// Decoder state for the field blocks in one direction of a connection.
#[derive(Debug)]
pub(crate) struct FieldBlocks {
    /// One element for each entry of the dynamic table, newest first. The element is true if the
    /// entry is a pseudo-field.
    recent: VecDeque<bool>,
    step: BlockStep,
    form: Form,
    /// The value of the number that is being decoded, or the count of unread bytes of the current
    /// string.
    number: usize,
    shift: u32,
    huffman: bool,
    begun: bool,
    pseudo: bool,
    first: Option<bool>,
    /// Unread bytes of the current frame. `skip` counts the bytes of the priority fields, and
    /// `fragment` counts the bytes of the field block.
    skip: usize,
    fragment: usize,
    padded: bool,
}

impl FieldBlocks {
    pub(crate) const fn new() -> Self {
        Self {
            recent: VecDeque::new(),
            step: BlockStep::Field,
            form: Form::Indexed,
            number: 0,
            shift: 0,
            huffman: false,
            begun: false,
            pseudo: false,
            first: None,
            skip: 0,
            fragment: 0,
            padded: false,
        }
    }

    /// Notes that a HEADERS frame begins, or a CONTINUATION frame if `is_continued` is true.
    pub(crate) fn frame(&mut self, frame: Frame, is_continued: bool) {
        if is_continued {
            (self.padded, self.skip) = (false, 0);
        } else {
            (self.step, self.first) = (BlockStep::Field, None);
            self.padded = frame.has(flag::PADDED);
            self.skip = if frame.has(flag::PRIORITY) { 5 } else { 0 };
        }
        self.fragment = frame.length;
    }

    pub(crate) fn payload(&mut self, mut bytes: &[u8]) {
        if self.padded
            && let [padding, rest @ ..] = bytes
        {
            self.padded = false;
            self.fragment = self.fragment.saturating_sub(1 + usize::from(*padding));
            bytes = rest;
        }
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.fragment = self.fragment.saturating_sub(skipped);
        bytes = &bytes[skipped..];
        let taken = self.fragment.min(bytes.len());
        self.fragment -= taken;
        self.block(&bytes[..taken]);
    }

    /// Returns whether the block begins with a pseudo-field or a regular field. The caller must
    /// first pass the whole block to this decoder.
    pub(crate) fn first(&self) -> FirstField {
        if self.first == Some(true) { FirstField::Pseudo } else { FirstField::Regular }
    }

    fn block(&mut self, mut bytes: &[u8]) {
        while let [byte, rest @ ..] = bytes {
            let byte = *byte;
            match self.step {
                BlockStep::Text(text) => {
                    if text == Text::Name && !self.begun {
                        self.pseudo =
                            if self.huffman { byte >> 1 == HUFFMAN_COLON } else { byte == b':' };
                    }
                    self.begun = true;
                    let taken = self.number.min(bytes.len());
                    self.number -= taken;
                    bytes = &bytes[taken..];
                    if self.number == 0 {
                        self.string_read(text);
                    }
                    continue;
                }
                BlockStep::Field => {
                    let (form, bits) = match byte {
                        0x80.. => (Form::Indexed, 7),
                        0x40.. => (Form::Added, 6),
                        0x20.. => (Form::NewSize, 5),
                        _ => (Form::NotAdded, 4),
                    };
                    self.form = form;
                    self.begin_number(byte, bits, Number::Index);
                }
                BlockStep::Length(text) => {
                    self.huffman = byte & 0x80 != 0;
                    self.begin_number(byte, 7, Number::Length(text));
                }
                BlockStep::More(number) => {
                    // A longer number need not be decoded, because the HTTP/2 library closes the
                    // connection on such a number.
                    if self.shift < 28 {
                        self.number += usize::from(byte & 0x7f) << self.shift;
                    }
                    self.shift += 7;
                    if byte & 0x80 == 0 {
                        self.number_read(number);
                    }
                }
            }
            bytes = rest;
        }
    }

    /// Begins to decode a number that starts in the lower `bits` bits of `byte` (RFC 7541 §5.1).
    fn begin_number(&mut self, byte: u8, bits: u32, number: Number) {
        let most = (1_u8 << bits) - 1;
        self.number = usize::from(byte & most);
        self.shift = 0;
        if byte & most == most {
            self.step = BlockStep::More(number);
        } else {
            self.number_read(number);
        }
    }

    fn number_read(&mut self, number: Number) {
        match (number, self.form) {
            (Number::Index, Form::NewSize) => self.step = BlockStep::Field,
            (Number::Index, Form::Indexed) => {
                self.pseudo = self.is_pseudo(self.number);
                self.field_read();
            }
            (Number::Index, Form::Added | Form::NotAdded) if self.number == 0 => {
                self.step = BlockStep::Length(Text::Name);
            }
            (Number::Index, Form::Added | Form::NotAdded) => {
                self.pseudo = self.is_pseudo(self.number);
                self.step = BlockStep::Length(Text::Value);
            }
            (Number::Length(text), _) => {
                self.begun = false;
                self.step = BlockStep::Text(text);
                if self.number == 0 {
                    self.pseudo &= text == Text::Value;
                    self.string_read(text);
                }
            }
        }
    }

    fn string_read(&mut self, text: Text) {
        match text {
            Text::Name => self.step = BlockStep::Length(Text::Value),
            Text::Value => {
                if self.form == Form::Added {
                    self.recent.truncate(MAX_TABLE_ENTRIES - 1);
                    self.recent.push_front(self.pseudo);
                }
                self.field_read();
            }
        }
    }

    fn field_read(&mut self) {
        self.first.get_or_insert(self.pseudo);
        self.step = BlockStep::Field;
    }

    fn is_pseudo(&self, index: usize) -> bool {
        match index.checked_sub(LAST_STATIC + 1) {
            None => (1..=LAST_PSEUDO).contains(&index),
            Some(place) => self.recent.get(place).copied().unwrap_or(false),
        }
    }
}

#[cfg(test)]
#[path = "field_blocks_tests.rs"]
mod tests;
