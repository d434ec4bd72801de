//! Converts the regular expressions of nginx (PCRE) to conditions of rules. nginx compares the
//! decoded path or the host of a request.

use super::super::condition_text::{SITE, branches, case_mark, first_literal, literal};
use foxy_rules::operator::UrlPattern;
use std::iter::Peekable;
use std::str::Chars;

/// The conditions of rules that replace one of nginx's regular expressions for paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathExpression {
    /// Patterns that match exactly the paths that nginx's expression matches. `None` if there are
    /// no such patterns.
    pub patterns: Option<Vec<String>>,
    /// A regular expression for URLs. It matches at least the URLs whose paths nginx's expression
    /// matches. It may also match other URLs because of their query.
    pub at_least: String,
    /// A regular expression for URLs. It matches at most the URLs whose paths nginx's expression
    /// matches.
    pub at_most: String,
}

const MOST_PATTERNS: usize = 24;

impl PathExpression {
    /// Converts the regular expression of a location. Returns `None` if foxy has no equal
    /// expression.
    pub fn read(expression: &str, ignore_case: bool) -> Option<Self> {
        let flags = case_mark(ignore_case);
        let with = |may_cross: bool| {
            let branches = branches(expression, true)?;
            let branches = branches.iter().map(|branch| url(branch, may_cross));
            let text = format!("{flags}{}", branches.collect::<Option<Vec<_>>>()?.join("|"));
            text.parse::<UrlPattern>().ok().map(|_| text)
        };
        let patterns = patterns(expression, ignore_case);
        Some(Self { patterns, at_least: with(true)?, at_most: with(false)? })
    }
}

/// Converts the regular expression of a `server_name` to a regular expression for URLs that matches
/// at least the same hosts.
pub fn host(expression: &str) -> Option<String> {
    let branches = branches(expression, true)?;
    let branches = branches.iter().map(|branch| {
        let (start, rest) = match branch.strip_prefix('^') {
            Some(rest) => ("", rest),
            None => ("[^/]*", branch.as_str()),
        };
        let (rest, end) = match rest.strip_suffix('$') {
            Some(rest) if !rest.ends_with('\\') => (rest, "(?::[0-9]+)?/"),
            _ => (rest, ""),
        };
        format!("^[a-z]+://{start}(?:{rest}){end}")
    });
    let text = format!("(?i){}", branches.collect::<Vec<_>>().join("|"));
    text.parse::<UrlPattern>().ok().map(|_| text)
}

/// Converts a branch of a regular expression for paths to a regular expression for URLs. If
/// `may_cross` is true, a match may reach into the query.
fn url(branch: &str, may_cross: bool) -> Option<String> {
    let any = if may_cross { ".*" } else { "[^?]*" };
    let (rest, anchored) = match branch.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (branch, false),
    };
    let body = body(rest, may_cross)?;
    Some(match (anchored, first_literal(rest).map(|first| first == '/')) {
        (true, _) => format!("{SITE}(?:{body})"),
        (false, Some(true)) => format!("{SITE}(?:/{any})?(?:{body})"),
        (false, Some(false)) => format!("{SITE}/{any}(?:{body})"),
        (false, None) if may_cross => format!("{SITE}(?:/{any})?(?:{body})"),
        (false, None) => format!("{SITE}/{any}(?:{body})"),
    })
}

fn body(text: &str, may_cross: bool) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match (chars.next()?, may_cross || in_class) {
                // Only these escaped letters are converted: others, such as `\A` or `\Z`, may be
                // anchors.
                (c @ ('d' | 'w' | 's' | 'b'), _) => out.extend(['\\', c]),
                (c @ ('D' | 'W' | 'S'), true) => out.extend(['\\', c]),
                (c @ ('D' | 'W' | 'S'), false) => {
                    out.push_str(&format!("[^?\\{}]", c.to_ascii_lowercase()));
                }
                (c, _) if c.is_ascii_punctuation() => out.extend(['\\', c]),
                _ => return None,
            },
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if text_starts(&chars, '^') {
                    chars.next();
                    out.push_str(if may_cross { "^" } else { "^?" });
                }
                if text_starts(&chars, ']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // In foxy's expressions, `--` in a class subtracts another class.
            '-' if in_class && text_starts(&chars, '-') => return None,
            c @ ('[' | '&' | '~' | '^') if in_class => out.extend(['\\', c]),
            c if in_class => out.push(c),
            // Flags such as `(?i)` apply only up to the end of a branch.
            '(' if has_flags(&chars) => return None,
            '.' if !may_cross => out.push_str("[^?]"),
            '$' => out.push_str("(?:\n?(?:[?]|\\z))"),
            '^' => return None,
            c => out.push(c),
        }
    }
    Some(out.replace('\n', "\\n"))
}

/// Returns whether a group begins with flags, and not with its name or `?:`.
fn has_flags(chars: &Chars<'_>) -> bool {
    let rest = chars.as_str().strip_prefix('?');
    rest.is_some_and(|rest| !rest.starts_with([':', '<', 'P']))
}

fn text_starts(chars: &Chars<'_>, c: char) -> bool {
    chars.as_str().starts_with(c)
}

/// The first part of a pattern under construction. `ended` is true after `$`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Beginning {
    text: String,
    ended: bool,
}

/// Returns patterns that together match exactly the paths that the regular expression matches. Can
/// convert literal text, `.`, `.*`, `.+`, `?` and groups.
fn patterns(expression: &str, ignore_case: bool) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for branch in branches(expression, true)? {
        let (rest, start) = match branch.strip_prefix('^') {
            Some(rest) => (rest, ""),
            None => (branch.as_str(), "*"),
        };
        let start = Beginning { text: start.to_owned(), ended: false };
        let mut chars = rest.chars().peekable();
        let ends = sequence(&mut chars, vec![start])?;
        if chars.next().is_some() {
            return None;
        }
        all.extend(ends.into_iter().map(|end| end.text + if end.ended { "" } else { "*" }));
    }
    for pattern in &mut all {
        while pattern.contains("**") {
            *pattern = pattern.replace("**", "*");
        }
    }
    let is_path = |pattern: &String| pattern.starts_with(['/', '*']) && !pattern.contains('%');
    let is_sound = all.len() <= MOST_PATTERNS && all.iter().all(is_path);
    let mark = case_mark(ignore_case);
    is_sound.then(|| all.into_iter().map(|pattern| format!("{mark}{pattern}")).collect())
}

/// Reads the regular expression up to its end, or to a `)` or `|`. Returns each partial pattern of
/// `open`, extended by a pattern for this text.
fn sequence(chars: &mut Peekable<Chars<'_>>, mut open: Vec<Beginning>) -> Option<Vec<Beginning>> {
    while let Some(&c) = chars.peek() {
        if matches!(c, ')' | '|') {
            break;
        }
        chars.next();
        let before = open.clone();
        let is_dot = c == '.';
        open = match c {
            '$' => {
                open.iter_mut().for_each(|beginning| beginning.ended = true);
                open
            }
            '(' => group(chars, &open)?,
            '.' => continued(open, "?")?,
            '\\' => {
                let c = chars.next().filter(char::is_ascii_punctuation)?;
                continued(open, &literal(c))?
            }
            '[' | ']' | '*' | '+' | '?' | '{' | '}' | '^' => return None,
            c => continued(open, &literal(c))?,
        };
        match chars.peek() {
            Some('*') if is_dot => {
                chars.next();
                open = continued(before, "*")?;
            }
            Some('+') if is_dot => {
                chars.next();
                open = continued(open, "*")?;
            }
            Some('?') => {
                chars.next();
                open.extend(before);
            }
            _ => {}
        }
        if open.len() > MOST_PATTERNS {
            return None;
        }
    }
    Some(open)
}

/// Reads a group of the regular expression, after its `(`. Returns each partial pattern of `open`,
/// extended by each alternative of the group.
fn group(chars: &mut Peekable<Chars<'_>>, open: &[Beginning]) -> Option<Vec<Beginning>> {
    if chars.next_if_eq(&'?').is_some() {
        chars.next_if_eq(&':')?;
    }
    let mut all = Vec::new();
    loop {
        all.extend(sequence(chars, open.to_vec())?);
        match chars.next()? {
            '|' => {}
            _ => return Some(all),
        }
    }
}

/// Appends `text` to each partial pattern. Returns `None` if a pattern has already ended with `$`.
fn continued(mut open: Vec<Beginning>, text: &str) -> Option<Vec<Beginning>> {
    for beginning in &mut open {
        if beginning.ended {
            return None;
        }
        beginning.text.push_str(text);
    }
    Some(open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::WallTime;
    use foxy_rules::operator::{Access, Conditions, Effects, OperatorRule, OperatorRules};
    use foxy_rules::operator::{RequestFacts, path_pattern};

    #[test]
    fn a_simple_expression_becomes_patterns() {
        for (expression, ignore_case, expected) in [
            ("^/(account|cart)", false, Some("/account* /cart*")),
            (r"\.(jpe?g|css)$", false, Some("*.jpeg *.jpg *.css")),
            (r"\.php$", true, Some("(?i)*.php")),
            (r"/\.git", false, Some("*/.git*")),
            (r"^/a.*b$", false, Some("/a*b")),
            (r"\.php(/|$)", false, Some("*.php/* *.php")),
            ("^/v[0-9]", false, None),
            ("^/a{2}", false, None),
        ] {
            let found = patterns(expression, ignore_case).map(|all| all.join(" "));
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
    }

    /// Returns whether a rule with this condition refuses a GET of `url`.
    fn refuses(when: Conditions, host: &str, path: &str) -> bool {
        let then = Effects { access: Some(Access::Deny { message: None }), ..Effects::default() };
        let rule = OperatorRule { name: "a".into(), when, unless: Vec::new(), then };
        let rules = OperatorRules::new(vec![rule]).expect("sound");
        let fields: &[(&str, &str)] = &[];
        let now = WallTime::from_seconds(0);
        let facts = RequestFacts::new(("http", host, 80), path.as_bytes(), "GET", fields, now);
        rules.decide(&facts).access().is_some()
    }

    #[test]
    fn an_expression_for_urls_errs_on_the_side_of_its_purpose() {
        let url = |text: &str| Conditions {
            urls: vec![text.parse().expect("sound")],
            ..Conditions::default()
        };
        for (expression, path, at_least, at_most) in [
            ("^/v[0-9]+/x$", "/v12/x?y", true, true),
            ("^/v[0-9]+/x$", "/v12/xy", false, false),
            ("[0-9]\\.bak$", "/a1.bak", true, true),
            ("[0-9]\\.bak$", "/a?f=1.bak", true, false),
            ("[0-9]\\.bak$", "/%3F1.bak", true, false),
            ("v1", "/x", false, false),
            ("^/a|[0-9]b", "/x/1b", true, true),
        ] {
            let found = PathExpression::read(expression, false).expect(expression);
            let matches = |text: &str| refuses(url(text), "v1.test", path);
            let shown = (matches(&found.at_least), matches(&found.at_most));
            assert_eq!(shown, (at_least, at_most), "{expression} {path}");
        }
        for lost in [r"/\.(?!well-known)", r"(a)\1", "(", r"\Aa"] {
            assert_eq!(PathExpression::read(lost, false), None, "{lost}");
        }
    }

    #[test]
    fn an_expression_with_another_meaning_is_refused() {
        for expression in ["(?i)/v[0-9]a|/v[0-9]b", "^/[+--/]x", "^/(?=a)[0-9]"] {
            assert_eq!(PathExpression::read(expression, false), None, "{expression}");
        }
        assert!(PathExpression::read("^/(?<name>[a-z]+)/(?:x|y)", false).is_some());
    }

    #[test]
    fn an_expression_for_hosts_matches_their_urls() {
        for (expression, host_name, expected) in [
            (r"^admin\.", "admin.test", true),
            (r"^admin\.", "www.admin.test", false),
            (r"^(www\.)?a\.test$", "a.test", true),
            (r"^(www\.)?a\.test$", "a.test.b", false),
        ] {
            let url = host(expression).expect(expression).parse().expect("sound");
            let when = Conditions { urls: vec![url], ..Conditions::default() };
            assert_eq!(refuses(when, host_name, "/x"), expected, "{expression} {host_name}");
        }
    }

    #[test]
    fn patterns_are_patterns_of_paths() {
        let found = patterns(r"^/a\?|\.x", true).expect("patterns");
        assert!(found.iter().all(|pattern| path_pattern(pattern).is_ok()), "{found:?}");
    }
}
