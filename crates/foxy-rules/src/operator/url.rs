//! Regular expressions for whole URLs. A URL's path is in normal form, so a different spelling does
//! not avoid a rule.

use regex::bytes::{Regex, RegexBuilder};
use std::str::FromStr;

/// Largest size in bytes of a compiled expression.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A regular expression that must match a part of the URL. Classes such as `\w` match ASCII
/// characters only.
#[derive(Clone, Debug)]
pub struct UrlPattern(Regex);

impl UrlPattern {
    /// Returns whether the expression matches a part of the URL `text`.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

impl FromStr for UrlPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        builder.unicode(false).dot_matches_new_line(true).size_limit(MAX_REGEX_BYTES);
        builder.build().map(Self).map_err(|error| unusable(text, &error))
    }
}

/// Says in one line why a regular expression is not usable.
pub(super) fn unusable(text: &str, error: &regex::Error) -> String {
    let reason = error.to_string();
    let last = reason.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    format!("`{text}` is not a usable regular expression: {reason}")
}

impl PartialEq for UrlPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for UrlPattern {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::condition::Matching;
    use crate::operator::{Conditions, Missed, RequestFacts};
    use foxy_base::WallTime;

    #[test]
    fn an_expression_sees_the_normal_form_of_the_url() {
        let fields: &[(&str, &str)] = &[];
        let check = |pattern: &str, (scheme, host, port), path: &str| {
            let urls = vec![pattern.parse().expect(pattern)];
            let url = (scheme, host, port);
            let facts =
                RequestFacts::new(url, path.as_bytes(), "GET", fields, WallTime::from_seconds(0));
            let when = Conditions { urls, ..Conditions::default() };
            when.check_request(&facts, Matching::condition(None))
        };
        let site = ("http", "A.test", 80);
        assert_eq!(check("(?i)/CGI-bin/|[?]", site, "/%63gi-bin/x"), Ok(()));
        assert_eq!(check("(?i)/CGI-bin/|[?]", site, "/x?"), Ok(()));
        assert_eq!(check("(?i)/CGI-bin/|[?]", site, "/x"), Err(Missed::Url));
        assert_eq!(check("^http://a.test/$", site, "/"), Ok(()));
        assert_eq!(check("^http://a.test:81/", ("http", "a.test", 81), "/"), Ok(()));
        assert_eq!(check("^a.test:443$", ("https", "a.test", 443), ""), Ok(()), "CONNECT");
        assert!("(".parse::<UrlPattern>().is_err());
        assert!("((a{1,999}){1,999}){1,999}".parse::<UrlPattern>().is_err());
    }
}
