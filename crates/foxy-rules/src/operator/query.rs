//! Chooses the part of a query that belongs to the cache key. The origin still receives the whole
//! query.

use super::effect::Effects;
use super::path::decoded;
use super::pattern::Pattern;

/// The query parameters that belong to the cache key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueryKey<'r> {
    /// Patterns for names of parameters that the key leaves out.
    pub(super) ignore: &'r [Pattern],
    /// If present, patterns for the names of the only parameters that the key keeps.
    pub(super) keep: Option<&'r [Pattern]>,
    /// Whether the key sorts the parameters by name and value.
    pub(super) sort: bool,
}

impl<'r> QueryKey<'r> {
    /// Returns whether a rule with the effects `then` changes the query in the cache key.
    pub(super) const fn is_in(then: &Effects) -> bool {
        then.query_ignore.is_some() || then.query_keep.is_some() || then.query_sort.is_some()
    }

    /// Returns how a rule with the effects `then` changes the query in the cache key.
    pub(super) fn of(then: &'r Effects) -> Self {
        Self::of_first(std::iter::once(then))
    }

    /// Returns how rules with these effects change the query in the cache key. For each effect, the
    /// first rule that has the effect decides.
    pub(super) fn of_first(rules: impl Iterator<Item = &'r Effects>) -> Self {
        let (mut ignore, mut keep, mut sort) = (None, None, None);
        for then in rules {
            ignore = ignore.or(then.query_ignore.as_deref());
            keep = keep.or(then.query_keep.as_deref());
            sort = sort.or(then.query_sort);
        }
        Self { ignore: ignore.unwrap_or_default(), keep, sort: sort.unwrap_or(false) }
    }

    /// Returns the path and query for the cache key.
    pub(super) fn apply(self, path_and_query: &[u8]) -> Vec<u8> {
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

    /// Returns whether the key keeps a parameter, written `NAME` or `NAME=VALUE`. Origins decode
    /// names: `%69d` is `id`. The key keeps a parameter if either spelling of its name demands
    /// this, because a parameter that the key lacks could change the response for others. For the
    /// same reason, the key keeps a parameter if one of its parts demands this: some origins split
    /// parameters at `;`, too.
    pub(super) fn keeps(self, parameter: &[u8]) -> bool {
        parameter.split(|&byte| byte == b';').any(|part| self.keeps_part(part))
    }

    fn keeps_part(self, parameter: &[u8]) -> bool {
        let name = parameter.split(|&byte| byte == b'=').next().unwrap_or(parameter);
        let is_in = |patterns: &[Pattern], name: &[u8]| {
            patterns.iter().any(|pattern| pattern.matches(name))
        };
        let decoded = decoded(name);
        let keeps = |keep: &[Pattern]| is_in(keep, name) || is_in(keep, &decoded);
        !(is_in(self.ignore, name) && is_in(self.ignore, &decoded)) && self.keep.is_none_or(keeps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| text.parse().expect("a pattern")).collect()
    }

    fn applied(key: QueryKey<'_>, path: &str) -> String {
        String::from_utf8(key.apply(path.as_bytes())).expect("ASCII in, ASCII out")
    }

    #[test]
    fn ignored_parameters_are_left_out() {
        let ignore = patterns(&["utm_*", "sig"]);
        let key = QueryKey { ignore: &ignore, ..QueryKey::default() };
        assert_eq!(applied(key, "/x?sig=1&a=2&utm_source=3&b"), "/x?a=2&b");
        assert_eq!(applied(key, "/x?sig=1"), "/x");
        assert_eq!(applied(key, "/x"), "/x");
        // CVE-2021-23336: the origin sees `a` twice.
        assert_eq!(applied(key, "/x?a=1&utm_x=1;a=2"), "/x?a=1&utm_x=1;a=2");
        assert_eq!(applied(key, "/x?a=1&utm_x=1;sig=2"), "/x?a=1");
    }

    #[test]
    fn kept_parameters_are_the_only_ones_and_sorting_ends_their_order() {
        let keep = patterns(&["id", "page"]);
        let key = QueryKey { keep: Some(&keep), sort: true, ..QueryKey::default() };
        assert_eq!(applied(key, "/x?page=2&t=9&id=1"), "/x?id=1&page=2");
        assert_eq!(applied(key, "/x?%69d=1&i%64=2&t=9"), "/x?%69d=1&i%64=2");
        assert_eq!(applied(key, "/x?t=9;id=3&t=8"), "/x?t=9;id=3");
        let nothing = QueryKey { keep: Some(&[]), ..QueryKey::default() };
        assert_eq!(applied(nothing, "/x?a=1"), "/x");
    }
}
