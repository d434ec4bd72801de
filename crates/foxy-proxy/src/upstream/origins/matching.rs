//! Decides which hosts and paths belong to an origin. The decision depends only on the cache key,
//! so that requests with equal keys go to the same origin.

use foxy_base::HostName;
use std::fmt;
use std::str::FromStr;

/// The hosts that one entry of the operator's list covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedHost {
    /// Every host.
    Every,
    /// Exactly this name or address.
    Exactly(String),
    /// All names that end in this text, which begins with a dot.
    Below(String),
}

/// The entry is neither a name, nor an address, nor `*.NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadServedHost(String);

impl fmt::Display for BadServedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(f, "{text:?} is not a host; write a name such as example.org, *.example.org, or *")
    }
}

impl std::error::Error for BadServedHost {}

impl FromStr for ServedHost {
    type Err = BadServedHost;

    fn from_str(text: &str) -> Result<Self, BadServedHost> {
        if text == "*" {
            return Ok(Self::Every);
        }
        let (is_below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        match HostName::parse(name) {
            Some(HostName::Name(name)) if is_below => {
                Ok(Self::Below(format!(".{}", name.to_ascii_lowercase())))
            }
            Some(HostName::Name(name)) => Ok(Self::Exactly(name.to_ascii_lowercase())),
            Some(HostName::Address(_)) if !is_below => Ok(Self::Exactly(name.to_ascii_lowercase())),
            _ => Err(BadServedHost(text.into())),
        }
    }
}

impl fmt::Display for ServedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => f.write_str("*"),
            Self::Exactly(name) => f.write_str(name),
            Self::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}

impl ServedHost {
    /// Returns true if this entry covers the host, which must be in lower case.
    fn covers(&self, host: &[u8]) -> bool {
        match self {
            Self::Every => true,
            Self::Exactly(name) => host == name.as_bytes(),
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_bytes()),
        }
    }
}

/// The host and the path of the URL in a cache key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyParts<'a> {
    host: &'a [u8],
    path: &'a [u8],
}

impl<'a> KeyParts<'a> {
    pub(crate) fn of(key: &'a [u8]) -> Self {
        let start = key.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
        let rest = &key[start..];
        let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(slash);
        let end = path.iter().position(|byte| *byte == b'?').unwrap_or(path.len());
        let host = match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
            Some(at) if authority[at] == b':' => &authority[..at],
            _ => authority,
        };
        Self { host: host.strip_suffix(b".").unwrap_or(host), path: &path[..end] }
    }

    pub(crate) fn is_of_host(&self, hosts: &[ServedHost]) -> bool {
        hosts.is_empty() || hosts.iter().any(|host| host.covers(self.host))
    }

    pub(crate) fn is_below(&self, path: &str) -> bool {
        self.path.starts_with(path.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_match_by_name_alone() {
        let cases = [
            ("shop.example", "http://shop.example/", true),
            ("Shop.Example", "https://shop.example:8443/", true),
            ("shop.example", "http://shop.example./", true),
            ("shop.example", "http://a.shop.example/", false),
            ("shop.example", "http://myshop.example/", false),
            ("*.shop.example", "http://a.b.shop.example/", true),
            ("*.shop.example", "http://shop.example/", false),
            ("*.shop.example", "http://.shop.example/", false),
            ("[::1]", "http://[::1]:81/", true),
            ("127.0.0.1", "http://127.0.0.1:81/", true),
            ("*", "http:///", true),
            ("shop.example", "http:///shop.example", false),
        ];
        for (host, key, expected) in cases {
            let host: ServedHost = host.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(KeyParts::of(key.as_bytes()).is_of_host(&[host]), expected, "{key}");
        }
    }

    #[test]
    fn paths_match_by_prefix_without_the_query() {
        for (path, key, expected) in [
            ("/api/", "http://a/api/x", true),
            ("/api/", "http://a/api", false),
            ("/api", "http://a/apix", true),
            ("/api/", "http://a/?/api/", false),
            ("", "http://a/", true),
            ("/API/", "http://a/api/", false),
        ] {
            assert_eq!(KeyParts::of(key.as_bytes()).is_below(path), expected, "{path} {key}");
        }
    }

    #[test]
    fn other_texts_are_no_hosts() {
        for text in ["", "*.", "a b", "http://a", "a:80", "*a.test", ".a.test", "a/b"] {
            assert!(text.parse::<ServedHost>().is_err(), "{text}");
        }
    }
}
