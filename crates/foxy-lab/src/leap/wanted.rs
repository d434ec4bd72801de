//! The set of URLs that clients of the Multiplier (LEAP's request copier) have requested. If a
//! proxy requests another URL, the Collector (common parent proxy) counts a prefetch. The set has a
//! size limit. Once the set is full, no request counts as a prefetch.

use foxy_http::Authority;
use percent_encoding::percent_decode_str;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// The largest number of URLs in the set. The set then uses about 16 MiB.
const MOST: usize = 1 << 20;

/// The hashes of the URLs that clients have requested.
#[derive(Debug, Default)]
pub struct Wanted(Mutex<HashSet<u64>>);

impl Wanted {
    /// Adds the URL of a client's request.
    pub fn note(&self, authority: &str, path: &str) {
        let mut urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if urls.len() < MOST {
            urls.insert(digest(authority, path));
        }
    }

    /// Whether a client may have requested this URL. The comparison ignores
    /// percent-encoding and the case of the host, because proxies may change both.
    pub fn may_be(&self, authority: &str, path: &str) -> bool {
        let urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        urls.len() >= MOST || urls.contains(&digest(authority, path))
    }
}

fn digest(authority: &str, path: &str) -> u64 {
    let mut hash = Xxh3::new();
    if let Some(found) = Authority::parse(authority.as_bytes()) {
        hash.update(found.host.to_ascii_lowercase().as_bytes());
        let port = found.port.filter(|port| ![80, 443].contains(port)).unwrap_or_default();
        hash.update(&port.to_le_bytes());
    }
    percent_decode_str(path).for_each(|byte| hash.update(&[byte]));
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_known_however_a_proxy_writes_it_and_another_is_not() {
        let wanted = Wanted::default();
        wanted.note("A.test:80", "/~a/b%20c?d=1");
        for (authority, path) in [("a.test", "/~a/b%20c?d=1"), ("a.TEST", "/%7ea/b%20c?d=1")] {
            assert!(wanted.may_be(authority, path), "{authority}{path}");
        }
        for (authority, path) in
            [("a.test", "/~a/b%20c"), ("b.test", "/~a/b%20c?d=1"), ("a.test:81", "/~a/b%20c?d=1")]
        {
            assert!(!wanted.may_be(authority, path), "{authority}{path}");
        }
    }

    #[test]
    fn beyond_what_is_held_nobody_is_accused() {
        let wanted = Wanted::default();
        (0..MOST).for_each(|number| wanted.note("a", &number.to_string()));
        assert!(wanted.may_be("a", "never asked for"));
    }
}
