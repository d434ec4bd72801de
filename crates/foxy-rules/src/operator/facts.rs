//! The facts about a request and a response that the conditions of rules check.

use super::host::normal_host;
use super::readings::{Readings, readings_of};
use crate::fields::Fields;
use foxy_base::WallTime;
use std::borrow::Cow;
use std::net::IpAddr;

/// The parts of a URL in the form that conditions compare.
#[derive(Clone, Debug)]
pub(super) struct UrlFacts<'a> {
    pub(super) scheme: &'a str,
    /// Host of the URL in lower case, without brackets. An address is in its usual form.
    pub(super) host: String,
    /// The host as an address. `None` for a name.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
    /// The path of the URL in normal form, in which conditions compare it.
    pub(super) path: Cow<'a, [u8]>,
    /// The other readings of the path. Empty for most paths.
    other_paths: Vec<Vec<u8>>,
    pub(super) query: Option<&'a [u8]>,
}

impl<'a> UrlFacts<'a> {
    fn new(scheme: &'a str, host: &str, port: u16, path_and_query: &'a [u8]) -> Self {
        let host = normal_host(host);
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        let host = address.map_or(host, |address| address.to_string());
        let mark = path_and_query.iter().position(|&byte| byte == b'?');
        let (path, query) = match mark {
            Some(at) => (&path_and_query[..at], Some(&path_and_query[at + 1..])),
            None => (path_and_query, None),
        };
        let (path, other_paths) = readings_of(path);
        Self { scheme, host, address, port, path, other_paths, query }
    }

    /// Returns whether `is_right` accepts the readings of the path that `readings` demands.
    pub(super) fn has_path(&self, readings: Readings, is_right: impl Fn(&[u8]) -> bool) -> bool {
        match readings {
            Readings::Normal => is_right(&self.path),
            Readings::Any => self.paths().any(is_right),
            Readings::Every => self.paths().all(is_right),
        }
    }

    /// Returns all readings of the path, the normal form first.
    pub(super) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.path).chain(self.other_paths.iter().map(Vec::as_slice))
    }

    /// Returns the URL that regular expressions match: `scheme://host/path?query`, with the port
    /// unless it is the default. For CONNECT, returns `host:port`. `path` is one of the readings of
    /// the path.
    pub(super) fn text(&self, path: &[u8]) -> Vec<u8> {
        let Self { scheme, host, port, .. } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        if path.is_empty() {
            return format!("{host}:{port}").into_bytes();
        }
        let mut text = format!("{scheme}://{host}").into_bytes();
        if *port != default_port(scheme) {
            text.extend_from_slice(format!(":{port}").as_bytes());
        }
        text.extend_from_slice(path);
        if let Some(query) = self.query {
            text.push(b'?');
            text.extend_from_slice(query);
        }
        text
    }

    /// Parses a cache key, `scheme://authority/path?query`. Returns `None` if the text does not
    /// have this form.
    pub(super) fn of_key(key: &'a [u8]) -> Option<Self> {
        let end = key.iter().position(|&byte| byte == b'\n').unwrap_or(key.len());
        let key = &key[..end];
        let colon = key.windows(3).position(|window| window == b"://")?;
        let scheme = std::str::from_utf8(&key[..colon]).ok()?;
        let rest = &key[colon + 3..];
        let (authority, path) = rest.split_at(rest.iter().position(|&byte| byte == b'/')?);
        let authority = std::str::from_utf8(authority).ok()?;
        let default_port = default_port(scheme);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, default_port),
        };
        Some(Self::new(scheme, host, port, path))
    }
}

fn default_port(scheme: &str) -> u16 {
    if scheme == "https" { 443 } else { 80 }
}

/// The facts about a request that the conditions of rules check.
#[derive(Debug)]
pub struct RequestFacts<'a, F: Fields> {
    /// Address of the client. `None` for a Unix socket.
    pub client: Option<IpAddr>,
    /// Name of the user that the client has proved to be. `None` without a proof.
    pub user: Option<&'a str>,
    /// Method of the request.
    pub method: &'a str,
    /// Header fields of the request.
    pub fields: F,
    /// Date and time of the request.
    pub now: WallTime,
    pub(super) url: UrlFacts<'a>,
}

impl<'a, F: Fields> RequestFacts<'a, F> {
    /// Collects the facts. The host is a name or an address. `path_and_query` is empty for CONNECT.
    pub fn new(
        (scheme, host, port): (&'a str, &str, u16),
        path_and_query: &'a [u8],
        method: &'a str,
        fields: F,
        now: WallTime,
    ) -> Self {
        let url = UrlFacts::new(scheme, host, port, path_and_query);
        Self { client: None, user: None, method, fields, now, url }
    }

    /// Sets the user that the client has proved to be.
    #[must_use]
    pub fn of_user(self, user: Option<&'a str>) -> Self {
        Self { user, ..self }
    }

    /// Sets the address of the client.
    #[must_use]
    pub fn from_client(self, client: IpAddr) -> Self {
        Self { client: Some(client.to_canonical()), ..self }
    }
}

/// The facts about a response that are the same for all clients.
#[derive(Debug)]
pub struct SharedFacts<'a> {
    /// Status code of the response.
    pub status: u16,
    /// Media type of the response without parameters, in lower case.
    pub(super) content_type: Option<String>,
    /// Length of the response's body in bytes, if known.
    pub(super) length: Option<u64>,
    pub(super) url: UrlFacts<'a>,
}

impl<'a> SharedFacts<'a> {
    /// Collects the facts about a response with the cache key `key`. `length` is the length of the
    /// whole body in bytes, if known. Returns `None` if `key` has no URL.
    pub fn of(
        key: &'a [u8],
        status: u16,
        response: &(impl Fields + ?Sized),
        length: Option<u64>,
    ) -> Option<Self> {
        let content_type = response.single("content-type").map(|value| {
            let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
            String::from_utf8_lossy(value[..end].trim_ascii()).to_ascii_lowercase()
        });
        Some(Self { status, content_type, length, url: UrlFacts::of_key(key)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_key_is_split_into_the_parts_of_its_url() {
        let cases = [
            ("http://a.test/x?y=1", "http a.test 80 /x y=1"),
            ("https://a.test:8443/", "https a.test 8443 / -"),
            ("http://[2001:db8::1]/x", "http 2001:db8::1 80 /x -"),
            ("http://[2001:db8::1]:81/x\nvary", "http 2001:db8::1 81 /x -"),
        ];
        for (key, expected) in cases {
            let url = UrlFacts::of_key(key.as_bytes()).expect(key);
            let query = url.query.map_or("-".into(), String::from_utf8_lossy);
            let path = String::from_utf8_lossy(&url.path);
            let shown = format!("{} {} {} {path} {query}", url.scheme, url.host, url.port);
            assert_eq!(shown, expected);
            assert_eq!(url.text(&url.path), key.split('\n').next().unwrap_or_default().as_bytes());
        }
        assert!(UrlFacts::of_key(b"a.test/x").is_none());
        for (key, host) in
            [("http://[::ffff:192.0.2.7]/", "192.0.2.7"), ("http://[0:0::1]/", "::1")]
        {
            assert_eq!(UrlFacts::of_key(key.as_bytes()).expect(key).host, host);
        }
    }
}
