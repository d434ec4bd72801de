//! Chooses the part of a query that belongs to the cache key. The origin still receives the whole
//! query.

use super::pattern::Pattern;

/// The query parameters that belong to the cache key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryKey {
    /// Patterns for names of parameters that the key leaves out.
    pub ignore: Vec<Pattern>,
    /// If present, patterns for the names of the only parameters that the key keeps.
    pub keep: Option<Vec<Pattern>>,
    /// Whether the key sorts the parameters by name and value.
    pub sort: bool,
}

impl QueryKey {
    /// Returns the path and query for the cache key.
    pub fn apply(&self, path_and_query: &[u8]) -> Vec<u8> {
        let Some(mark) = path_and_query.iter().position(|&byte| byte == b'?') else {
            return path_and_query.to_vec();
        };
        let (path, query) = (&path_and_query[..mark], &path_and_query[mark + 1..]);
        let parameters = query.split(|&byte| byte == b'&');
        let mut kept: Vec<&[u8]> = parameters.filter(|parameter| self.keeps(parameter)).collect();
        if self.sort {
            kept.sort_unstable();
        }
        let mut key = path.to_vec();
        if !kept.is_empty() {
            key.push(b'?');
            key.extend_from_slice(&kept.join(&b'&'));
        }
        key
    }

    /// Returns whether the key keeps a parameter, written `NAME` or `NAME=VALUE`.
    pub(super) fn keeps(&self, parameter: &[u8]) -> bool {
        let name = parameter.split(|&byte| byte == b'=').next().unwrap_or(parameter);
        let is_in = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        !is_in(&self.ignore) && self.keep.as_deref().is_none_or(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().expect("a pattern")).collect()
    }

    fn applied(key: &QueryKey, path: &str) -> String {
        String::from_utf8(key.apply(path.as_bytes())).expect("ASCII in, ASCII out")
    }

    #[test]
    fn ignored_parameters_are_left_out() {
        let key = QueryKey { ignore: patterns(&["utm_*", "sig"]), ..QueryKey::default() };
        assert_eq!(applied(&key, "/x?sig=1&a=2&utm_source=3&b"), "/x?a=2&b");
        assert_eq!(applied(&key, "/x?sig=1"), "/x");
        assert_eq!(applied(&key, "/x"), "/x");
    }

    #[test]
    fn kept_parameters_are_the_only_ones_and_sorting_ends_their_order() {
        let keep = Some(patterns(&["id", "page"]));
        let key = QueryKey { keep, sort: true, ..QueryKey::default() };
        assert_eq!(applied(&key, "/x?page=2&t=9&id=1"), "/x?id=1&page=2");
        let nothing = QueryKey { keep: Some(Vec::new()), ..QueryKey::default() };
        assert_eq!(applied(&nothing, "/x?a=1"), "/x");
    }
}
