//! The cache key (RFC 9111 §2): scheme and authority are always in it, path and query as they came,
//! byte for byte.

/// The key of a target: `scheme://authority/path?query`, scheme and host in lower case, the
/// scheme's own port left out. No two targets that an origin could tell apart share a key.
pub fn cache_key(scheme: &str, authority: &[u8], path_and_query: &[u8]) -> Vec<u8> {
    let scheme = scheme.to_ascii_lowercase();
    let authority = authority.to_ascii_lowercase();
    let default_port: &[u8] = if scheme == "https" { b":443" } else { b":80" };
    let host = authority.strip_suffix(default_port).unwrap_or(&authority);
    let host = host.strip_suffix(b":").unwrap_or(host);
    let mut key = Vec::with_capacity(scheme.len() + 3 + host.len() + path_and_query.len().max(1));
    key.extend_from_slice(scheme.as_bytes());
    key.extend_from_slice(b"://");
    key.extend_from_slice(host);
    if !path_and_query.starts_with(b"/") {
        key.push(b'/');
    }
    key.extend_from_slice(path_and_query);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scheme: &str, authority: &str, path: &str) -> String {
        String::from_utf8(cache_key(scheme, authority.as_bytes(), path.as_bytes()))
            .expect("ASCII in, ASCII out")
    }

    #[test]
    fn case_and_default_ports_do_not_matter_and_everything_else_does() {
        assert_eq!(key("HTTP", "A.Test:80", "/x"), "http://a.test/x");
        assert_eq!(key("http", "a.test", ""), "http://a.test/");
        assert_eq!(key("http", "a.test", "?q"), "http://a.test/?q");
        assert_eq!(key("https", "a.test:443", "/X?Y"), "https://a.test/X?Y");
        assert_eq!(key("http", "a.test:443", "/"), "http://a.test:443/");
        assert_eq!(key("http", "[::1]:80", "/"), "http://[::1]/");
        assert_ne!(key("http", "a.test", "/x"), key("https", "a.test", "/x"));
        assert_ne!(key("http", "a.test", "/%61"), key("http", "a.test", "/a"));
    }
}
