//! Length ratchets: numbers in `xtask/ratchet.json` that may only fall. Functions are held by clippy (clippy.toml).

use crate::workspace::{self, SourceFile};
use serde_json::{Value, json};

/// Lines above which a source file counts as long.
const LONG: usize = 300;
const FILE: &str = "xtask/ratchet.json";

/// What is ratcheted.
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

    fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
        let number = |name: &str| {
            let number = value[name].as_u64().and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| format!("{FILE}: no whole number {name:?}"))
        };
        Ok(Self { longest_file: number("longest_file")?, long_files: number("long_files")? })
    }

    fn above(&self, limit: &Self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.longest_file > limit.longest_file {
            wrong.push(format!(
                "the longest file has {} lines; the ratchet stands at {}",
                self.longest_file, limit.longest_file
            ));
        }
        if self.long_files > limit.long_files {
            wrong.push(format!(
                "{} files are over {LONG} lines; the ratchet stands at {}",
                self.long_files, limit.long_files
            ));
        }
        wrong
    }
}

/// What has grown past the ratchet.
pub fn complaints(files: &[SourceFile]) -> Result<Vec<String>, String> {
    let text =
        std::fs::read_to_string(workspace::root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(Lengths::of(files).above(&Lengths::parse(&text)?))
}

/// Lowers the ratchet to where the tree stands now.
pub fn tighten() -> Result<String, String> {
    let now = Lengths::of(&workspace::files()?);
    let value = json!({"longest_file": now.longest_file, "long_files": now.long_files});
    std::fs::write(workspace::root().join(FILE), format!("{value:#}\n"))
        .map_err(|error| format!("{FILE}: {error}"))?;
    Ok(format!("{FILE}: longest file {}, files over {LONG} lines {}", now.longest_file, now.long_files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_past_the_ratchet_is_named() {
        let text = "//! x\n".repeat(301);
        let lengths = Lengths::of(&[SourceFile { path: "a.rs".into(), text }]);
        assert_eq!(lengths, Lengths { longest_file: 301, long_files: 1 });
        assert_eq!(lengths.above(&Lengths { longest_file: 300, long_files: 0 }).len(), 2);
        assert_eq!(lengths.above(&Lengths { longest_file: 301, long_files: 1 }).len(), 0);
    }
}
