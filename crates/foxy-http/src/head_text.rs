//! A response head as the bytes to send, with a list of its header lines. The list points into
//! these bytes. The head is encoded once and then reused for many responses.

use crate::encode::{CRLF, header_lines, put_line, status_line};
use crate::headers::{Field, Headers, InvalidHeader};
use crate::message::ResponseHead;
use crate::syntax::{is_token, is_value_byte, trim};
use bytes::Bytes;

/// A header name that is written in the program's code. The compiler checks that the name is a
/// token.
#[derive(Clone, Copy, Debug)]
pub struct OwnName(&'static str);

impl OwnName {
    /// Creates a header name. Panics if `name` is not a token.
    pub const fn new(name: &'static str) -> Self {
        assert!(is_token(name.as_bytes()), "the name is not a token");
        Self(name)
    }

    /// Returns the name as a string.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// A response head under construction: the status line and header lines so far, without the final
/// empty line.
#[derive(Debug)]
pub struct HeadText {
    text: Vec<u8>,
    fields: Vec<Field>,
}

impl HeadText {
    /// Starts a head without header lines and reserves about `room` bytes. Panics like
    /// [`status_line`].
    pub fn new(status: u16, reason: &[u8], room: usize) -> Self {
        let mut text = Vec::with_capacity(room);
        status_line(status, reason, &mut text);
        Self { text, fields: Vec::with_capacity(INITIAL_LINES) }
    }

    /// Adds a line with a name from the program's code. If `lower` is set, writes the name in lower
    /// case.
    pub fn own_line(&mut self, name: OwnName, lower: bool, value: &[u8]) {
        let start = self.text.len();
        self.put(name.0.as_bytes(), value);
        if lower {
            self.text[start..start + name.0.len()].make_ascii_lowercase();
        }
    }

    /// Adds a line with any name, such as one from a peer.
    ///
    /// # Errors
    /// The name is not a token.
    pub fn line(&mut self, name: &[u8], value: &[u8]) -> Result<(), InvalidHeader> {
        if !is_token(name) {
            return Err(InvalidHeader::Name);
        }
        self.put(name, value);
        Ok(())
    }

    fn put(&mut self, name: &[u8], value: &[u8]) {
        let (start, value) = (self.text.len(), trim(value));
        self.text.reserve(name.len() + value.len() + 4);
        put_line(name, value, &mut self.text);
        self.fields.push(Field::new(name, start, value, start + name.len() + 2));
    }

    /// Returns the text of the head and the list of its lines.
    ///
    /// # Errors
    /// A value or the reason phrase contains a forbidden byte, such as a line break. A reader would
    /// then see other header lines.
    pub fn finish(self) -> Result<(Bytes, Headers), InvalidHeader> {
        let Self { mut text, fields } = self;
        if refused_bytes(&text) != CRLF.len() * (1 + fields.len()) {
            return Err(InvalidHeader::Value);
        }
        text.shrink_to_fit();
        let text = Bytes::from(text);
        Ok((text.clone(), Headers::from_parts(text, fields)))
    }
}

impl ResponseHead {
    /// Encodes this head without its final empty line. Also returns a copy of the head whose lines
    /// point into the encoded bytes. The copy shares nothing with the received bytes. Panics like
    /// [`status_line`].
    pub fn written(&self) -> (Bytes, Self) {
        const REASON_START: usize = "HTTP/1.1 200 ".len();
        let reason_end = REASON_START + self.reason.len();
        let mut text = Vec::with_capacity(reason_end + CRLF.len() + self.headers.wire_length());
        status_line(self.status, &self.reason, &mut text);
        let mut at = text.len() as u32;
        header_lines(&self.headers, &mut text);
        let place = |field: &Field| {
            let name_start = at;
            let value_start = name_start + field.name_length + 2;
            at = value_start + field.value_length + 2;
            Field { name_start, value_start, ..*field }
        };
        let fields = self.headers.fields().iter().map(place).collect();
        let text = Bytes::from(text);
        let (reason, headers) =
            (text.slice(REASON_START..reason_end), Headers::from_parts(text.clone(), fields));
        (text, Self { version: self.version, status: self.status, reason, headers })
    }
}

/// Number of lines for which a new head reserves space.
const INITIAL_LINES: usize = 12;

/// Counts the bytes that no header value may contain.
fn refused_bytes(text: &[u8]) -> usize {
    let of_piece =
        |piece: &[u8]| piece.iter().map(|&byte| u8::from(!is_value_byte(byte))).sum::<u8>();
    text.chunks(u8::MAX.into()).map(|piece| usize::from(of_piece(piece))).sum()
}
