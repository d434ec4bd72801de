//! Splits an nginx configuration into directives and blocks. Replaces each `include` by the
//! directives of its files.

use super::super::draft::Original;
use super::super::original_files::OriginalFiles;
use super::super::report::OriginalPlace;

const NGINX_FOLDER: &str = "/etc/nginx/";
const DEEPEST: usize = 32;

/// A directive with its block, if it has a block.
#[derive(Clone, Debug)]
pub struct NginxDirective {
    pub words: Vec<String>,
    pub block: Option<Vec<NginxDirective>>,
    pub original: Original,
}

impl NginxDirective {
    pub fn name(&self) -> &str {
        &self.words[0]
    }

    pub fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    pub fn argument(&self, position: usize) -> &str {
        self.words.get(position + 1).map_or("", String::as_str)
    }

    pub fn children(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NginxToken {
    Word(String),
    Open,
    Close,
    End,
}

/// Returns the directives of the main file. An `include` of a file that cannot be read stays in the
/// list.
pub fn directives(content: &str, files: &OriginalFiles) -> Vec<NginxDirective> {
    let mut reader = BlockReader { file: None, files, depth: 0 };
    reader.block(&mut tokens(content).into_iter())
}

struct BlockReader<'f> {
    file: Option<String>,
    files: &'f OriginalFiles,
    depth: usize,
}

impl BlockReader<'_> {
    fn block(
        &mut self,
        tokens: &mut impl Iterator<Item = (usize, NginxToken)>,
    ) -> Vec<NginxDirective> {
        let mut all = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut start = 0;
        while let Some((line, token)) = tokens.next() {
            if words.is_empty() {
                start = line;
            }
            let block = match token {
                NginxToken::Word(word) => {
                    words.push(word);
                    continue;
                }
                NginxToken::Close => break,
                NginxToken::Open => Some(self.block(tokens)),
                NginxToken::End => None,
            };
            if words.is_empty() {
                continue;
            }
            let place = OriginalPlace { file: self.file.clone(), line: start };
            let original = Original { place, text: words.join(" ") };
            let directive = NginxDirective { words: std::mem::take(&mut words), block, original };
            self.add(&mut all, directive);
        }
        all
    }

    fn add(&mut self, all: &mut Vec<NginxDirective>, directive: NginxDirective) {
        if directive.name() == "include"
            && self.depth < DEEPEST
            && let Ok(found) = self.files.read(directive.argument(0), NGINX_FOLDER)
        {
            for (name, content) in found {
                let depth = self.depth + 1;
                let mut inner = BlockReader { file: Some(name), files: self.files, depth };
                all.extend(inner.block(&mut tokens(&content).into_iter()));
            }
            return;
        }
        all.push(directive);
    }
}

/// Splits a text into words and the marks `{`, `}` and `;`. The number is the line of the token,
/// counted from 1.
fn tokens(content: &str) -> Vec<(usize, NginxToken)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut chars = content.chars().peekable();
    while let Some(c) = chars.next() {
        let start = line;
        let token = match c {
            '\n' => {
                line += 1;
                continue;
            }
            c if c.is_whitespace() => continue,
            '#' => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            '{' => NginxToken::Open,
            '}' => NginxToken::Close,
            ';' => NginxToken::End,
            '"' | '\'' => {
                let mut word = String::new();
                while let Some(next) = chars.next().filter(|next| *next != c) {
                    line += usize::from(next == '\n');
                    let escaped = if next == '\\' { chars.next_if_eq(&c) } else { None };
                    word.push(escaped.unwrap_or(next));
                }
                NginxToken::Word(word)
            }
            first => {
                let mut word = first.to_string();
                // In `${name}`, a braced variable, the braces do not open and close a block.
                while let Some(&next) = chars.peek() {
                    let is_variable = next == '{' && word.ends_with('$');
                    let is_close = next == '}' && word.contains("${");
                    let ends = next.is_whitespace() || matches!(next, ';' | '{' | '}');
                    if ends && !is_variable && !is_close {
                        break;
                    }
                    word.push(next);
                    chars.next();
                }
                NginxToken::Word(word)
            }
        };
        tokens.push((start, token));
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn shown(directives: &[NginxDirective]) -> String {
        let one = |directive: &NginxDirective| {
            let line = directive.original.place.line;
            let block = directive.block.as_ref().map(|block| format!(" {{ {} }}", shown(block)));
            format!("{line}:{}{}", directive.words.join("|"), block.unwrap_or_default())
        };
        directives.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_quotes_comments_and_blocks_are_told_apart() {
        let content =
            "a b; # c {\nserver {\n listen 80;\n location ~ \"x{1}\\\"\" { d ${e}f 'g;h'; }\n}\n";
        let files = OriginalFiles::beside(Path::new("nginx.conf"));
        assert_eq!(
            shown(&directives(content, &files)),
            "1:a|b 2:server { 3:listen|80 4:location|~|x{1}\" { 4:d|${e}f|g;h } }"
        );
        assert_eq!(shown(&directives("a { b", &files)), "1:a {  }");
    }
}
