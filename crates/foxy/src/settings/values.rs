//! Types for values of settings that are neither a plain number nor a single word.

use super::complaint::without_credentials;
use foxy_base::ByteSize;
use foxy_proxy::upstream::{OriginServer, Scheme, ServedHost};
use std::fmt::{self, Display};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The output of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Off,
    Standard,
    /// foxy appends lines to this file.
    File(PathBuf),
}

impl Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Standard => f.write_str("-"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Parses the URL of an origin server.
pub fn origin(text: &str) -> Result<OriginServer, String> {
    let shown = without_credentials(text);
    let refuse =
        |what: &str| format!("{shown:?} {what}; write a URL such as http://127.0.0.1:8080");
    let (scheme, rest) = text
        .split_once("://")
        .and_then(|(scheme, rest)| Some((Scheme::named(scheme.as_bytes())?, rest)))
        .ok_or_else(|| refuse("does not start with http:// or https://"))?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@', ' ']) {
        return Err(refuse("contains more than a host and a port"));
    }
    let (host, port_text) = match authority.rsplit_once(':') {
        Some((host, digits)) if !digits.contains(']') => (host, Some(digits)),
        _ => (authority, None),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare.is_empty() || (bare.contains(':') && bare.parse::<std::net::Ipv6Addr>().is_err()) {
        return Err(refuse("has no usable host"));
    }
    let port = port_text
        .map_or(Ok(scheme.default_port()), port)
        .map_err(|message| refuse(&format!("has a bad port: {message}")))?;
    Ok(OriginServer { scheme, host: bare.to_owned(), port })
}

/// Parses a TCP port.
pub fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("{text:?} is not a port; write a number from 1 to 65535")),
    }
}

/// Returns the size in the largest unit that gives a whole number, so that the text is exact.
pub fn exact(size: ByteSize) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units.iter().find(|(shift, _)| size.0 != 0 && size.0.trailing_zeros() >= *shift);
    fits.map_or_else(
        || format!("{} B", size.0),
        |(shift, unit)| format!("{} {unit}", size.0 >> shift),
    )
}

/// Reads the URL of an https resource.
pub fn https_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let is_sound = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b'#' | b'?');
    if host.is_empty() || host.contains("..") || !rest.bytes().all(is_sound) {
        return Err(format!(
            "{text:?} is not a URL; write a URL such as https://ca.example/directory"
        ));
    }
    Ok(text.to_owned())
}

/// Reads a host name, for which an authority can sign a certificate.
pub fn site_name(text: &str) -> Result<String, String> {
    match text.parse() {
        Ok(ServedHost::Exactly(name)) if is_site_name(&name) => Ok(name),
        _ => Err(format!(
            "{text:?} is not a host name; write a name such as shop.example, without *"
        )),
    }
}

/// Returns whether the text is a host name, and no address.
pub fn is_site_name(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    text.bytes().all(is_sound) && text.parse::<Ipv4Addr>().is_err()
}

pub fn mail_address(text: &str) -> Result<String, String> {
    let parts = text.split_once('@');
    let is_sound = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic());
    match parts {
        Some((user, host)) if is_sound(user) && is_sound(host) => Ok(text.to_owned()),
        _ => Err(format!(
            "{text:?} is not an e-mail address; write an address such as admin@example.org"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read() {
        let cases = [
            ("http://example.com", Scheme::Http, "example.com", 80),
            ("http://example.com:8080/", Scheme::Http, "example.com", 8080),
            ("http://[::1]:81", Scheme::Http, "::1", 81),
            ("http://[::1]", Scheme::Http, "::1", 80),
            ("https://example.com", Scheme::Https, "example.com", 443),
            ("HTTPS://[::1]:8443/", Scheme::Https, "::1", 8443),
        ];
        for (text, scheme, host, port) in cases {
            assert_eq!(origin(text), Ok(OriginServer { scheme, host: host.into(), port }));
        }
        let refusal = origin("http://user:SECRET@a").expect_err("credentials");
        assert!(!refusal.contains("SECRET"), "{refusal}");
        for text in [
            "example.com",
            "ftp://a",
            "http://",
            "https://",
            "http://a:0",
            "http://a/b",
            "http://u@a",
            "http://a:b:1",
        ] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_without_loss() {
        for (bytes, text) in [(1536, "1536 B"), (2048, "2 KiB"), (10 << 30, "10 GiB"), (0, "0 B")] {
            assert_eq!(exact(ByteSize(bytes)), text);
            assert_eq!(text.parse(), Ok(ByteSize(bytes)));
        }
    }

    #[test]
    fn texts_for_an_acme_authority_are_read() {
        assert_eq!(site_name("Shop.Example"), Ok("shop.example".into()));
        for text in ["*.shop.example", "192.0.2.1", "[::1]", "", "a b", "a/b", "ä.test"] {
            assert!(site_name(text).is_err(), "{text}");
        }
        for text in ["http://a/dir", "https://", "https:///dir", "https://u@a/dir", "https://../"] {
            assert!(https_url(text).is_err(), "{text}");
        }
        assert!(https_url("https://127.0.0.1:14000/dir").is_ok());
        for (text, expected) in [("a@b.test", true), ("a", false), ("@b", false), ("a b@c", false)]
        {
            assert_eq!(mail_address(text).is_ok(), expected, "{text}");
        }
    }
}
