//! A parent proxy: another HTTP proxy through which this proxy reaches origins. The password of a
//! parent never appears in messages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foxy_http::{Authority, Scheme};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::str::FromStr;

/// Text that messages show instead of the credentials of a parent proxy.
const HIDDEN: &str = "***";

/// The user name and password with which this proxy identifies itself to a parent proxy, encoded
/// for `Proxy-Authorization` (RFC 7617). `Debug` output hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct ParentCredentials(String);

impl ParentCredentials {
    /// Reads `USER:PASSWORD`. Returns `None` if the user is empty, the colon is missing, or the
    /// text contains a control character.
    pub fn read(text: &[u8]) -> Option<Self> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let is_sound = colon > 0 && !text.iter().any(u8::is_ascii_control);
        is_sound.then(|| Self(format!("Basic {}", STANDARD.encode(text))))
    }

    /// Returns the value of `Proxy-Authorization`.
    pub(crate) fn value(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ParentCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ParentCredentials(…)")
    }
}

/// A parent proxy. `Display` output shows its URL without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    scheme: Scheme,
    host: String,
    port: u16,
    credentials: Option<ParentCredentials>,
    only: Option<Scheme>,
}

impl Parent {
    /// Limits the parent proxy to origins of this scheme. Tunnels count as `https`.
    #[must_use]
    pub fn only_for(self, scheme: Scheme) -> Self {
        Self { only: Some(scheme), ..self }
    }

    /// Sets the credentials, unless the parent proxy's URL already contained credentials.
    #[must_use]
    pub fn with_credentials(self, credentials: &ParentCredentials) -> Self {
        let credentials = self.credentials.or_else(|| Some(credentials.clone()));
        Self { credentials, ..self }
    }

    /// Returns `https` if the proxy speaks TLS with the parent, otherwise `http`.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host: a name or an address. An IPv6 address has brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns host and port.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(crate) fn credentials(&self) -> Option<&ParentCredentials> {
        self.credentials.as_ref()
    }

    pub(crate) fn serves(&self, scheme: Scheme) -> bool {
        self.only.is_none_or(|only| only == scheme)
    }
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = if self.credentials.is_some() { HIDDEN } else { "" };
        let at = if self.credentials.is_some() { "@" } else { "" };
        write!(f, "{}://{hidden}{at}{}:{}", self.scheme.as_str(), self.host, self.port)
    }
}

/// The reason why a text is not the URL of a parent proxy. The messages do not repeat the text,
/// because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadParent {
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The host or port is missing or invalid.
    Authority,
    /// The URL has a path, a query or a fragment.
    TooMuch,
    /// The user is empty, or the credentials contain a control character or no colon.
    Credentials,
    /// The text contains the placeholder that messages show instead of credentials.
    Hidden,
}

impl fmt::Display for BadParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "foxy reaches parent proxies over http:// and https:// only",
            Self::Authority => "the parent proxy's host or port cannot be read",
            Self::TooMuch => "the URL of a parent proxy may have no path, query or fragment",
            Self::Credentials => "the credentials of the parent proxy are not USER:PASSWORD",
            Self::Hidden => {
                return f.write_str(
                    "*** stands for hidden credentials; write USER:PASSWORD, or name a file in \
                     parent-credentials-file",
                );
            }
        })?;
        f.write_str("; write a URL such as http://proxy.example:3128")
    }
}

impl std::error::Error for BadParent {}

impl FromStr for Parent {
    type Err = BadParent;

    /// Reads `[SCHEME://][USER:PASSWORD@]HOST[:PORT]`. User and password are percent-encoded.
    fn from_str(text: &str) -> Result<Self, BadParent> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => {
                (Scheme::named(scheme.as_bytes()).ok_or(BadParent::Scheme)?, rest)
            }
            None => (Scheme::Http, text),
        };
        let (credentials, authority) = match rest.rsplit_once('@') {
            Some((HIDDEN, _)) => return Err(BadParent::Hidden),
            Some((credentials, authority)) => (Some(credentials), authority),
            None => (None, rest),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains(['/', '?', '#']) {
            return Err(BadParent::TooMuch);
        }
        let read = |text: &str| {
            let decoded: Vec<u8> = percent_decode_str(text).collect();
            ParentCredentials::read(&decoded).ok_or(BadParent::Credentials)
        };
        let credentials = credentials.map(read).transpose()?;
        let Authority { host, port } =
            Authority::parse(authority.as_bytes()).ok_or(BadParent::Authority)?;
        let port = port.unwrap_or(scheme.default_port());
        if port == 0 {
            return Err(BadParent::Authority);
        }
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, credentials, only: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_read_from_its_url() {
        let cases = [
            ("http://proxy.test:3128", "http://proxy.test:3128", None),
            ("HTTP://Proxy.Test/", "http://proxy.test:80", None),
            ("https://Proxy.Test", "https://proxy.test:443", None),
            ("proxy.test:8080", "http://proxy.test:8080", None),
            ("http://[::1]:3128", "http://[::1]:3128", None),
            ("http://user:word@p.test:1", "http://***@p.test:1", Some("Basic dXNlcjp3b3Jk")),
            ("http://user:@p.test:1", "http://***@p.test:1", Some("Basic dXNlcjo=")),
            ("http://a%40b:c%3Ad@p.test:1", "http://***@p.test:1", Some("Basic YUBiOmM6ZA==")),
        ];
        for (text, shown, value) in cases {
            let parent: Parent = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(parent.to_string(), shown, "{text}");
            assert_eq!(parent.credentials().map(ParentCredentials::value), value, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_without_repeating_them() {
        let cases = [
            ("socks5://p.test:1", BadParent::Scheme),
            ("", BadParent::Authority),
            ("http://p.test:0", BadParent::Authority),
            ("http://p.test:x", BadParent::Authority),
            ("http://p.test/path", BadParent::TooMuch),
            ("http://:secret@p.test", BadParent::Credentials),
            ("http://secret@p.test", BadParent::Credentials),
            ("http://user:sec%0Aret@p.test", BadParent::Credentials),
            ("http://***@p.test", BadParent::Hidden),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Parent>().expect_err(text);
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn no_form_of_a_parent_shows_its_password() {
        let parent: Parent = "http://user:secret@p.test:1".parse().expect("a parent");
        for text in [parent.to_string(), format!("{parent:?}"), parent.authority()] {
            assert!(!text.contains("secret") && !text.contains("dXNlcj"), "{text}");
        }
    }

    #[test]
    fn the_credentials_in_a_url_come_before_those_of_the_file() {
        let of_file = ParentCredentials::read(b"file:word").expect("credentials");
        let value = |text: &str| {
            let parent: Parent = text.parse().expect("a parent");
            let parent = parent.with_credentials(&of_file);
            parent.credentials().map(|credentials| credentials.value().to_owned())
        };
        assert_eq!(value("http://user:word@p.test").as_deref(), Some("Basic dXNlcjp3b3Jk"));
        assert_eq!(value("http://p.test").as_deref(), Some(of_file.value()));
    }
}
