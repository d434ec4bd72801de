//! Suggests the correct name for a mistyped setting or measured value.

/// Returns the known name that is most similar to `mistyped`. Returns `None` if no name is similar.
pub fn nearest<'a>(mistyped: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(mistyped, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["size", "scheme", "listen"];
        assert_eq!(nearest("sise", known.into_iter()), Some("size"));
        assert_eq!(nearest("shceme", known.into_iter()), Some("scheme"));
        assert_eq!(nearest("quux", known.into_iter()), None);
    }
}
