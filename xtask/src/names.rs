//! Counts types that share a name within a crate, and functions with long names.

use crate::workspace::SourceFile;
use std::collections::BTreeMap;

/// Counts the types that have the name of an earlier type in the same crate. Leaves out tests.
pub fn repeated_types(files: &[SourceFile]) -> usize {
    let mut names: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for file in files {
        let Some((name, source)) = module(&file.path) else { continue };
        if is_test(source) {
            continue;
        }
        for declared in production(&file.text).lines().filter_map(declared) {
            *names.entry((name, declared)).or_default() += 1;
        }
    }
    names.values().map(|count| count - 1).sum()
}

/// Names of functions with more than this number of characters count as long, because they read as
/// sentences.
const LONG: usize = 80;

/// Counts the functions, including tests, whose name has more than [`LONG`] characters.
pub fn long_names(files: &[SourceFile]) -> usize {
    let sources = files.iter().filter(|file| file.path.ends_with(".rs"));
    sources
        .flat_map(|file| file.text.lines().filter_map(function))
        .filter(|name| name.len() > LONG)
        .count()
}

/// Returns the name of the function that `line` declares.
fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split_once(['(', '<']).map(|(name, _)| name)
}

/// Returns the crate of a source file, and the path below its `src/` without `.rs`.
pub fn module(path: &str) -> Option<(&str, &str)> {
    let (name, source) = path.strip_prefix("crates/")?.split_once("/src/")?;
    source.strip_suffix(".rs").map(|source| (name, source))
}

/// Whether a path below `src/` belongs to tests only.
pub fn is_test(source: &str) -> bool {
    let mut parts = source.split('/');
    parts.any(|part| ["tests", "testing"].contains(&part) || part.ends_with("_tests"))
}

/// Returns the text of a source file without the test module at its end.
pub fn production(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}

/// Returns the name of the type that `line` declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "union "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
    // The name is empty for a macro variable such as `$name`.
    Some(&rest[..end.unwrap_or(rest.len())]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_a_name_of_more_than_80_characters_counts() {
        let file = |text: String| SourceFile { path: "a.rs".into(), text };
        let (fits, long) = ("a".repeat(80), "a".repeat(81));
        let files = [file(format!("async fn {fits}() {{\n    pub fn {long}<T>(")), file(long)];
        assert_eq!(long_names(&files), 1);
    }

    #[test]
    fn a_name_counts_once_for_each_type_after_the_first_of_its_crate() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [
            file("crates/a/src/one.rs", "pub(crate) struct Place<'a> {\nenum Step {"),
            file("crates/a/src/two/mod.rs", "struct Place;\n    pub trait Place {}"),
            file("crates/a/src/two/tests/mod.rs", "struct Place;"),
            file("crates/a/src/three.rs", "#[cfg(test)]\nmod tests {\nstruct Place;"),
            file("crates/b/src/lib.rs", "pub enum Place {"),
            file("crates/b/src/rows.rs", "pub struct $group {\npub struct $written {"),
        ];
        assert_eq!(repeated_types(&files), 2);
    }
}
