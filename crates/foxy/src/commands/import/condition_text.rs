//! Texts of conditions that the conversions of several programs share: patterns for literal texts,
//! and parts of regular expressions for URLs.

/// The beginning of an expression that matches whole URLs: scheme and host.
pub const SITE: &str = "^[a-z]+://[^/]+";

/// Returns the mark with which patterns and expressions begin that ignore the case of letters.
pub const fn case_mark(ignore_case: bool) -> &'static str {
    if ignore_case { "(?i)" } else { "" }
}

/// Returns the pattern that matches `text` alone.
pub fn escaped(text: &str) -> String {
    text.chars().map(literal).collect()
}

/// Returns the pattern that matches the character alone.
pub fn literal(c: char) -> String {
    match c {
        '*' | '?' | '[' | ']' | '{' | '}' | '\\' => format!("\\{c}"),
        c => c.to_string(),
    }
}

/// Returns the literal character with which every match of a regular expression begins. Returns
/// `None` if matches can begin differently.
pub fn first_literal(expression: &str) -> Option<char> {
    let mut chars = expression.chars();
    let first = match chars.next()? {
        '\\' => chars.next().filter(char::is_ascii_punctuation)?,
        '.' | '[' | '(' | '*' | '+' | '?' | '{' | '^' | '$' => return None,
        c => c,
    };
    (!matches!(chars.next(), Some('*' | '?' | '{'))).then_some(first)
}
