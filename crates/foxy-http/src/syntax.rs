//! The bytes that header names and values may contain (RFC 9110 §5.1, §5.5, §5.6.2), and comma
//! lists.

/// Removes blanks and control bytes around a value.
pub(crate) fn trim(value: &[u8]) -> &[u8] {
    let visible = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    let start = value.iter().position(visible).unwrap_or(value.len());
    let end = value.iter().rposition(visible).map_or(start, |last| last + 1);
    &value[start..end]
}

pub(crate) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

pub(crate) const fn is_token(name: &[u8]) -> bool {
    let mut rest = name;
    while let [byte, after @ ..] = rest {
        if !TOKEN_BYTES[*byte as usize] {
            return false;
        }
        rest = after;
    }
    !name.is_empty()
}

/// The bytes that tokens may contain. A table makes this check fast, because the codec checks every
/// name.
const TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (marks, mut mark) = (b"!#$%&'*+-.^_`|~", 0);
    while mark < marks.len() {
        table[marks[mark] as usize] = true;
        mark += 1;
    }
    table
};

/// Iterates over the members of one comma list (RFC 9110 §5.6.1).
pub(crate) struct ListMembers<'a> {
    rest: &'a [u8],
}

impl<'a> ListMembers<'a> {
    pub(crate) fn new(value: &'a [u8]) -> Self {
        Self { rest: value }
    }
}

impl<'a> Iterator for ListMembers<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let end = member_end(self.rest);
            let member = self.rest[..end].trim_ascii();
            self.rest = self.rest.get(end + 1..).unwrap_or_default();
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    }
}

/// Returns the position of the first comma outside a quoted string, or the end of the list.
fn member_end(list: &[u8]) -> usize {
    match list.iter().position(|byte| matches!(byte, b',' | b'"')) {
        None => list.len(),
        Some(comma) if list[comma] == b',' => comma,
        Some(quote) => quoted_member_end(list, quote),
    }
}

fn quoted_member_end(list: &[u8], first_quote: usize) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (index, &byte) in list.iter().enumerate().skip(first_quote) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return index,
            _ => {}
        }
    }
    list.len()
}
