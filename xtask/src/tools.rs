//! What the tests need beside a Rust toolchain: Node.js, which runs the public suite of caching checks. Where it is
//! missing and the system's package manager may be used, it is installed; where not, that is said aloud.

use std::process::{Command, Stdio};

const PROGRAMS: [&str; 2] = ["node", "npm"];

/// Looks, and installs what is missing if this user may.
pub fn check() -> Result<String, String> {
    if missing().is_empty() {
        return Ok("node and npm are here".into());
    }
    if succeeds("sh", &["-c", "test \"$(id -u)\" = 0 && command -v apt-get"]) {
        let packages = ["install", "--yes", "--no-install-recommends", "nodejs", "npm"];
        if !succeeds("apt-get", &packages) && succeeds("apt-get", &["update"]) {
            succeeds("apt-get", &packages);
        }
    }
    let missing = missing();
    if missing.is_empty() {
        return Ok("node and npm were installed".into());
    }
    let text = format!("{} missing; install Node.js 18 or later", missing.join(" and "));
    if std::env::var_os("CI").is_some() {
        Err(text)
    } else {
        Ok(format!("NOT ALL TESTS WILL BE RUN: {text}"))
    }
}

fn missing() -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|program| !succeeds(program, &["--version"])).collect()
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
