//! Reads the input of the checks: the tracked files, and the output of `cargo metadata`.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Root folder of the workspace.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A tracked text file.
pub struct SourceFile {
    /// Path from the root, with slashes.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// Returns all text files that git tracks or would add. Leaves out ignored files.
pub fn files() -> Result<Vec<SourceFile>, String> {
    let listing = output("git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
    let mut files = Vec::new();
    for path in listing.lines() {
        let Ok(bytes) = std::fs::read(root().join(path)) else { continue };
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile { path: path.into(), text });
        }
    }
    if files.is_empty() {
        Err("git lists no files; run this in a checkout".into())
    } else {
        Ok(files)
    }
}

/// Returns `cargo metadata` of the whole dependency graph.
pub fn metadata() -> Result<Value, String> {
    let text = output("cargo", &["metadata", "--format-version", "1", "--locked"])?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata is not JSON: {error}"))
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|error| format!("{program} did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program} printed no UTF-8: {error}"))
}
