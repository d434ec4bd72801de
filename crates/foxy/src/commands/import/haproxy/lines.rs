//! Splits a HAProxy configuration into sections and lines.

use super::super::draft::Original;
use super::super::original_files::OriginalFiles;
use super::super::report::OriginalPlace;

/// A line of a section: its words, its place and its text.
#[derive(Clone, Debug)]
pub struct HaproxyLine {
    pub words: Vec<String>,
    pub original: Original,
}

/// A section, for example `frontend web`.
#[derive(Clone, Debug)]
pub struct HaproxySection {
    pub head: HaproxyLine,
    pub lines: Vec<HaproxyLine>,
}

const SECTIONS: [&str; 14] = [
    "global",
    "defaults",
    "frontend",
    "backend",
    "listen",
    "cache",
    "peers",
    "resolvers",
    "userlist",
    "mailers",
    "program",
    "http-errors",
    "ring",
    "log-forward",
];

impl HaproxyLine {
    pub fn argument(&self, position: usize) -> &str {
        self.words.get(position + 1).map_or("", String::as_str)
    }

    /// Returns whether the first words of the line are `words`.
    pub fn starts(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && self.words.iter().zip(words).all(|(a, b)| a == b)
    }

    /// Returns the word after the word `name`, such as the path after `crt`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == name)?;
        self.words.get(at + 1).map(String::as_str)
    }

    /// Replaces each `-f FILE` of a condition by the values in the file, one in each line.
    pub fn read_lists(&mut self, files: &OriginalFiles) {
        // A value in a file may be `-f` too, and names no file.
        let lists = self.words.iter().filter(|word| *word == "-f").count();
        for _ in 0..lists {
            let Some(at) = self.words.iter().position(|word| word == "-f") else { return };
            let path = self.words.get(at + 1).cloned().unwrap_or_default();
            let Ok(found) = files.read(&path, "/etc/haproxy/") else { return };
            let lines = found.iter().flat_map(|(_, content)| content.lines()).map(str::trim);
            let values = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
            let values: Vec<String> = values.map(ToOwned::to_owned).collect();
            // The values follow all flags, of which `-f` and `-m` have an argument.
            let mut end = at + 2;
            while let Some(flag) = self.words.get(end).filter(|word| word.starts_with('-')) {
                end += if matches!(flag.as_str(), "-f" | "-m") { 2 } else { 1 };
            }
            let end = end.min(self.words.len());
            self.words.splice(end..end, values);
            self.words.drain(at..at + 2);
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }
}

impl HaproxySection {
    pub fn kind(&self) -> &str {
        &self.head.words[0]
    }

    pub fn name(&self) -> &str {
        self.head.argument(0)
    }

    /// Returns whether clients reach servers through the section. A section for statistics alone
    /// does not count.
    pub fn listens(&self) -> bool {
        let has = |word: &str| self.lines.iter().any(|line| line.starts(&[word]));
        let is_for_statistics =
            has("stats") && !["server", "use_backend", "default_backend"].iter().any(|it| has(it));
        has("bind") && !is_for_statistics
    }

    /// Returns the only scheme of the section's listeners. Returns `None` if there are listeners
    /// with and without TLS.
    pub fn scheme(&self) -> Option<&'static str> {
        let mut binds = self.lines.iter().filter(|line| line.starts(&["bind"]));
        let is_secure = binds.next()?.has("ssl");
        let is_same = binds.all(|line| line.has("ssl") == is_secure);
        is_same.then_some(if is_secure { "https" } else { "http" })
    }
}

/// Returns whether a file has a section that only HAProxy has. A line of nginx with the same first
/// word ends in `;` or opens a block.
pub fn has_sections(content: &str) -> bool {
    content.lines().any(|line| {
        let words = words(line);
        let is_head = match words.first().map(String::as_str) {
            Some("global") => words.len() == 1,
            Some("defaults") => true,
            Some("frontend" | "backend" | "listen") => words.len() > 1,
            _ => false,
        };
        is_head && !line.contains([';', '{'])
    })
}

/// Returns the sections. Ignores lines before the first section, because HAProxy refuses a file
/// with such lines.
pub fn sections(content: &str) -> Vec<HaproxySection> {
    let mut sections: Vec<HaproxySection> = Vec::new();
    for (number, text) in (1..).zip(content.lines()) {
        let words = words(text);
        let Some(first) = words.first() else { continue };
        let is_head = SECTIONS.contains(&first.as_str());
        let place = OriginalPlace { file: None, line: number };
        let original = Original { place, text: words.join(" ") };
        let line = HaproxyLine { words, original };
        match sections.last_mut() {
            _ if is_head => sections.push(HaproxySection { head: line, lines: Vec::new() }),
            Some(section) => section.lines.push(line),
            None => {}
        }
    }
    sections
}

/// Splits a line into words. Blanks in quotes or after a backslash do not end a word. `#` starts a
/// comment.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '#') => break,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if open == c => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_their_lines_with_quotes_and_comments_resolved() {
        let content = "# c\nglobal\n  log /dev/log local0 # x\nfrontend web\n  \
                       acl a path_beg \"/a b\" c\\ d 'e\"f'\n";
        let sections = sections(content);
        let shown: Vec<_> = sections
            .iter()
            .map(|section| {
                let lines: Vec<_> = section.lines.iter().map(|line| line.words.join("|")).collect();
                format!("{} {}: {}", section.kind(), section.name(), lines.join(" "))
            })
            .collect();
        let expected =
            ["global : log|/dev/log|local0", "frontend web: acl|a|path_beg|/a b|c d|e\"f"];
        assert_eq!(shown, expected);
        assert_eq!(sections[1].lines[0].original.place.line, 5);
    }
}
