//! Which bytes names and values may have (RFC 9110 §5.1, §5.5, §5.6.2).

/// Drops what a parser would take for blanks around the value, and what would become blanks.
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

/// The bytes of tokens, as a table: every name that is stored or added is looked at.
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
