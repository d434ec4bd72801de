//! The leftovers of an import: directives without an exact equivalent, with the reason. Writes the
//! report in three forms: for the terminal, as comments at the end of the new file, and as JSON.

use serde_json::{Value, json};
use std::fmt;

/// The place of a line in the original configuration: the name of the file and the line number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OriginalPlace {
    /// The name of the file, if the main file includes this file.
    pub file: Option<String>,
    /// Number of the line, counted from 1. 0 means the file as a whole.
    pub line: usize,
}

impl fmt::Display for OriginalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file} line {}", self.line),
            None if self.line == 0 => f.write_str("the file"),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// The reason why a directive has no exact equivalent in the new configuration. The text explains
/// the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportReason {
    /// The original refuses or limits something that foxy would permit.
    Opens(String),
    /// The new file needs a manual step by the operator.
    Step(String),
    /// The new configuration has the directive, but foxy behaves differently in a detail.
    Differs(String),
    /// foxy has no equivalent.
    Missing(String),
    /// foxy needs no setting for this directive. The text says what foxy does.
    NotNeeded(String),
}

impl ImportReason {
    /// Returns the name of the reason in the JSON report.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Opens(_) => "permits-more",
            Self::Step(_) => "to-do",
            Self::Differs(_) => "differs",
            Self::Missing(_) => "no-equivalent",
            Self::NotNeeded(_) => "not-needed",
        }
    }

    const fn heading(&self) -> &'static str {
        match self {
            Self::Opens(_) => "The original denies or limits more than this file",
            Self::Step(_) => "To do",
            Self::Differs(_) => "Converted, with a difference",
            Self::Missing(_) => "Not converted",
            Self::NotNeeded(_) => "Not needed",
        }
    }

    fn text(&self) -> &str {
        let (Self::Opens(text)
        | Self::Step(text)
        | Self::Differs(text)
        | Self::Missing(text)
        | Self::NotNeeded(text)) = self;
        text
    }
}

/// A directive without an exact equivalent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub place: OriginalPlace,
    pub text: String,
    pub reason: ImportReason,
}

impl Leftover {
    /// Returns whether foxy would permit something that the original denies or limits.
    pub const fn opens(&self) -> bool {
        matches!(self.reason, ImportReason::Opens(_))
    }

    pub fn as_json(&self) -> Value {
        json!({
            "file": self.place.file,
            "line": self.place.line,
            "directive": self.text,
            "kind": self.reason.name(),
            "reason": self.reason.text(),
        })
    }
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.text, self.reason.text())
    }
}

/// Returns the report as text. A heading for each kind of reason comes first, the most important
/// kind at the top.
pub fn grouped(leftovers: &[Leftover]) -> String {
    let mut sorted: Vec<&Leftover> = leftovers.iter().collect();
    sorted.sort_by_key(|leftover| (leftover.reason.rank(), &leftover.place));
    let mut text = String::new();
    let mut heading = "";
    for leftover in sorted {
        if leftover.reason.heading() != heading {
            heading = leftover.reason.heading();
            text.push_str(&format!("{heading}:\n"));
        }
        text.push_str(&format!("  {leftover}\n"));
    }
    text
}

impl ImportReason {
    const fn rank(&self) -> u8 {
        match self {
            Self::Opens(_) => 0,
            Self::Step(_) => 1,
            Self::Differs(_) => 2,
            Self::Missing(_) => 3,
            Self::NotNeeded(_) => 4,
        }
    }
}

/// Turns each line of `text` into a comment of a TOML file.
pub fn commented(text: &str) -> String {
    let comment = |line: &str| {
        let plain: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("# {plain}").trim_end().to_owned() + "\n"
    };
    text.lines().map(comment).collect()
}
