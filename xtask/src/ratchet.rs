//! Length ratchets: numbers in `xtask/ratchet.json` that may only fall. Functions are held by clippy (clippy.toml).

use crate::workspace::{self, SourceFile};
use serde_json::{Value, json};

/// A source file with more lines counts as long. The number of long files may only fall.
const LONG: usize = 500;
/// A source file with more lines fails, whatever the ratchet says.
const TOO_LONG: usize = 800;
const FILE: &str = "xtask/ratchet.json";

/// How long the source files are.
#[derive(Debug, PartialEq, Eq)]
struct Lengths {
    longest_file: usize,
    long_files: usize,
}

impl Lengths {
    fn of(files: &[SourceFile]) -> Self {
        let lines =
            files.iter().filter(|file| file.path.ends_with(".rs")).map(|file| file.text.lines().count());
        let lines: Vec<usize> = lines.collect();
        Self {
            longest_file: lines.iter().copied().max().unwrap_or(0),
            long_files: lines.iter().filter(|&&count| count > LONG).count(),
        }
    }

    fn above(&self, long_files: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.longest_file > TOO_LONG {
            wrong.push(format!("the longest file has {} lines; the limit is {TOO_LONG}", self.longest_file));
        }
        if self.long_files > long_files {
            wrong.push(format!(
                "{} files are over {LONG} lines; the ratchet stands at {long_files}",
                self.long_files
            ));
        }
        wrong
    }
}

/// The number of long files that the ratchet's file allows.
fn allowed(text: &str) -> Result<usize, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
    let number = value["long_files"].as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("{FILE}: no whole number \"long_files\""))
}

/// What has grown past the ratchet.
pub fn complaints(files: &[SourceFile]) -> Result<Vec<String>, String> {
    let text =
        std::fs::read_to_string(workspace::root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(Lengths::of(files).above(allowed(&text)?))
}

/// Lowers the ratchet to where the tree stands now.
pub fn tighten() -> Result<String, String> {
    let now = Lengths::of(&workspace::files()?);
    let value = json!({"long_files": now.long_files});
    std::fs::write(workspace::root().join(FILE), format!("{value:#}\n"))
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(format!("{FILE}: longest file {}, files over {LONG} lines {}", now.longest_file, now.long_files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_past_the_ratchet_is_named() {
        let text = "//! x\n".repeat(801);
        let lengths = Lengths::of(&[SourceFile { path: "a.rs".into(), text }]);
        assert_eq!(lengths, Lengths { longest_file: 801, long_files: 1 });
        assert_eq!(lengths.above(0).len(), 2);
        let lengths = Lengths { longest_file: 800, long_files: 1 };
        assert_eq!(lengths.above(1).len(), 0);
    }
}
