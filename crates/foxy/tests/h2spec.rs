//! Runs `h2spec`, a conformance test for HTTP/2, against a running foxy with a small origin. A run
//! uses TCP without TLS (prior knowledge), another uses TLS. The failures must be exactly the
//! failures that docs/conformance.md lists.
//!
//! `cargo xtask tools` installs h2spec in the target directory. To use another h2spec, name it:
//! `FOXY_H2SPEC=/path/to/h2spec cargo test -p foxy --test h2spec`.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Foxy, Origin};

const DOCUMENT: &str = include_str!("../../../docs/conformance.md");

/// Number of times that a failed check is repeated. Some checks wait for a second to pass, and a
/// busy machine delays them.
const CHANCES: u32 = 2;

#[test]
fn h2spec_finds_what_the_documentation_says() {
    let Some(program) = program() else {
        let reason = "h2spec is not installed; `cargo xtask tools` does that where Go is";
        return support::not_run("checks of HTTP/2 by h2spec (docs/conformance.md)", reason);
    };
    let (origin, folder) = (Origin::start(), tempfile::tempdir().expect("a folder"));
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&certificate, made.cert.pem()).expect("writable");
    support::write_secret(&key, &made.signing_key.serialize_pem());
    let foxy = Foxy::start(
        &folder.path().join("store"),
        &[
            "--origin",
            &format!("http://{}", origin.address),
            "--listen-tls",
            "127.0.0.1:0",
            "--tls-certificate",
            certificate.to_str().expect("a path of UTF-8"),
            "--tls-key",
            key.to_str().expect("a path of UTF-8"),
            "--access-log",
            "off",
        ],
    );
    let secure = foxy.welcome.split_once("https://127.0.0.1:").expect("a line about TLS").1;
    let secure = secure.split(' ').next().and_then(|port| port.parse().ok()).expect("a port");
    for (over, port, more) in
        [("plain TCP", foxy.proxy.port(), &[][..]), ("TLS", secure, &["-t", "-k"])]
    {
        check(&program, over, port, more);
    }
}

fn check(program: &Path, over: &str, port: u16, more: &[&str]) {
    let documented = documented(over);
    let mut failed = run(program, port, more, over);
    for _ in 0..CHANCES {
        if failed == documented {
            return;
        }
        failed = run(program, port, more, over);
    }
    assert_eq!(
        failed, documented,
        "over {over}: checks that fail, and those docs/conformance.md says do"
    );
}

/// Runs all checks. Returns the names of the failed checks as `section/number`.
fn run(program: &Path, port: u16, more: &[&str], over: &str) -> BTreeSet<String> {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(program);
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-j"]).arg(report.path()).args(more);
    let output = command.output().expect("h2spec starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let text = std::fs::read_to_string(report.path()).expect("a report");
    let (count, failed) = results(&text);
    assert!(count > 100, "h2spec did not run: {said}");
    if failed == documented(over) {
        let row = format!("| {over} | {} of {count} |", count - failed.len());
        assert!(DOCUMENT.contains(&row), "docs/conformance.md has no row {row}");
    }
    failed
}

/// Parses a JUnit report. Returns the number of checks, and the names of the failed checks. A name
/// consists of the section and a number within it.
fn results(report: &str) -> (usize, BTreeSet<String>) {
    let (mut count, mut failed, mut package, mut number) = (0, BTreeSet::new(), String::new(), 0);
    for line in report.lines().map(str::trim) {
        if line.starts_with("<testsuite ") {
            package = attribute(line, "package").to_owned();
            number = 0;
        } else if line.starts_with("<testcase ") {
            (count, number) = (count + 1, number + 1);
        } else if line.starts_with("<failure") || line.starts_with("<error") {
            failed.insert(format!("{package}/{number}"));
        }
    }
    (count, failed)
}

fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    let after = line.split_once(&format!(" {name}=\"")).map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default()
}

/// Returns the checks whose failure docs/conformance.md explains for this transport. The table rows
/// have the columns check, transports and reason.
fn documented(over: &str) -> BTreeSet<String> {
    let is_check = |line: &&str| {
        ["| `generic/", "| `http2/", "| `hpack/"].iter().any(|suite| line.starts_with(suite))
    };
    let rows = DOCUMENT.lines().filter(is_check);
    let columns = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let here = columns.filter(|columns| {
        columns.get(1).is_some_and(|named| named.split(", ").any(|one| one == over))
    });
    here.filter_map(|columns| columns[0].split('`').nth(1).map(str::to_owned)).collect()
}

/// Returns the path of h2spec: the path in `FOXY_H2SPEC`, or the installed program.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FOXY_H2SPEC") {
        return Some(named.into());
    }
    let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools/h2spec");
    installed.exists().then_some(installed)
}
