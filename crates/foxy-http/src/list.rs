//! Comma lists in one header value (RFC 9110 §5.6.1). What the members mean is the caller's.

/// The members of one comma list.
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

/// Where the first comma outside a quoted string is, or the end.
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
