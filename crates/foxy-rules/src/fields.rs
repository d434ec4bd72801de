//! The interface through which the rules read header fields, and a parser for lists of values
//! separated by commas.

/// A list of header fields. Names are compared without regard to case (RFC 9110 §5.1).
pub trait Fields {
    /// Returns the values of all lines named `name`, in order.
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]>;

    /// Returns the value of the only line named `name`. Returns `None` for no line or several
    /// lines.
    fn single<'a>(&'a self, name: &'a str) -> Option<&'a [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }

    /// Returns whether there is a line named `name`.
    fn has<'a>(&'a self, name: &'a str) -> bool {
        self.values(name).next().is_some()
    }
}

/// Returns whether a response sets a cookie, also by the obsolete field Set-Cookie2 (RFC 2965).
pub fn sets_cookie(response: &(impl Fields + ?Sized)) -> bool {
    response.has("set-cookie") || response.has("set-cookie2")
}

impl<F: Fields + ?Sized> Fields for &F {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        (**self).values(name)
    }
}

impl Fields for [(&str, &str)] {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }
}

/// Returns the non-empty members of a comma-separated list (RFC 9110 §5.6.1), trimmed. The list may
/// span several lines. A comma in a quoted string does not separate members.
pub fn members<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines
        .flat_map(|line| Members { rest: line })
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Returns whether a text is a token (RFC 9110 §5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    let is_token_byte = |&byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
    };
    !text.is_empty() && text.iter().all(is_token_byte)
}

struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (mut quoted, mut escaped) = (false, false);
        let end = self.rest.iter().position(|&byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b',' if !quoted => return true,
                _ => {}
            }
            false
        });
        let (member, rest) = match end {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_over_lines_without_empty_members_or_quoted_commas() {
        let lines = [&b"a, ,b"[..], b"", b"c=\"x,\\\",y\" ,d"];
        let found: Vec<_> = members(lines.into_iter()).collect();
        assert_eq!(found, [&b"a"[..], b"b", b"c=\"x,\\\",y\"", b"d"]);
    }

    #[test]
    fn a_field_in_two_lines_is_not_single() {
        let fields = [("Age", "1"), ("age", "2"), ("Date", "x")];
        assert_eq!(fields.single("age"), None);
        assert_eq!(fields.single("date"), Some(&b"x"[..]));
    }
}
