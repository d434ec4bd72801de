//! Parses request targets (RFC 9112 §3.2), authorities and schemes. Targets keep their bytes as
//! received, without decoding or normalisation.

use crate::error::DecodeError;
use crate::message::Method;
use bytes::Bytes;
use std::fmt;
use std::net::Ipv6Addr;

/// A request target in a form that its method allows. It contains no blank, control byte or `#`.
/// Servers disagree about `#`, and no form permits it (RFC 9112 §3.2, RFC 9110 §4.2.5). Other
/// bytes, such as `"{}|^`, stay as the client wrote them.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    raw: Bytes,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Origin,
    Absolute { scheme_end: usize, authority_end: usize },
    Authority,
    Asterisk,
}

/// The four forms of a request target (RFC 9112 §3.2.1 to §3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm<'a> {
    /// A path and query, starting with `/`.
    Origin(&'a [u8]),
    /// A whole URI, as sent to a proxy.
    Absolute {
        /// The scheme as written, without `://`.
        scheme: &'a [u8],
        /// A valid authority: `host [":" port]`.
        authority: &'a [u8],
        /// The path and query as written. The text is empty, or starts with `/` or `?`.
        path: &'a [u8],
    },
    /// The `host ":" port` of a CONNECT request.
    Authority(&'a [u8]),
    /// The `*` of an OPTIONS request.
    Asterisk,
}

impl Target {
    /// Parses the target of a request with this method.
    ///
    /// # Errors
    /// [`DecodeError::InvalidTarget`] for a form or byte that the method does not allow.
    /// [`DecodeError::InvalidAuthority`] for the right form with an invalid authority.
    pub fn parse(method: &Method, raw: Bytes) -> Result<Self, DecodeError> {
        if raw.is_empty() || raw.iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
            return Err(DecodeError::InvalidTarget);
        }
        Self::from_word(method, raw)
    }

    /// Parses a target that is known to be non-empty, without blanks and control bytes.
    pub(crate) fn from_word(method: &Method, raw: Bytes) -> Result<Self, DecodeError> {
        let form = Form::of(method, &raw)?;
        Ok(Self { raw, form })
    }

    /// Returns the target's bytes as received.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Returns the form of the target, with its parts.
    pub fn form(&self) -> TargetForm<'_> {
        match self.form {
            Form::Origin => TargetForm::Origin(&self.raw),
            Form::Authority => TargetForm::Authority(&self.raw),
            Form::Asterisk => TargetForm::Asterisk,
            Form::Absolute { scheme_end, authority_end } => TargetForm::Absolute {
                scheme: &self.raw[..scheme_end],
                authority: &self.raw[scheme_end + 3..authority_end],
                path: &self.raw[authority_end..],
            },
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Target({})", self.raw.escape_ascii())
    }
}

impl Form {
    fn of(method: &Method, raw: &[u8]) -> Result<Self, DecodeError> {
        if *method == Method::Connect {
            return match Authority::parse(raw) {
                Some(Authority { port: Some(_), .. }) => Ok(Self::Authority),
                _ => Err(DecodeError::InvalidAuthority),
            };
        }
        if memchr::memchr(b'#', raw).is_some() {
            return Err(DecodeError::InvalidTarget);
        }
        match raw {
            [b'/', ..] => Ok(Self::Origin),
            b"*" if *method == Method::Options => Ok(Self::Asterisk),
            _ => Self::absolute(raw),
        }
    }

    fn absolute(raw: &[u8]) -> Result<Self, DecodeError> {
        let scheme_end = memchr::memchr(b':', raw).ok_or(DecodeError::InvalidTarget)?;
        if !is_scheme(&raw[..scheme_end]) || !raw[scheme_end + 1..].starts_with(b"//") {
            return Err(DecodeError::InvalidTarget);
        }
        let authority_start = scheme_end + 3;
        let rest = &raw[authority_start..];
        let authority_end =
            authority_start + memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
        match Authority::parse(&raw[authority_start..authority_end]) {
            Some(_) => Ok(Self::Absolute { scheme_end, authority_end }),
            None => Err(DecodeError::InvalidAuthority),
        }
    }
}

/// Whether `text` is a letter, followed by letters, digits, `+`, `-` and `.` (RFC 3986 §3.1).
pub(crate) fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// The scheme of a URL: HTTP over TCP or over TLS (RFC 9110 §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`: HTTP over TCP.
    #[default]
    Http,
    /// `https`: HTTP over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme called `name`, ignoring case.
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| scheme.as_str().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns the scheme's name in URLs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port of URLs without a port.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A `host [":" port]` without user information.
///
/// A host is an IPv6 address in brackets, or letters, digits, `.`, `-` and `_`. RFC 3986 §3.2.2
/// allows more bytes, but DNS names and IPv4 addresses do not need them. With the strict form, two
/// parsers cannot see different hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// The host as written. An IPv6 address includes its brackets.
    pub host: &'a str,
    /// The port. `None` for a missing or empty port (`host:`).
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Parses an authority. Returns `None` if the text is empty or invalid.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let host_end = match text.first()? {
            b'[' => memchr::memchr(b']', text)? + 1,
            _ => text.iter().position(|&byte| byte == b':').unwrap_or(text.len()),
        };
        let (host, rest) = text.split_at(host_end);
        if !is_host(host) {
            return None;
        }
        let port = match rest {
            [] | [b':'] => None,
            [b':', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
                Some(std::str::from_utf8(digits).ok()?.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { host: std::str::from_utf8(host).ok()?, port })
    }
}

fn is_host(host: &[u8]) -> bool {
    if let [b'[', address @ .., b']'] = host {
        return std::str::from_utf8(address)
            .is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    !host.is_empty() && host.iter().all(|&byte| HOST_BYTES[usize::from(byte)])
}

/// The bytes of DNS names and IPv4 addresses. A table makes this check fast, because every request
/// needs it.
const HOST_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] =
            matches!(byte as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_');
        byte += 1;
    }
    table
};
