//! Runs the cache suite against a running foxy, in front of the suite's own origin.

use crate::checks::{Check, Checks, DOCUMENT, assert_documented, documented, failures, share};
use crate::suite::{self, Cut};
use crate::support::Foxy;
use crate::virtual_time;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};

/// Number of times that a failed check is run again alone. Some checks wait for a second to pass,
/// and fail on a busy machine.
const CHANCES: u32 = 2;

#[test]
fn the_public_suite_finds_what_the_documentation_says() {
    let Some(cut) = suite::cut() else { return };
    let origin = Origin::start(&cut);
    let store = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{}", origin.port);
    let foxy = Foxy::start(store.path(), &["--origin", &url, "--access-log", "off"]);
    let base = format!("http://{}", foxy.proxy);
    let documented = documented(cut.name);
    let played = virtual_time::play(&cut);
    let mut checks = run(&cut, &base, &[]);
    for _ in 0..CHANCES {
        let mut again: BTreeSet<String> =
            failures(&checks).difference(&documented).cloned().collect();
        again.extend(differing(&checks, &played));
        if again.is_empty() {
            break;
        }
        checks.extend(run(&cut, &base, &again.into_iter().collect::<Vec<_>>()));
    }
    assert_documented(&checks, &documented);
    let described = |id: String| {
        let [here, there] = [&checks[&id], &played[&id]].map(|check| check.problem.as_str());
        format!("\n  {id}: here {here:?}, in virtual time {there:?}")
    };
    let differing: String = differing(&checks, &played).into_iter().map(described).collect();
    assert!(
        differing.is_empty(),
        "checks that come out otherwise than in virtual time:{differing}"
    );
    let row = format!(
        "| `{}` | {} | {} |",
        cut.name,
        share(&checks, "required"),
        share(&checks, "optimal")
    );
    assert!(DOCUMENT.contains(&row), "docs/conformance.md has no row {row}");
}

/// Returns the checks that passed over sockets but not in virtual time, or the other way round.
fn differing(checks: &Checks, played: &Checks) -> Vec<String> {
    let differs =
        |id: &String| checks.get(id).is_none_or(|check| check.passed != played[id].passed);
    played.keys().filter(|id| differs(id)).cloned().collect()
}

/// The suite's origin server. It ends when its standard input closes.
struct Origin {
    child: Child,
    input: Option<ChildStdin>,
    port: u16,
}

impl Origin {
    fn start(cut: &Cut) -> Self {
        let mut child = cut
            .node("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node ran before");
        let input = child.stdin.take();
        let said = BufReader::new(child.stdout.take().expect("piped"));
        let port = said
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("port ")?.parse().ok());
        Self { child, input, port: port.expect("the suite's origin says its port") }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.input.take());
        let _status = self.child.wait();
    }
}

/// Runs the checks with these ids, or all checks if `ids` is empty.
fn run(cut: &Cut, base: &str, ids: &[String]) -> Checks {
    let output = cut.output("run", &[base, &ids.join(",")]);
    let checks: Vec<Value> = serde_json::from_slice(&output).expect("a list of checks");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let check = |value: &Value| Check {
        kind: text(&value["kind"]),
        needs: value["needs"].as_array().expect("a list").iter().map(text).collect(),
        passed: value["passed"] == true,
        problem: text(&value["problem"]),
    };
    checks.iter().map(|value| (text(&value["id"]), check(value))).collect()
}
