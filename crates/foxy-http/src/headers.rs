//! An ordered list of header lines. It keeps order, duplicates and the case of names, and ignores
//! case when it compares names. It splits values only at commas; the modules `framing` and
//! `connection` interpret them.

use crate::syntax::{ListMembers, is_token, is_value_byte, trim};
use bytes::{BufMut, Bytes};
use std::fmt;

/// Largest size in bytes of the text of all lines, because positions in the text have 32 bits.
const MAX_TEXT_BYTES: usize = u32::MAX as usize;

/// The reason why a header line was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidHeader {
    /// The name is not a token (RFC 9110 §5.1).
    Name,
    /// The value has a control byte other than HTAB (RFC 9110 §5.5).
    Value,
}

impl fmt::Display for InvalidHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Name => "a header name must be a token",
            Self::Value => "a header value must have no control bytes",
        })
    }
}

impl std::error::Error for InvalidHeader {}

/// Header lines in the order of arrival. Every name is a token, and no value has a control byte
/// other than HTAB. So a list can always be written to the wire.
///
/// Received lines share one buffer with their message head, and a clone shares this buffer too.
/// Added lines are in a second buffer. To keep a list after its request and response are done,
/// store the copy from [`Headers::compact`] instead.
#[derive(Clone, Default)]
pub struct Headers {
    received: Bytes,
    added: Vec<u8>,
    fields: Vec<Field>,
}

impl Headers {
    /// Creates an empty list of header lines. Allocates no memory.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn from_parts(received: Bytes, fields: Vec<Field>) -> Self {
        assert!(received.len() <= MAX_TEXT_BYTES, "a head is far below 4 GiB");
        Self { received, added: Vec::new(), fields }
    }

    /// Returns the number of header lines in the list.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the list has no header lines.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the number of bytes of all lines on the wire, including `: ` and CRLF for each line.
    pub fn wire_length(&self) -> usize {
        self.fields.iter().map(|field| (field.name_length + field.value_length + 4) as usize).sum()
    }

    /// Iterates over the lines in order. Names are as written; values have no surrounding blanks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.raw().map(|(name, value)| (text_of(name), value))
    }

    /// Iterates like [`Headers::iter`], but yields names as bytes.
    pub fn raw(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|field| (self.name_of(field), self.value_of(field)))
    }

    /// Returns the value of the first line called `name`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.named(name).next().map(|field| self.value_of(field))
    }

    /// Returns the value of the first line called `name`, if the value is UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Iterates over the values of all lines called `name`, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.named(name).map(|field| self.value_of(field))
    }

    /// Whether a line is called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.named(name).next().is_some()
    }

    /// Iterates over the members of the comma lists in all lines called `name` (RFC 9110 §5.6.1).
    /// Skips empty members and surrounding blanks. Commas within quoted strings do not separate
    /// members.
    pub fn tokens<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(name).flat_map(ListMembers::new)
    }

    /// Whether `token` is a member of the comma lists of `name`, ignoring case.
    pub fn has_token(&self, name: &str, token: &str) -> bool {
        self.tokens(name).any(|member| member.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Adds a line at the end. Replaces forbidden bytes in the value by SP (RFC 9110 §5.5) and
    /// removes blanks around the value.
    ///
    /// # Panics
    /// If `name` is not a token. Use [`Headers::try_append`] for names from a peer.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        assert!(is_token(name.as_bytes()), "the header name {name:?} is not a token");
        let field = self.push_text(name, value.as_ref());
        self.fields.push(field);
    }

    /// Adds a line from a peer at the end of the list.
    ///
    /// # Errors
    /// The name or value has a forbidden byte. The list stays unchanged.
    pub fn try_append(&mut self, name: &str, value: &[u8]) -> Result<(), InvalidHeader> {
        if !is_token(name.as_bytes()) {
            return Err(InvalidHeader::Name);
        }
        if !value.iter().copied().all(is_value_byte) {
            return Err(InvalidHeader::Value);
        }
        let field = self.push_text(name, value);
        self.fields.push(field);
        Ok(())
    }

    /// Replaces the first line called `name`, and removes later lines called `name`. If no line is
    /// called `name`, adds a line at the end. Treats the value like [`Headers::append`].
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let Some(place) = self.fields.iter().position(|field| self.is_named(field, name)) else {
            return self.append(name, value);
        };
        let field = self.push_text(name, value.as_ref());
        let later = self.fields.split_off(place + 1);
        self.fields[place] = field;
        let kept: Vec<Field> =
            later.into_iter().filter(|field| !self.is_named(field, name)).collect();
        self.fields.extend(kept);
    }

    /// Removes every line called `name`. Returns the number of removed lines.
    pub fn remove(&mut self, name: &str) -> usize {
        self.remove_all([name])
    }

    /// Removes every line with one of these names. Returns the number of removed lines.
    pub fn remove_all<const NAMES: usize>(&mut self, names: [&str; NAMES]) -> usize {
        let (before, tags) = (self.fields.len(), names.map(|name| tag(name.as_bytes())));
        let Self { received, added, fields } = self;
        fields.retain(|field| {
            let name = || slice(received, added, field.name_start, field.name_length);
            let is = |other: &&str| name().eq_ignore_ascii_case(other.as_bytes());
            !(tags.contains(&field.tag) && names.iter().any(is))
        });
        before - self.fields.len()
    }

    /// Keeps only the lines for which `keep(name, value)` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &[u8]) -> bool) {
        let Self { received, added, fields } = self;
        fields.retain(|field| {
            let name = slice(received, added, field.name_start, field.name_length);
            keep(text_of(name), slice(received, added, field.value_start, field.value_length))
        });
    }

    /// Copies the lines into a buffer of exactly their size. The copy does not keep a connection's
    /// larger buffer in memory.
    pub fn compact(&self) -> Self {
        let mut copy = Self { fields: Vec::with_capacity(self.fields.len()), ..Self::default() };
        copy.added.reserve_exact(self.wire_length());
        for (name, value) in self.iter() {
            let field = copy.push_text(name, value);
            copy.fields.push(field);
        }
        copy
    }

    /// Returns the whole line as one slice, if the text has name, `: `, value and CRLF next to each
    /// other.
    pub(crate) fn line_of(&self, field: &Field) -> Option<&[u8]> {
        if field.value_start != field.name_start + field.name_length + 2 {
            return None;
        }
        let length = field.name_length + field.value_length + 4;
        let line = find(&self.received, &self.added, field.name_start, length)?;
        (line[field.name_length as usize..].starts_with(b": ") && line.ends_with(b"\r\n"))
            .then_some(line)
    }

    /// Appends a header line in its wire form to the text of the list.
    fn push_text(&mut self, name: &str, value: &[u8]) -> Field {
        let name_start = self.received.len() + self.added.len();
        let value = trim(value);
        self.added.reserve(name.len() + value.len() + 4);
        self.added.put_slice(name.as_bytes());
        self.added.put_slice(b": ");
        if value.iter().copied().all(is_value_byte) {
            self.added.put_slice(value);
        } else {
            self.added
                .extend(value.iter().map(|&byte| if is_value_byte(byte) { byte } else { b' ' }));
        }
        self.added.put_slice(b"\r\n");
        let value_start = name_start + name.len() + 2;
        assert!(value_start + value.len() <= MAX_TEXT_BYTES, "header lines are far below 4 GiB");
        Field::new(name.as_bytes(), name_start, value, value_start)
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Field> {
        let tag = tag(name.as_bytes());
        let is_named = move |field: &&Field| field.tag == tag && self.is_named(field, name);
        self.fields.iter().filter(is_named)
    }

    fn is_named(&self, field: &Field, name: &str) -> bool {
        field.name_length as usize == name.len()
            && self.name_of(field).eq_ignore_ascii_case(name.as_bytes())
    }

    pub(crate) fn name_of(&self, field: &Field) -> &[u8] {
        slice(&self.received, &self.added, field.name_start, field.name_length)
    }

    pub(crate) fn value_of(&self, field: &Field) -> &[u8] {
        slice(&self.received, &self.added, field.value_start, field.value_length)
    }
}

/// Positions of a header line's name and value in the text of its list of lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) tag: u32,
    pub(crate) name_start: u32,
    pub(crate) name_length: u32,
    pub(crate) value_start: u32,
    pub(crate) value_length: u32,
}

impl Field {
    /// Makes a field. Both positions must be in a text of at most `u32::MAX` bytes.
    pub(crate) fn new(name: &[u8], name_start: usize, value: &[u8], value_start: usize) -> Self {
        Self {
            tag: tag(name),
            name_start: name_start as u32,
            name_length: name.len() as u32,
            value_start: value_start as u32,
            value_length: value.len() as u32,
        }
    }
}

/// A summary of a name in 32 bits: its length, first byte and last byte, without case. A look-up
/// compares summaries first, and whole names only if the summaries are equal.
fn tag(name: &[u8]) -> u32 {
    match name {
        [first, .., last] => {
            u32::from(first | 0x20)
                | u32::from(last | 0x20) << 8
                | u32::try_from(name.len()).unwrap_or(0) << 16
        }
        _ => 0,
    }
}

/// Lists are equal if their lines are equal in order. Names are compared without case, values byte
/// by byte.
impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .raw()
                .zip(other.raw())
                .all(|(one, two)| one.0.eq_ignore_ascii_case(two.0) && one.1 == two.1)
    }
}

impl Eq for Headers {}

impl fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_map()
            .entries(self.iter().map(|(name, value)| (name, value.escape_ascii().to_string())))
            .finish()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(lines: I) -> Self {
        let mut headers = Self::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        headers
    }
}

fn slice<'a>(received: &'a Bytes, added: &'a [u8], start: u32, length: u32) -> &'a [u8] {
    find(received, added, start, length).expect("a field lies within its text")
}

fn find<'a>(received: &'a Bytes, added: &'a [u8], start: u32, length: u32) -> Option<&'a [u8]> {
    let (start, length) = (start as usize, length as usize);
    match start.checked_sub(received.len()) {
        Some(start) => added.get(start..start + length),
        None => received.get(start..start + length),
    }
}

fn text_of(name: &[u8]) -> &str {
    std::str::from_utf8(name).expect("a header name is a token, and tokens are ASCII")
}
