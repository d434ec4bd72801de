//! Decides which stored responses an unsafe request invalidates (RFC 9111 §4.4).

use crate::fields::Fields;

/// Returns whether a method is safe (RFC 9110 §9.2.1). Unknown methods count as unsafe.
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// Returns whether the response to a request invalidates the stored responses for its URL. This
/// needs an unsafe method and a status from 200 to 399.
pub fn invalidates(method: &str, status: u16) -> bool {
    !is_safe(method) && (200..400).contains(&status)
}

/// Returns the cache keys of the URLs in Location and Content-Location, which the response also
/// invalidates. Ignores URLs of other origins: otherwise an origin could remove content of others
/// from the cache. `base` is the cache key of the request.
pub fn also_invalidated(response: &(impl Fields + ?Sized), base: &str) -> Vec<String> {
    let fields = ["location", "content-location"];
    let texts = fields
        .iter()
        .filter_map(|field| response.single(field))
        .filter_map(|text| std::str::from_utf8(text).ok());
    texts.filter_map(|text| resolve(base, text.trim())).collect()
}

/// Returns whether Content-Location names the requested URL (RFC 9110 §8.7), whose cache key is
/// `base`.
pub(crate) fn content_location_is_target(response: &(impl Fields + ?Sized), base: &str) -> bool {
    let text = response.single("content-location").and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| resolve(base, text.trim())).is_some_and(|found| found == base)
}

/// Resolves a URL reference, which may be relative, against the cache key `base`. Returns `None`
/// for a URL of another origin.
fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference = reference.split('#').next()?;
    let origin_end = base.find("://").map(|at| at + 3)?;
    let path_start = base[origin_end..].find('/').map(|at| at + origin_end)?;
    let origin = &base[..path_start];
    if let Some((scheme, rest)) =
        reference.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
    {
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let key = crate::key::cache_key(scheme, authority.as_bytes(), path.as_bytes());
        let key = String::from_utf8(key).ok()?;
        return key.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/')).then_some(key);
    }
    if reference.starts_with("//") {
        return resolve(base, &format!("{}:{reference}", base.split(':').next()?));
    }
    if reference.is_empty() {
        return None;
    }
    if reference.starts_with('/') {
        return Some(format!("{origin}{}", without_dots(reference)));
    }
    let path = base[path_start..].split('?').next()?;
    if reference.starts_with('?') {
        return Some(format!("{origin}{path}{reference}"));
    }
    let folder = &path[..=path.rfind('/')?];
    Some(format!("{origin}{}", without_dots(&format!("{folder}{reference}"))))
}

/// Returns whether `text` is a URI scheme (RFC 3986 §3.1). If it is not, a `://` after it belongs
/// to a path.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Removes the path segments `.` and `..` (RFC 3986 §5.2.4).
fn without_dots(text: &str) -> String {
    let (path, query) =
        text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (index, segment) in segments.iter().enumerate() {
        let last = index + 1 == segments.len();
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_error_answers_to_unsafe_methods_invalidate() {
        for (method, status) in [("POST", 200), ("PUT", 204), ("DELETE", 303), ("FROBNICATE", 200)]
        {
            assert!(invalidates(method, status), "{method} {status}");
        }
        for (method, status) in
            [("GET", 200), ("HEAD", 200), ("OPTIONS", 200), ("POST", 404), ("POST", 500)]
        {
            assert!(!invalidates(method, status), "{method} {status}");
        }
    }

    #[test]
    fn a_content_location_may_name_the_target_in_any_form() {
        let base = "http://a.test/x/y?q";
        for location in ["http://a.test/x/y?q", "/x/y?q", "y?q", "?q", "//A.test:80/x/y?q#part"] {
            assert!(
                content_location_is_target(&[("Content-Location", location)][..], base),
                "{location}"
            );
        }
        for location in ["", "y", "/x/y?r", "http://b.test/x/y?q", "https://a.test/x/y?q"] {
            assert!(
                !content_location_is_target(&[("Content-Location", location)][..], base),
                "{location}"
            );
        }
        assert!(!content_location_is_target(
            &[("Content-Location", "y?q"), ("Content-Location", "y?q")][..],
            base
        ));
    }

    #[test]
    fn only_uris_of_the_same_origin_are_invalidated_too() {
        let base = "http://a.test/x/y?q";
        let cases = [
            ("/z", Some("http://a.test/z")),
            ("z", Some("http://a.test/x/z")),
            ("../z?r", Some("http://a.test/z?r")),
            ("?r", Some("http://a.test/x/y?r")),
            ("http://A.test:80/z#part", Some("http://a.test/z")),
            ("//a.test/z", Some("http://a.test/z")),
            ("http://a.test?r", Some("http://a.test/?r")),
            ("/z?next=http://b.test/", Some("http://a.test/z?next=http://b.test/")),
            ("http://a.test@b.test/z", None),
            ("http://a.test:81/z", None),
            ("http://b.test/z", None),
            ("https://a.test/z", None),
            ("http://a.test.evil/z", None),
            ("//b.test/z", None),
        ];
        for (location, expected) in cases {
            let found = also_invalidated(&[("Location", location)][..], base);
            assert_eq!(found.first().map(String::as_str), expected, "{location}");
        }
    }
}
