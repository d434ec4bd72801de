//! Translates Squid's regular expressions (POSIX, extended) into foxy's syntax of regular
//! expressions.

use super::super::condition_text::{
    SITE, branches, case_mark, first_literal, literal, literal_expression,
};
use foxy_rules::operator::UrlPattern;
use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// The reason why foxy cannot use one of Squid's regular expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegexFlaw {
    /// A backslash stands before a letter or digit, or at the end. It would mean something else in
    /// foxy.
    Escape,
    /// A form that POSIX does not have or that would mean something else in foxy: a lazy
    /// quantifier, `{,3}`, `(?…)`, or `^` in the middle.
    Form,
    /// The expression has `%` or `../`. foxy decodes paths before it compares them, so other URLs
    /// would match.
    Encoded,
    /// The expression might match the scheme or host in foxy, because foxy's rules match the whole
    /// URL.
    Start,
    /// The crate for regular expressions refuses the expression.
    Refused,
}

impl fmt::Display for RegexFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Escape => "a backslash before a letter or digit means something else in foxy",
            Self::Form => "this form of regular expression means something else in foxy",
            Self::Encoded => "foxy compares paths after it decoded % and removed dot segments",
            Self::Start => "the expression may match outside of the path",
            Self::Refused => "the regular expression is too large or not valid",
        })
    }
}

/// Translates an expression that Squid matches against the whole URL.
pub fn url_regex(posix: &str, ignore_case: bool) -> Result<String, RegexFlaw> {
    if posix.contains('%') || posix.contains(r"\.\./") {
        return Err(RegexFlaw::Encoded);
    }
    let mut out = case_mark(ignore_case).to_owned();
    out.push_str(&translated(posix)?);
    out.parse::<UrlPattern>().map_err(|_| RegexFlaw::Refused)?;
    Ok(out)
}

/// Translates an expression that Squid matches against path and query. The result matches the same
/// requests by their whole URL.
pub fn path_regex(posix: &str, ignore_case: bool) -> Result<String, RegexFlaw> {
    let flags = case_mark(ignore_case);
    // Translates the whole expression first: otherwise an unbalanced `)` in a branch could close a
    // group of foxy's expression.
    url_regex(posix, ignore_case)?;
    let branches = branches(posix, false).ok_or(RegexFlaw::Refused)?;
    let branches = branches.iter().map(|branch| {
        let (plain, anchored) = (translated(branch)?, branch.starts_with('^'));
        match (anchored, first_literal(branch.trim_start_matches('^'))) {
            (true, Some('/')) => Ok(format!("{SITE}(?:{})", &plain[1..])),
            (false, Some('/')) => Ok(format!("{SITE}(?:/.*)?(?:{plain})")),
            (false, Some(_)) => Ok(format!("{SITE}/.*(?:{plain})")),
            _ => Err(RegexFlaw::Start),
        }
    });
    let branches: Vec<String> = branches.collect::<Result<_, _>>()?;
    let out = format!("{flags}{}", branches.join("|"));
    out.parse::<UrlPattern>().map_err(|_| RegexFlaw::Refused)?;
    Ok(out)
}

/// Translates an expression that Squid matches against the host. The result matches the same
/// requests by their whole URL. Returns `None` unless the expression is a literal part of a host
/// name, with or without `^` and `$`.
pub fn host_regex(posix: &str, ignore_case: bool) -> Option<String> {
    let text = posix.strip_prefix('^').unwrap_or(posix);
    let start = if text.len() < posix.len() { "" } else { "[^/:]*" };
    let (text, end) = match text.strip_suffix('$').filter(|text| !text.ends_with('\\')) {
        Some(text) => (text, "(?::[0-9]+)?(?:/|$)"),
        None => (text, ""),
    };
    let text = plain_text(text)?;
    let is_part = text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    let mark = case_mark(ignore_case);
    is_part.then(|| format!("{mark}^(?:[a-z]+://)?{start}{}{end}", literal_expression(&text)))
}

/// Translates an expression for a header field into a pattern of a rule. Returns `None` unless the
/// expression is literal text, with or without `^` and `$`, or `.` or `.+`.
pub fn field_pattern(posix: &str, ignore_case: bool) -> Option<String> {
    let start = if posix.starts_with('^') { "" } else { "*" };
    let end = if posix.ends_with('$') && !posix.ends_with(r"\$") { "" } else { "*" };
    let text = posix.strip_prefix('^').unwrap_or(posix);
    let text = if end.is_empty() { &text[..text.len() - 1] } else { text };
    if matches!(text, "." | ".+") && end == "*" {
        return Some("?*".to_owned());
    }
    let text: String = plain_text(text)?.chars().map(literal).collect();
    Some(format!("{}{start}{text}{end}", case_mark(ignore_case)))
}

/// Returns the literal text that an expression matches. Returns `None` for other expressions.
fn plain_text(posix: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = posix.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => chars.next().filter(char::is_ascii_punctuation)?,
            '.' | '[' | ']' | '(' | ')' | '*' | '+' | '?' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            c => c,
        });
    }
    Some(out)
}

fn translated(posix: &str) -> Result<String, RegexFlaw> {
    let mut out = String::new();
    let mut chars = posix.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('w' | 'W' | 's' | 'S' | 'b' | 'B')) => out.extend(['\\', c]),
                Some(c) if c.is_ascii_punctuation() => out.extend(['\\', c]),
                Some(c) if !c.is_ascii() => out.push(c),
                _ => return Err(RegexFlaw::Escape),
            },
            '[' => class(&mut chars, &mut out)?,
            '*' | '+' | '?' if chars.peek() == Some(&'?') => return Err(RegexFlaw::Form),
            '(' if chars.peek() == Some(&'?') => return Err(RegexFlaw::Form),
            '{' if chars.peek() == Some(&',') => return Err(RegexFlaw::Form),
            '{' if !chars.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\{"),
            '}' if chars.peek() == Some(&'?') => return Err(RegexFlaw::Form),
            '^' if !out.is_empty() && !out.ends_with(['(', '|']) => return Err(RegexFlaw::Form),
            c => out.push(c),
        }
    }
    Ok(out)
}

/// Translates a bracket expression such as `[^a-z]`, after its `[`. In POSIX a backslash in it is a
/// literal backslash.
fn class(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Result<(), RegexFlaw> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    if chars.next_if_eq(&']').is_some() {
        out.push_str("\\]");
    }
    loop {
        match chars.next().ok_or(RegexFlaw::Refused)? {
            ']' => break,
            '[' if chars.next_if_eq(&':').is_some() => {
                out.push_str("[:");
                loop {
                    let c = chars.next().ok_or(RegexFlaw::Refused)?;
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' if matches!(chars.peek(), Some('.' | '=')) => return Err(RegexFlaw::Form),
            // In foxy's expressions, `--` in a class subtracts another class.
            '-' if chars.peek() == Some(&'-') => return Err(RegexFlaw::Form),
            c @ ('\\' | '[' | '&' | '~' | '^') => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_keep_their_meaning() {
        let cases = [
            (r"-i|(/cgi-bin/|\?)", r"(?i)(/cgi-bin/|\?)"),
            (r"|\.(gif|png)$", r"\.(gif|png)$"),
            (r"|[]\.[:alpha:]-]x", r"[\]\\.[:alpha:]-]x"),
            (r"|^http://[^/]*\.example\.com/", r"^http://[^/]*\.example\.com/"),
            (r"|a{x|b{2}", r"a\{x|b{2}"),
        ];
        for (from, to) in cases {
            let (flag, posix) = from.split_once('|').expect("a flag");
            assert_eq!(url_regex(posix, flag == "-i").as_deref(), Ok(to), "{from}");
        }
    }

    #[test]
    fn expressions_with_another_meaning_are_refused() {
        let cases = [
            (r"\d+", RegexFlaw::Escape),
            (r"(a)\1", RegexFlaw::Escape),
            ("a+?", RegexFlaw::Form),
            ("a{2}?b", RegexFlaw::Form),
            ("a{,3}b", RegexFlaw::Form),
            ("(?i)a", RegexFlaw::Form),
            ("[+--/]", RegexFlaw::Form),
            ("%20", RegexFlaw::Encoded),
            (r"\.\./", RegexFlaw::Encoded),
            ("(", RegexFlaw::Refused),
            ("[a", RegexFlaw::Refused),
        ];
        for (posix, flaw) in cases {
            assert_eq!(url_regex(posix, false), Err(flaw), "{posix}");
        }
    }

    #[test]
    fn an_expression_for_paths_cannot_match_the_host() {
        assert_eq!(path_regex("^/a", false).as_deref(), Ok("^[a-z]+://[^/]+(?:/a)"));
        assert_eq!(path_regex("/a/", true).as_deref(), Ok("(?i)^[a-z]+://[^/]+(?:/.*)?(?:/a/)"));
        assert_eq!(path_regex(r"\.exe$", false).as_deref(), Ok(r"^[a-z]+://[^/]+/.*(?:\.exe$)"));
        assert_eq!(
            path_regex(r"\.(exe|msi)$|^/b[|[:digit:]]", false).as_deref(),
            Ok(r"^[a-z]+://[^/]+/.*(?:\.(exe|msi)$)|^[a-z]+://[^/]+(?:/b[|[:digit:]])")
        );
        assert_eq!(path_regex("[^a]b", false), Err(RegexFlaw::Start));
        assert_eq!(path_regex("/*b", false), Err(RegexFlaw::Start));
        assert!(path_regex("(a|/b)", false).is_err());
        assert_eq!(path_regex(r"\/a", false).as_deref(), Ok(r"^[a-z]+://[^/]+(?:/.*)?(?:\/a)"));
    }

    #[test]
    fn an_expression_for_hosts_becomes_one_for_urls() {
        let begins = host_regex(r"^login\.", true);
        assert_eq!(begins.as_deref(), Some(r"(?i)^(?:[a-z]+://)?login\."));
        let ends = host_regex("ads$", false);
        assert_eq!(ends.as_deref(), Some("^(?:[a-z]+://)?[^/:]*ads(?::[0-9]+)?(?:/|$)"));
        for lost in ["ad[0-9]", "a/b", r"a\$"] {
            assert_eq!(host_regex(lost, false), None, "{lost}");
        }
    }

    #[test]
    fn a_literal_text_becomes_a_pattern() {
        assert_eq!(field_pattern("^curl/", false).as_deref(), Some("curl/*"));
        assert_eq!(field_pattern("bad", true).as_deref(), Some("(?i)*bad*"));
        assert_eq!(field_pattern(r"a\*$", false).as_deref(), Some(r"*a\*"));
        assert_eq!(field_pattern(".", false).as_deref(), Some("?*"));
        assert_eq!(field_pattern("a.c", false), None);
    }
}
