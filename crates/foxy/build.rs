//! Tells the program its commit and the date of the commit, for `foxy --version`.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    let commit = git(&["log", "-1", "--format=commit %h of %cs"]);
    println!("cargo::rustc-env=COMMIT={}", commit.as_deref().unwrap_or("unknown commit"));
    // Git adds a line to this file at each commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
