//! Splits a Squid configuration into directives. Replaces each `include` by the directives of its
//! files.

use super::super::draft::Original;
use super::super::original_files::OriginalFiles;
use super::super::report::OriginalPlace;

/// Folder in which Squid expects its files.
pub const SQUID_FOLDER: &str = "/etc/squid/";
const DEEPEST_INCLUDE: usize = 16;

/// A directive: its words, its place and its text.
#[derive(Clone, Debug)]
pub struct SquidLine {
    pub words: Vec<String>,
    pub original: Original,
}

impl SquidLine {
    pub fn name(&self) -> &str {
        &self.words[0]
    }

    pub fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    /// Returns the argument at this position, counted from 0.
    pub fn argument(&self, position: usize) -> Option<&str> {
        self.words.get(position + 1).map(String::as_str)
    }
}

/// Returns all directives in order. An `include` of a file that cannot be read stays in the list.
/// Leaves out the branches that an `if` line switches off. An `if` line whose condition is not
/// constant stays in the list, and both of its branches are left out.
pub fn lines(content: &str, files: &OriginalFiles) -> Vec<SquidLine> {
    let mut all = Vec::new();
    collect(&mut all, None, content, files, 0);
    // For each open `if`: the value of its condition, and whether its `else` has passed.
    let mut open: Vec<(Option<bool>, bool)> = Vec::new();
    let is_used = |open: &[(Option<bool>, bool)]| {
        open.iter().all(|(value, is_else)| value.is_some_and(|value| value != *is_else))
    };
    all.retain(|line| match line.name() {
        "if" => {
            let value = constant(line.arguments());
            let is_reported = value.is_none() && is_used(&open);
            open.push((value, false));
            is_reported
        }
        "else" => {
            if let Some(last) = open.last_mut() {
                last.1 = true;
            }
            false
        }
        "endif" => {
            open.pop();
            false
        }
        _ => is_used(&open),
    });
    all
}

/// Evaluates the condition of an `if` line: `true`, `false` or `NUMBER = NUMBER`. Returns `None`
/// for another condition, such as one with a macro.
fn constant(words: &[String]) -> Option<bool> {
    let text = words.concat();
    let number = |text: &str| text.parse::<i64>().ok();
    match text.as_str() {
        "true" => Some(true),
        "false" => Some(false),
        text => {
            let (left, right) = text.split_once('=')?;
            Some(number(left)? == number(right)?)
        }
    }
}

fn collect(
    all: &mut Vec<SquidLine>,
    file: Option<&str>,
    content: &str,
    files: &OriginalFiles,
    depth: usize,
) {
    for line in split(file, content) {
        if line.name() != "include" || depth == DEEPEST_INCLUDE {
            all.push(line);
            continue;
        }
        for path in line.arguments() {
            match files.read(path, SQUID_FOLDER) {
                Ok(found) => {
                    for (name, content) in found {
                        collect(all, Some(&name), &content, files, depth + 1);
                    }
                }
                Err(_) => all.push(SquidLine {
                    words: vec!["include".into(), path.clone()],
                    original: line.original.clone(),
                }),
            }
        }
    }
}

/// Splits a file into directives, one for each line. A backslash at the end continues a line. `#`
/// at the start of a word starts a comment.
fn split(file: Option<&str>, content: &str) -> Vec<SquidLine> {
    let mut lines = Vec::new();
    let mut open: Option<SquidLine> = None;
    for (number, text) in (1..).zip(content.lines()) {
        let (text, continues) = match text.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let place = OriginalPlace { file: file.map(ToOwned::to_owned), line: number };
        let mut line = open.take().unwrap_or_else(|| SquidLine {
            words: Vec::new(),
            original: Original { place, text: String::new() },
        });
        let words = text.split_whitespace().take_while(|word| !word.starts_with('#'));
        line.words.extend(words.map(ToOwned::to_owned));
        if continues {
            open = Some(line);
        } else if !line.words.is_empty() {
            lines.push(line);
        }
    }
    lines.extend(open.filter(|line| !line.words.is_empty()));
    for line in &mut lines {
        line.original.text = shown(&line.words);
    }
    lines
}

/// Returns the words as text for the report, without the passwords of `login=USER:PASSWORD` and
/// `cachemgr_passwd`.
fn shown(words: &[String]) -> String {
    let is_secret = words.first().is_some_and(|name| name == "cachemgr_passwd");
    let word = |(position, word): (usize, &String)| match word.split_once('=') {
        Some((name @ "login", value)) if value.contains(':') => format!("{name}=…"),
        _ if is_secret && position == 1 => "…".to_owned(),
        _ => word.clone(),
    };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn lines_lose_comments_join_continuations_and_keep_places() {
        let content = "# text\nacl a src 10.0.0.0/8 # office\n\nacl b \\\n  port 80 \\\n  443\n\
                        \x20x y\n\
                       cachemgr_passwd secret all";
        let lines = lines(content, &OriginalFiles::beside(Path::new("squid.conf")));
        let shown: Vec<_> = lines
            .iter()
            .map(|line| format!("{}: {}", line.original.place, line.original.text))
            .collect();
        assert_eq!(
            shown,
            [
                "line 2: acl a src 10.0.0.0/8",
                "line 4: acl b port 80 443",
                "line 7: x y",
                "line 8: cachemgr_passwd … all",
            ]
        );
    }

    #[test]
    fn only_the_branch_that_is_in_force_stays() {
        let shown = |content: &str| {
            let lines = lines(content, &OriginalFiles::beside(Path::new("squid.conf")));
            lines.iter().map(|line| line.words.join(" ")).collect::<Vec<_>>().join("; ")
        };
        for (content, expected) in [
            ("if 1 = 2\na\nelse\nb\nendif\nc\n", "b; c"),
            ("if true\na\nif false\nb\nendif\nelse\nc\nendif\n", "a"),
            ("if ${process_number} = 1\na\nelse\nb\nendif\nc\n", "if ${process_number} = 1; c"),
        ] {
            assert_eq!(shown(content), expected, "{content}");
        }
    }

    #[test]
    fn included_files_stand_at_their_place() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("foxy-test.d")).expect("made");
        std::fs::write(folder.path().join("foxy-test.d/a.conf"), "one\n").expect("written");
        std::fs::write(folder.path().join("foxy-test.d/b.txt"), "two\n").expect("written");
        let files = OriginalFiles::beside(&folder.path().join("squid.conf"));
        let lines = lines("zero\ninclude /etc/squid/foxy-test.d/*.conf /absent\n", &files);
        let shown: Vec<_> = lines
            .iter()
            .map(|line| format!("{}: {}", line.original.place, line.words.join(" ")))
            .collect();
        assert_eq!(shown, ["line 1: zero", "a.conf line 1: one", "line 2: include /absent"]);
    }
}
