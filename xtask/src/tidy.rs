//! Checks rules for all tracked files: each begins with a line that states its purpose, and has no
//! leftovers and no dead links. [`crate::ratchet`] checks lengths.

use crate::book;
use crate::ratchet;
use crate::workspace::{self, SourceFile};

/// Checks every rule in every tracked file.
pub fn check() -> Result<String, String> {
    let files = workspace::files()?;
    let mut wrong: Vec<String> = files.iter().flat_map(complaints).collect();
    wrong.extend(dead_links(&files));
    wrong.extend(missing_tests(&files));
    wrong.extend(book::complaints(&files));
    wrong.extend(ratchet::complaints(&files)?);
    if wrong.is_empty() { Ok(format!("{} files", files.len())) } else { Err(wrong.join("\n")) }
}

fn leftovers() -> [String; 7] {
    let marks = ["TO@DO", "FIX@ME", "XX@X:", "HA@CK", "todo@!(", "unimplemented@!(", "#[igno@re]"];
    marks.map(|mark| mark.replace('@', ""))
}

fn complaints(file: &SourceFile) -> Vec<String> {
    let mut wrong = Vec::new();
    let path = &file.path;
    if path.ends_with(".rs") && !file.text.starts_with("//! ") {
        wrong.push(format!("{path}:1: must open with `//! ` and say what it is"));
    }
    if path.ends_with(".sh") && !file.text.lines().nth(1).is_some_and(|line| line.starts_with("# "))
    {
        wrong.push(format!("{path}:2: must say what it is in a comment under the first line"));
    }
    if is_code(path) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(mark) = leftovers().iter().find(|mark| line.contains(mark.as_str())) {
                wrong.push(format!(
                    "{path}:{}: leftover {mark}; finish it or say it in the issue",
                    number + 1
                ));
            }
            if line.ends_with([' ', '\t']) {
                wrong.push(format!("{path}:{}: white space at the end of the line", number + 1));
            }
        }
    }
    wrong
}

fn is_code(path: &str) -> bool {
    [".rs", ".toml", ".sh", ".py", ".js", ".html", "Makefile", ".ci/run"]
        .iter()
        .any(|end| path.ends_with(end))
}

fn dead_links(files: &[SourceFile]) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for target in links(&file.text) {
            let path = workspace::root().join(folder).join(target);
            if !path.exists() {
                wrong.push(format!("{}: link to {target}, which is not there", file.path));
            }
        }
    }
    wrong
}

/// Returns a message for each test that docs/clauses.md names and that the code does not have.
fn missing_tests(files: &[SourceFile]) -> Vec<String> {
    const CLAUSES: &str = "docs/clauses.md";
    let Some(document) = files.iter().find(|file| file.path == CLAUSES) else {
        return vec![format!("{CLAUSES}: is not there")];
    };
    let code: Vec<&str> =
        files.iter().filter(|file| file.path.ends_with(".rs")).map(|file| &*file.text).collect();
    let is_there = |name: &str| code.iter().any(|text| text.contains(&format!("fn {name}(")));
    let missing = test_names(&document.text).into_iter().filter(|name| !is_there(name));
    missing.map(|name| format!("{CLAUSES}: names {name}, which is no test here")).collect()
}

/// Returns the names of tests in `text`: the words in backquotes that have an underscore.
fn test_names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|word| word.contains('_')).collect()
}

/// Returns the targets of relative Markdown links, without their anchors.
fn links(text: &str) -> Vec<&str> {
    let parts = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    parts
        .map(|(target, _)| target.split_once('#').map_or(target, |(path, _)| path))
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        complaints(&SourceFile { path: path.into(), text: text.into() }).len()
    }

    #[test]
    fn a_file_must_say_what_it_is() {
        assert_eq!(count("a.rs", "//! A thing.\n"), 0);
        assert_eq!(count("a.rs", "fn main() {}\n"), 1);
        assert_eq!(count("a.sh", "#!/bin/sh\n# Does a thing.\n"), 0);
        assert_eq!(count("a.sh", "#!/bin/sh\nset -e\n"), 1);
    }

    #[test]
    fn every_leftover_mark_is_found() {
        for mark in leftovers() {
            assert_eq!(count("a.rs", &format!("//! A thing.\n{mark}\n")), 1, "{mark}");
        }
    }

    #[test]
    fn a_document_of_tests_names_those_there_are() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let document = file("docs/clauses.md", "| 1 | `max-age` | `it_is_so`, `a-check-*` |\n");
        assert_eq!(missing_tests(&[document]).len(), 1);
        let document = file("docs/clauses.md", "| 1 | `max-age` | `it_is_so`, `a-check-*` |\n");
        assert_eq!(missing_tests(&[document, file("a.rs", "fn it_is_so() {}")]), [""; 0]);
    }

    #[test]
    fn only_links_into_the_tree_are_followed() {
        let text = "[a](docs/a.md#part) [b](https://example.org/) [c](#here) [d](LICENSE)";
        assert_eq!(links(text), ["docs/a.md", "LICENSE"]);
    }
}
