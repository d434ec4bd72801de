//! Splits the templates of paths and URLs at their variables: `$1`, `$name` and `${name}`.

/// A part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart<'t> {
    Text(&'t str),
    /// A variable, without the dollar sign and braces.
    Variable(&'t str),
}

/// Splits a template as [`regex::bytes::Captures::expand`] does: a name has as many letters as
/// possible, `$$` is a dollar sign, and a dollar sign without a name is text.
pub(super) fn parts(template: &str) -> Vec<TemplatePart<'_>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        if !before.is_empty() {
            parts.push(TemplatePart::Text(before));
        }
        let dollar = TemplatePart::Text(&rest[at..=at]);
        let braced = after.strip_prefix('{').and_then(|braced| braced.split_once('}'));
        let plain = after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()));
        let (part, next) = match (after.strip_prefix('$'), braced.unwrap_or(plain)) {
            (Some(next), _) => (dollar, next),
            (None, ("", _)) => (dollar, after),
            (None, (name, next)) => (TemplatePart::Variable(name), next),
        };
        parts.push(part);
        rest = next;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Text(rest));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use TemplatePart::{Text, Variable};

    #[test]
    fn a_template_is_split_at_its_variables() {
        assert_eq!(
            parts("/a/$1b-${2}c"),
            [Text("/a/"), Variable("1b"), Text("-"), Variable("2"), Text("c")]
        );
        assert_eq!(parts("$$1$/"), [Text("$"), Text("1"), Text("$"), Text("/")]);
        assert_eq!(parts("${1"), [Text("$"), Text("{1")]);
        assert!(parts("").is_empty());
    }
}
