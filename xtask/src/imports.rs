//! Finds the imports between the modules of a crate, and import cycles.

use crate::names::{is_test, module, production};
use crate::workspace::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// The path of each module of a crate, with the paths of the modules that it imports.
type Imports<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the number of modules in the largest import cycle of any crate, or 0 without a cycle.
pub fn largest_cycle(files: &[SourceFile]) -> usize {
    let mut crates: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for file in files {
        if let Some((name, source)) = module(&file.path).filter(|(_, source)| !is_test(source)) {
            let path = source.strip_suffix("/mod").unwrap_or(source);
            crates.entry(name).or_default().insert(path, production(&file.text));
        }
    }
    crates.values().map(|modules| largest(&imports(modules))).max().unwrap_or(0)
}

fn imports<'a>(modules: &BTreeMap<&'a str, &'a str>) -> Imports<'a> {
    let of = |(path, text): (&&'a str, &&'a str)| {
        let found = paths(path, text).into_iter().filter_map(|named| nearest(modules, &named));
        (*path, found.filter(|found| found != path).collect())
    };
    modules.iter().map(of).collect()
}

/// Returns the path of the module `path`. If the module has no file of its own, returns the nearest
/// parent with a file.
fn nearest<'a>(modules: &BTreeMap<&'a str, &'a str>, path: &str) -> Option<&'a str> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let ends: Vec<usize> = ends.collect();
    ends.iter().rev().find_map(|&end| modules.get_key_value(&path[..end]).map(|(found, _)| *found))
}

/// Returns the paths after `crate::` and `super::` in the text of the module `path`, with slashes.
/// An import with braces gives several paths.
fn paths(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join(" ");
    for (start, parent) in [("crate::", ""), ("super::", above(path))] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before
                .is_none_or(|before| !before.is_alphanumeric() && before != '_' && before != ':')
            {
                named(&code[at + start.len()..], parent, &mut found);
            }
        }
    }
    found
}

fn above(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// Adds to `found` the path at the start of `text`, below the module `parent`. A path with braces
/// gives several paths.
fn named(text: &str, parent: &str, found: &mut Vec<String>) {
    let mut path = parent.to_owned();
    let mut rest = text;
    loop {
        while let Some(more) = rest.strip_prefix("super::") {
            path = above(&path).to_owned();
            rest = more;
        }
        if let Some(inner) = rest.strip_prefix('{') {
            for part in parts(inner) {
                named(part.trim_start(), &path, found);
            }
            return;
        }
        let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !word.is_empty() {
            path = if path.is_empty() { word.to_owned() } else { format!("{path}/{word}") };
        }
        match after.strip_prefix("::") {
            Some(more) if !word.is_empty() => rest = more,
            _ => break,
        }
    }
    found.push(path);
}

/// Splits the text after an opening brace at its commas, up to the closing brace. Commas in inner
/// braces do not count.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0_usize, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&text[begin..at]);
                return parts;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Returns the size of the largest set of modules in which each imports each other, directly or
/// through other modules.
fn largest(imports: &Imports<'_>) -> usize {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|module| (*module, reachable(imports, module))).collect();
    let size = |module: &&str| {
        let both = reached[module].iter().filter(|other| reached[*other].contains(module));
        both.count()
    };
    imports.keys().map(size).max().unwrap_or(0)
}

/// Returns all modules that `from` imports, directly or through other modules.
fn reachable<'a>(imports: &Imports<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        next.extend(imports[module].iter().copied().filter(|imported| seen.insert(*imported)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[(&str, &str)]) -> usize {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/a/src/{path}"),
            text: (*text).into(),
        };
        largest_cycle(&files.iter().map(file).collect::<Vec<_>>())
    }

    #[test]
    fn modules_that_import_each_other_are_a_cycle() {
        let three = [
            ("one.rs", "use crate::{two::Two, other};"),
            ("two/mod.rs", "use super::three::deep::{Three, X};"),
            ("three/deep.rs", "fn f() { crate::one::g() }"),
            ("other.rs", "// use crate::one;\n"),
        ];
        assert_eq!(cycle(&three), 3);
        assert_eq!(cycle(&three[..2]), 0);
    }

    #[test]
    fn imports_of_tests_close_no_cycle() {
        assert_eq!(
            cycle(&[
                ("a.rs", "use crate::b;"),
                ("b.rs", "#[cfg(test)]\nmod tests { use crate::a; }")
            ]),
            0
        );
        assert_eq!(
            cycle(&[("a.rs", "use crate::b;"), ("b.rs", ""), ("b_tests.rs", "use crate::a;")]),
            0
        );
    }

    #[test]
    fn a_child_that_imports_its_parent_is_a_cycle_only_if_the_parent_imports_it() {
        assert_eq!(cycle(&[("a/mod.rs", "mod b;"), ("a/b.rs", "use super::X;")]), 0);
        assert_eq!(cycle(&[("a/mod.rs", "use crate::a::b::Y;"), ("a/b.rs", "use super::X;")]), 2);
    }
}
