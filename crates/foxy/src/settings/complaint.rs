//! Messages about mistakes in the settings. The first line states the mistake and the remedy. If
//! the mistake is in a file, the next lines show its place there.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The value came from this flag. The name has no dashes.
    Flag(&'static str),
    /// The value came from this environment variable.
    Environment(String),
    File(LinePlace),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Environment(name) => f.write_str(name),
            Self::File(place) => write!(f, "{place}"),
        }
    }
}

/// The place of a setting in a file: a line, and the part of this line that the setting occupies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePlace {
    pub path: PathBuf,
    pub line: usize,
    pub column: usize,
    width: usize,
    text: String,
}

/// A file with the places where its lines start, which makes [`FileLines::place`] fast. A large
/// file has thousands of settings.
#[derive(Debug)]
pub struct FileLines<'a> {
    path: &'a Path,
    content: &'a str,
    /// Byte positions in the file where lines start.
    starts: Vec<usize>,
}

impl<'a> FileLines<'a> {
    pub fn new(path: &'a Path, content: &'a str) -> Self {
        let after_ends = content.match_indices('\n').map(|(at, _)| at + 1);
        Self { path, content, starts: std::iter::once(0).chain(after_ends).collect() }
    }

    /// Finds the line of the byte range `span` of the file. If the range has several lines, only
    /// its first line counts.
    pub fn place(&self, span: Range<usize>) -> LinePlace {
        let Self { path, content, starts } = self;
        let start = floor_boundary(content, span.start);
        let end = floor_boundary(content, span.end).max(start);
        let line = starts.partition_point(|&line_start| line_start <= start);
        let line_start = starts[line - 1];
        let line_end = content[start..].find('\n').map_or(content.len(), |at| start + at);
        LinePlace {
            path: (*path).to_owned(),
            line,
            column: content[line_start..start].chars().count() + 1,
            width: content[start..end.min(line_end)].chars().count().max(1),
            text: without_credentials(content[line_start..line_end].trim_end()),
        }
    }
}

/// Returns the line with `*` in place of a password in a URL: everything from the first quote to
/// the last `@` becomes `*`. The same applies to everything after `pass=`.
pub fn without_credentials(line: &str) -> String {
    if let Some((before, secret)) = line.split_once("pass=") {
        let hidden = "*".repeat(secret.chars().count());
        return format!("{}pass={hidden}", without_credentials(before));
    }
    let Some((before, after)) = line.rsplit_once('@') else { return without_odd_authority(line) };
    let start = before.find(['"', '\'']).map_or(0, |at| at + 1);
    let hidden = "*".repeat(before[start..].chars().count());
    format!("{}{hidden}@{after}", &before[..start])
}

/// Returns the line with `*` in place of a URL's authority, unless this is only a host and a port.
/// Even a misspelled authority may contain a password.
fn without_odd_authority(line: &str) -> String {
    let Some((before, rest)) = line.split_once("://") else { return line.to_owned() };
    let end = rest.find(['"', '\'', '/']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = match authority.split_once(':') {
        None => true,
        Some((host, port)) => host.starts_with('[') || (!host.is_empty() && is_port(port)),
    };
    if is_plain {
        return line.to_owned();
    }
    format!("{before}://{}{after}", "*".repeat(authority.chars().count()))
}

fn floor_boundary(content: &str, at: usize) -> usize {
    let at = at.min(content.len());
    (0..=at).rev().find(|&index| content.is_char_boundary(index)).unwrap_or(0)
}

impl fmt::Display for LinePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// States the mistake and the remedy.
    pub message: String,
    /// Place of the mistake. `None` if several settings together cause the mistake.
    pub source: Option<Source>,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            None => f.write_str(&self.message),
            Some(source) => write!(f, "{source}: {}", self.message),
        }?;
        let Some(Source::File(place)) = &self.source else { return Ok(()) };
        let margin = " ".repeat(place.line.to_string().len());
        let indent: String = place
            .text
            .chars()
            .take(place.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "\n{margin} |\n{} | {}\n{margin} | {indent}", place.line, place.text)?;
        f.write_str(&"^".repeat(place.width))
    }
}

/// All mistakes, in the order in which foxy found them. The list is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaints(pub Vec<Complaint>);

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, complaint) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{complaint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_shows_no_credentials() {
        let content = r#"parent = ["http://u:s3c'ret@a", "http://b"]"#;
        let place = FileLines::new(Path::new("foxy.toml"), content).place(0..1);
        assert_eq!(place.text, r#"parent = ["****************@a", "http://b"]"#);
        for (line, shown) in [
            (r#"parent = "http://user:SECRET""#, r#"parent = "http://***********""#),
            (r#"parent = "http://u:S%40a:1/""#, r#"parent = "http://*********/""#),
            (r#"engine = "redis://:123456""#, r#"engine = "redis://*******""#),
            (r#"engine = "unix:///a?pass=x&db=1""#, r#"engine = "unix:///a?pass=*******"#),
            (r#"parent = "http://[::1]:3128""#, r#"parent = "http://[::1]:3128""#),
            (r#"parent = "http://a.test:3128""#, r#"parent = "http://a.test:3128""#),
        ] {
            assert_eq!(without_credentials(line), shown);
        }
    }

    #[test]
    fn a_complaint_points_at_its_place() {
        let content = "listen = \"127.0.0.1:1\"\n\tsise = \"10G\"\n";
        let start = content.find("sise").expect("there");
        let place = FileLines::new(Path::new("foxy.toml"), content).place(start..start + 4);
        let complaint =
            Complaint { message: "no such setting".into(), source: Some(Source::File(place)) };
        assert_eq!(
            complaint.to_string(),
            "foxy.toml:2:2: no such setting\n  |\n2 | \tsise = \"10G\"\n  | \t^^^^"
        );
    }

    #[test]
    fn a_span_past_the_end_or_inside_a_character_is_harmless() {
        let lines = FileLines::new(Path::new("f"), "é");
        for span in [0..99, 1..2, 99..120] {
            assert!(lines.place(span).to_string().starts_with("f:1:"));
        }
    }
}
