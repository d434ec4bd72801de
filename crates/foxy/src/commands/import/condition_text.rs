//! Builds the texts of conditions for all importers: patterns for literal texts, and parts of
//! regular expressions for URLs.

/// The beginning of a regular expression for whole URLs. It matches the scheme and the host.
pub const SITE: &str = "^[a-z]+://[^/]+";

/// Returns the prefix of a pattern or expression: `(?i)` if it ignores the case of letters.
pub const fn case_mark(ignore_case: bool) -> &'static str {
    if ignore_case { "(?i)" } else { "" }
}

/// Returns the pattern that matches only the text `text`.
pub fn escaped(text: &str) -> String {
    text.chars().map(literal).collect()
}

/// Returns the pattern that matches only the character `c`.
pub fn literal(c: char) -> String {
    match c {
        '*' | '?' | '[' | ']' | '{' | '}' | '\\' => format!("\\{c}"),
        c => c.to_string(),
    }
}

/// Returns the regular expression that matches only the text `text`.
pub fn literal_expression(text: &str) -> String {
    let escape = |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Splits an expression at each `|` that stands outside of groups and classes. `escapes` tells
/// whether a backslash in a class escapes the next character, as in PCRE but not in POSIX. Returns
/// `None` if a group or class is not closed.
pub fn branches(expression: &str, escapes: bool) -> Option<Vec<String>> {
    let (mut all, mut current) = (Vec::new(), String::new());
    let (mut depth, mut in_class) = (0usize, false);
    let mut chars = expression.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if escapes || !in_class => {
                current.push(c);
                current.push(chars.next()?);
                continue;
            }
            '[' if in_class && chars.peek() == Some(&':') => {
                current.push(c);
                loop {
                    let c = chars.next()?;
                    current.push(c);
                    if c == ']' {
                        break;
                    }
                }
                continue;
            }
            '[' if !in_class => in_class = true,
            ']' if in_class && !current.ends_with(['[', '^']) => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.checked_sub(1)?,
            '|' if !in_class && depth == 0 => {
                all.push(std::mem::take(&mut current));
                continue;
            }
            _ => {}
        }
        current.push(c);
    }
    all.push(current);
    (depth == 0 && !in_class).then_some(all)
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
