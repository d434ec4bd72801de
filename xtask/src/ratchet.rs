//! Ratchets: limits on measures of the source tree that only fall, such as the number of long
//! files. `xtask/ratchet.json` has the limits. Clippy checks the lengths of functions
//! (`clippy.toml`).

use crate::imports;
use crate::names;
use crate::workspace::{self, SourceFile};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A source file with more than this number of lines counts as long.
const LONG: usize = 500;
/// A source file with more than this number of lines fails the check, whatever the limits allow.
const TOO_LONG: usize = 800;
/// A folder with more than this number of source files counts as crowded.
const CROWDED: usize = 20;
/// A line with more than this number of columns counts as wide.
const WIDE: usize = 100;
const FILE: &str = "xtask/ratchet.json";

/// A measure of the source tree: its key in `ratchet.json`, its description, and the function that
/// computes it.
struct Measure {
    key: &'static str,
    counts: &'static str,
    take: fn(&[SourceFile]) -> usize,
}

const MEASURES: [Measure; 7] = [
    Measure { key: "long_files", counts: "source files over 500 lines", take: long_files },
    Measure {
        key: "crowded_folders",
        counts: "folders of code with more than 20 files",
        take: crowded_folders,
    },
    Measure {
        key: "wide_lines",
        counts: "lines over 100 columns in code and prose",
        take: wide_lines,
    },
    Measure {
        key: "document_words",
        counts: "words in README, ARCHITECTURE and docs/",
        take: document_words,
    },
    Measure {
        key: "largest_cycle",
        counts: "modules in the largest import cycle",
        take: imports::largest_cycle,
    },
    Measure {
        key: "repeated_types",
        counts: "types of a crate whose name another type has",
        take: names::repeated_types,
    },
    Measure {
        key: "long_names",
        counts: "functions, tests among them, whose name has more than 80 characters",
        take: names::long_names,
    },
];

fn long_files(files: &[SourceFile]) -> usize {
    rust(files).filter(|file| file.text.lines().count() > LONG).count()
}

fn crowded_folders(files: &[SourceFile]) -> usize {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in rust(files) {
        *folders.entry(folder(&file.path)).or_default() += 1;
    }
    folders.values().filter(|&&count| count > CROWDED).count()
}

/// Counts wide lines. Leaves out tables, links and lines without a space, because nobody can break
/// them.
fn wide_lines(files: &[SourceFile]) -> usize {
    let is_wide = |line: &&str| {
        let breaks = line.trim_start().contains(' ') && !line.starts_with(['|', '[']);
        breaks && line.chars().count() > WIDE
    };
    let held = files.iter().filter(|file| file.path.ends_with(".rs") || is_document(&file.path));
    held.map(|file| file.text.lines().filter(is_wide).count()).sum()
}

fn document_words(files: &[SourceFile]) -> usize {
    let documents = files.iter().filter(|file| is_document(&file.path));
    let is_word = |text: &&str| text.contains(char::is_alphanumeric);
    documents.map(|file| file.text.split_whitespace().filter(is_word).count()).sum()
}

fn is_document(path: &str) -> bool {
    let at_root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].contains(&path);
    at_root || (path.starts_with("docs/") && path.ends_with(".md"))
}

fn rust(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    files.iter().filter(|file| file.path.ends_with(".rs"))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns a message for each measure that exceeds its limit.
pub fn complaints(files: &[SourceFile]) -> Result<Vec<String>, String> {
    let limits = limits()?;
    let mut wrong = too_long(files);
    for Measure { key, counts, take } in &MEASURES {
        let limit =
            limits.get(*key).and_then(Value::as_u64).ok_or_else(|| format!("{FILE}: no {key}"))?;
        let now = take(files);
        if now as u64 > limit {
            wrong.push(format!("{key}: {now} {counts}; the ratchet stands at {limit}"));
        }
    }
    Ok(wrong)
}

fn too_long(files: &[SourceFile]) -> Vec<String> {
    let lines = rust(files).map(|file| (&file.path, file.text.lines().count()));
    let long = lines.filter(|(_, count)| *count > TOO_LONG);
    long.map(|(path, count)| format!("{path}: {count} lines; the limit is {TOO_LONG}")).collect()
}

fn limits() -> Result<Map<String, Value>, String> {
    let path = workspace::root().join(FILE);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{FILE}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
}

/// Lowers each limit to the current value of its measure. Never raises a limit.
pub fn tighten() -> Result<String, String> {
    let (files, before) = (workspace::files()?, limits()?);
    let lower = |Measure { key, take, .. }: &Measure| {
        let limit = before.get(*key).and_then(Value::as_u64).unwrap_or(u64::MAX);
        ((*key).to_owned(), Value::from(limit.min(take(&files) as u64)))
    };
    let text = format!("{:#}\n", Value::Object(MEASURES.iter().map(lower).collect()));
    std::fs::write(workspace::root().join(FILE), &text)
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_file_beyond_the_limit_is_named() {
        let files = [file("a.rs", &"//! x\n".repeat(801)), file("b.rs", &"//! x\n".repeat(501))];
        assert_eq!((long_files(&files), too_long(&files).len()), (2, 1));
    }

    #[test]
    fn only_folders_with_too_many_sources_are_crowded() {
        let files: Vec<SourceFile> =
            (0..21).map(|number| file(&format!("a/{number}.rs"), "")).collect();
        assert_eq!((crowded_folders(&files), crowded_folders(&files[1..])), (1, 0));
    }

    #[test]
    fn a_line_is_wide_by_its_columns_where_it_can_be_broken() {
        let text = format!(
            "{}\n{}\n| {}\n{}",
            "ä ".repeat(51),
            "ä ".repeat(50),
            "x ".repeat(99),
            "x".repeat(200)
        );
        assert_eq!(wide_lines(&[file("docs/a.md", &text), file("results/a.md", &text)]), 1);
    }

    #[test]
    fn words_of_documents_are_counted() {
        assert_eq!(
            document_words(&[file("README.md", "| a b |\n|---|\nc"), file("CHANGELOG.md", "a b")]),
            3
        );
    }
}
