//! Whether an answer came from a proxy's cache.

use crate::wire::REQUEST_ID;
use foxy_http::Headers;

/// Whether the answer came from a cache. The verifying origin repeats the number of its own
/// request; without that number, the proxy's fields decide.
pub fn hit(headers: &Headers, number: u64) -> Option<bool> {
    if let Some(answered) = headers.get_str(REQUEST_ID).and_then(|id| id.parse::<u64>().ok()) {
        return Some(answered != number);
    }
    if let Some(status) = headers.get_str("cache-status") {
        // The last cache is the one nearest to us (RFC 9211 §2).
        let nearest = status.rsplit(',').next().unwrap_or(status);
        return Some(nearest.split(';').any(|part| part.trim() == "hit"));
    }
    headers.get_str("x-cache").map(|cache| cache.trim().to_ascii_uppercase().starts_with("HIT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_is_known_by_the_origins_number_or_by_what_the_proxy_says() {
        let check = |name: &str, value: &str, expected| {
            let headers: Headers = [(name, value.as_bytes())].into_iter().collect();
            assert_eq!(hit(&headers, 7), expected, "{name}: {value}");
        };
        check(REQUEST_ID, "7", Some(false));
        check(REQUEST_ID, "6", Some(true));
        check("Cache-Status", "far; hit, near; fwd=uri-miss; stored", Some(false));
        check("Cache-Status", "near; hit; ttl=5", Some(true));
        check("X-Cache", "HIT from wume1", Some(true));
        check("X-Cache", "MISS from wume1", Some(false));
        check("Age", "5", None);
    }
}
