//! The tags of a response, by which operators purge it. Tags come from the origin. If a rule of the
//! operator changes their fields, foxy keeps the tags in a field that no client receives.

use foxy_http::Headers;
use std::borrow::Cow;

const SURROGATE_KEY: &str = "surrogate-key";
const CACHE_TAG: &str = "cache-tag";
/// Name of the internal field in which foxy keeps the tags of a stored response.
const KEPT: &str = "foxy-kept-tags";

/// Returns a response's tags: the words in `Surrogate-Key`, the list elements in `Cache-Tag`, and
/// the tags that foxy has kept.
pub(crate) fn names(headers: &Headers) -> impl Iterator<Item = &[u8]> {
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let words = headers.get_all(SURROGATE_KEY).flat_map(move |value| value.split(blank));
    let comma = |byte: &u8| *byte == b',';
    let lists = headers.get_all(CACHE_TAG).chain(headers.get_all(KEPT));
    let listed = lists.flat_map(move |value| value.split(comma)).map(<[u8]>::trim_ascii);
    words.chain(listed).filter(|tag| !tag.is_empty())
}

/// Returns whether a header field contains tags.
pub(crate) fn is_field(name: &str) -> bool {
    [SURROGATE_KEY, CACHE_TAG].iter().any(|field| name.eq_ignore_ascii_case(field))
}

/// Copies the tags of a response to the internal field, because a rule of the operator is about to
/// change the fields with the tags.
pub(crate) fn keep(headers: &mut Headers) {
    let tags = names(headers).collect::<Vec<_>>().join(&b',');
    if !tags.is_empty() {
        headers.set(KEPT, tags);
    }
}

/// Returns `headers` without foxy's internal field for tags, which no client receives.
pub(crate) fn for_client(headers: &Headers) -> Cow<'_, Headers> {
    if !headers.contains(KEPT) {
        return Cow::Borrowed(headers);
    }
    let mut fields = headers.clone();
    fields.remove(KEPT);
    Cow::Owned(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_tags_stay_when_their_fields_go_and_no_client_receives_them() {
        let mut headers = Headers::new();
        headers.append("Surrogate-Key", "one two");
        headers.append("Cache-Tag", "three, FOUR,,");
        headers.append("Surrogate-Key", "five");
        let tags = |headers: &Headers| {
            let tags = names(headers).map(String::from_utf8_lossy);
            tags.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(tags(&headers), "one two five three FOUR");
        keep(&mut headers);
        headers.remove("surrogate-key");
        headers.remove("cache-tag");
        assert_eq!(tags(&headers), "one two five three FOUR");
        let fields = for_client(&headers);
        assert!(fields.is_empty() && matches!(for_client(&fields), Cow::Borrowed(_)));
    }
}
