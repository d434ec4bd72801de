//! The public suite of checks for HTTP caches, `http-cache-tests`, against a running foxy in front of the suite's own
//! origin. What it may find is what docs/conformance.md says, no more and no less.
//!
//! The npm package is installed under the target directory. Another cut of the suite is run by naming its folder:
//! `FOXY_CACHE_TESTS=/path/to/cache-tests cargo test -p foxy --test conformance`.

mod support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use support::Foxy;

const DOCUMENT: &str = include_str!("../../../docs/conformance.md");
const PACKAGE: &str = include_str!("conformance/package.json");
const LOCK: &str = include_str!("conformance/package-lock.json");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/suite.mjs");

/// Times a check that failed runs again, alone: some of them wait for a second to pass, on a machine that may be busy.
const CHANCES: u32 = 2;

#[test]
fn the_public_suite_finds_what_the_documentation_says() {
    let (folder, cut) = match std::env::var_os("FOXY_CACHE_TESTS") {
        Some(folder) => (PathBuf::from(folder), "newest"),
        None => match installed() {
            Ok(folder) => (folder, "npm"),
            Err(reason) => return not_run(&reason),
        },
    };
    let origin = Origin::start(&folder);
    let store = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{}", origin.port);
    let foxy = Foxy::start(store.path(), &["--origin", &url, "--access-log", "off"]);
    let base = format!("http://{}", foxy.proxy);
    let documented = documented(cut);
    let mut checks = run(&folder, &base, &[]);
    for _ in 0..CHANCES {
        let again: Vec<String> = failures(&checks).difference(&documented).cloned().collect();
        if again.is_empty() {
            break;
        }
        for (id, check) in run(&folder, &base, &again) {
            checks.insert(id, check);
        }
    }
    let failed = failures(&checks);
    let (required, optimal) = (share(&checks, &failed, "required"), share(&checks, &failed, "optimal"));
    let described = |ids: Vec<&String>| {
        ids.into_iter().map(|id| format!("\n  {id}: {}", checks[id].problem)).collect::<String>()
    };
    let unexpected = described(failed.difference(&documented).collect());
    assert!(unexpected.is_empty(), "checks that fail without a reason in docs/conformance.md:{unexpected}");
    let passed: Vec<&String> = documented.difference(&failed).collect();
    assert!(passed.is_empty(), "checks that pass, to be taken out of docs/conformance.md: {passed:?}");
    let row = format!("| `{cut}` | {required} | {optimal} |");
    assert!(DOCUMENT.contains(&row), "docs/conformance.md has no row {row}");
}

/// Says on the terminal, past the capture of passing tests, that nothing was checked; where all must be checked, fails.
fn not_run(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "the public suite was not run: {reason}");
    let text = format!("\nNOT RUN: the public suite of caching checks (docs/conformance.md): {reason}\n");
    std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
}

/// The folder of the npm package, installed if it is not there yet.
fn installed() -> Result<PathBuf, String> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("http-cache-tests");
    let package = place.join("node_modules/http-cache-tests");
    works("node")?;
    if std::fs::read_to_string(place.join("installed")).is_ok_and(|lock| lock == LOCK) {
        return Ok(package);
    }
    works("npm")?;
    std::fs::create_dir_all(&place).expect("a folder under the target directory");
    std::fs::write(place.join("package.json"), PACKAGE).expect("writable");
    std::fs::write(place.join("package-lock.json"), LOCK).expect("writable");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&place);
    let output = npm.output().map_err(|error| format!("npm did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm could not install it: {}", String::from_utf8_lossy(&output.stderr)));
    }
    std::fs::write(place.join("installed"), LOCK).expect("writable");
    Ok(package)
}

fn works(program: &str) -> Result<(), String> {
    let works = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if works { Ok(()) } else { Err(format!("{program} is not on the PATH; install Node.js 18 or later")) }
}

/// The suite's origin server. It ends when its standard input does.
struct Origin {
    child: Child,
    input: Option<ChildStdin>,
    port: u16,
}

impl Origin {
    fn start(folder: &Path) -> Self {
        let mut child = node("serve", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node ran before");
        let input = child.stdin.take();
        let said = BufReader::new(child.stdout.take().expect("piped"));
        let port =
            said.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("port ")?.parse().ok());
        Self { child, input, port: port.expect("the suite's origin says its port") }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.input.take());
        let _status = self.child.wait();
    }
}

fn node(action: &str, folder: &Path) -> Command {
    let mut command = Command::new("node");
    command.args(["--no-warnings", SCRIPT, action]).arg(folder);
    command
}

/// A check and what came of it.
struct Check {
    kind: String,
    needs: Vec<String>,
    passed: bool,
    problem: String,
}

/// Runs all checks, or those named.
fn run(folder: &Path, base: &str, ids: &[String]) -> BTreeMap<String, Check> {
    let output = node("run", folder).arg(base).arg(ids.join(",")).output().expect("node ran before");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the suite did not run: {errors}");
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list of checks");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let check = |value: &Value| Check {
        kind: text(&value["kind"]),
        needs: value["needs"].as_array().expect("a list").iter().map(text).collect(),
        passed: value["passed"] == true,
        problem: text(&value["problem"]),
    };
    checks.iter().map(|value| (text(&value["id"]), check(value))).collect()
}

/// The required and optimal checks that failed, or need one that did, as the suite counts them.
fn failures(checks: &BTreeMap<String, Check>) -> BTreeSet<String> {
    fn passes(checks: &BTreeMap<String, Check>, id: &str) -> bool {
        checks
            .get(id)
            .is_some_and(|check| check.passed && check.needs.iter().all(|needed| passes(checks, needed)))
    }
    let counted = checks.iter().filter(|(_, check)| check.kind != "check");
    counted.map(|(id, _)| id).filter(|id| !passes(checks, id)).cloned().collect()
}

/// How many of a kind passed, in the words of the document.
fn share(checks: &BTreeMap<String, Check>, failed: &BTreeSet<String>, kind: &str) -> String {
    let all: Vec<_> = checks.iter().filter(|(_, check)| check.kind == kind).collect();
    let passed = all.iter().filter(|(id, _)| !failed.contains(*id)).count();
    format!("{passed} of {}", all.len())
}

/// The checks that docs/conformance.md gives a reason for: rows `| ids | kind | cuts | reason |`.
fn documented(cut: &str) -> BTreeSet<String> {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    let columns = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(|columns| columns.len() == 4);
    let of_cut = columns.filter(|columns| columns[2].split(", ").any(|named| named == cut));
    of_cut.flat_map(|columns| columns[0].split('`').skip(1).step_by(2).map(str::to_owned)).collect()
}
