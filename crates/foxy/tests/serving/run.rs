//! Tests `foxy run`: the environment that the command gets, the exit code, and the files that
//! remain.

use crate::support::commands::signal;
use crate::support::{Origin, request};
use foxy_testkit::ports::free_address;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Prepares `foxy run` with a shell script as its command. The store is in `folder`.
pub fn foxy_run(folder: &Path, more: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", folder).env("TMPDIR", folder);
    command.args(["run", "--size", "64M", "--memory", "8M", "--allow-destination", "127.0.0.0/8"]);
    command.args(more).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running `foxy run` whose command has printed its first line and waits for a line on standard
/// input.
pub struct Waiting {
    child: Child,
    pub said: String,
    rest: BufReader<std::process::ChildStdout>,
}

impl Waiting {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary runs");
        let mut rest = BufReader::new(child.stdout.take().expect("piped"));
        let mut said = String::new();
        rest.read_line(&mut said).expect("readable");
        Self { child, said: said.trim().to_owned(), rest }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes standard input, so that the command ends, and waits for `foxy run`. Returns its exit
    /// code and standard error.
    pub fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        self.rest.read_to_string(&mut String::new()).expect("readable");
        let output = self.child.wait_with_output().expect("a child");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Requests a page of the origin through the proxy that has the URL `proxy`.
pub fn fetch(origin: &Origin, proxy: &str, page: &str) {
    let proxy = proxy.trim_start_matches("http://").parse().expect("an address");
    let (url, host) = (origin.url(page), origin.address);
    let text = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    assert_eq!(request(proxy, &text).status, 200);
}

#[test]
fn a_command_downloads_through_the_cache_and_the_last_line_says_what_came_from_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    for expected in ["1 request, 0 of them", "1 request, 1 of them"] {
        let command = foxy_run(folder.path(), &[], "echo $http_proxy; read line; exit 5");
        let waiting = Waiting::start(command);
        fetch(&origin, &waiting.said, "x");
        let (code, reports) = waiting.end();
        assert_eq!(code, Some(5), "{reports}");
        assert!(
            reports.lines().last().is_some_and(|line| line.contains(expected)),
            "{expected}: {reports}"
        );
    }
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_command_trusts_the_authority_of_its_run_and_no_key_is_written_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "grep -c BEGIN.CERT \"$SSL_CERT_FILE\"; dirname \"$SSL_CERT_FILE\"; \
                  grep -rl 'PRIVATE KEY' \"$HOME\" && exit 9; test \"$PIP_CERT\" = \"$NODE_EXTRA_CA_CERTS\"";
    let output = foxy_run(folder.path(), &[], script).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = said.lines();
    assert!(
        lines.next().and_then(|count| count.parse().ok()).is_some_and(|count: u32| count >= 1),
        "{said}"
    );
    let trusted = lines.next().expect("a folder");
    assert!(trusted.starts_with(folder.path().to_str().expect("UTF-8")), "{trusted}");
    assert!(!Path::new(trusted).exists(), "removed at the end");
}

#[test]
fn a_signal_reaches_the_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap 'kill $!; exit 33' TERM; sleep 60 & echo ready; wait $!";
    let waiting = Waiting::start(foxy_run(folder.path(), &[], script));
    assert_eq!(waiting.said, "ready");
    signal(waiting.id(), "TERM");
    assert_eq!(waiting.end().0, Some(33));
}

#[test]
fn a_run_with_other_settings_has_a_store_of_its_own_and_keeps_it_for_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let first = Waiting::start(foxy_run(folder.path(), &[], "echo ready; read line; exit 0"));
    for (expected, is_new) in [("1 request, 0 of them", true), ("1 request, 1 of them", false)] {
        let script = "echo $http_proxy; read line; exit 0";
        let other = ["--intercept", "other.test"];
        let second = Waiting::start(foxy_run(folder.path(), &other, script));
        fetch(&origin, &second.said, "x");
        let (code, reports) = second.end();
        assert_eq!(code, Some(0), "{reports}");
        assert!(
            reports.lines().last().is_some_and(|line| line.contains(expected)),
            "{expected}: {reports}"
        );
        let said =
            format!("foxy: stores downloads in {}/.cache/foxy-run-2, ", folder.path().display());
        assert_eq!(reports.contains(&said), is_new, "{reports}");
    }
    let (_, reports) = first.end();
    let expected = format!(
        "foxy: stores downloads in {}/.cache/foxy-run, up to 64 MiB \
         (--size",
        folder.path().display()
    );
    assert!(reports.contains(&expected), "{reports}");
}

#[test]
fn of_runs_that_start_at_the_same_moment_none_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |_| foxy_run(folder.path(), &[], "exit 0").spawn().expect("the binary runs");
    for child in (0..6).map(start).collect::<Vec<_>>() {
        let output = child.wait_with_output().expect("a child");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_run_for_which_no_store_is_left_says_that_it_has_memory_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let waiting = |number| {
        let host = format!("{number}.test");
        let other = ["--intercept", &host];
        Waiting::start(foxy_run(folder.path(), &other, "echo ready; read line; exit 0"))
    };
    let all: Vec<Waiting> = (0..8).map(waiting).collect();
    let last = foxy_run(folder.path(), &[], "exit 0").output().expect("the binary runs");
    let reports = String::from_utf8_lossy(&last.stderr);
    assert_eq!(last.status.code(), Some(0), "{reports}");
    assert!(reports.contains("this command stores downloads only in memory"), "{reports}");
    all.into_iter().for_each(|waiting| assert_eq!(waiting.end().0, Some(0)));
}

#[test]
fn what_cannot_be_run_is_named_with_the_code_of_a_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env("HOME", folder.path()).args(["run", "--size", "64M", "--", "/nonexistent/program"]);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(127));
    let reports = String::from_utf8_lossy(&output.stderr);
    assert!(reports.contains("foxy: /nonexistent/program: No such file"), "{reports}");
}

#[test]
fn a_proxy_that_does_not_answer_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = free_address();
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env("HOME", folder.path()).args(["run", "--proxy", &free.to_string(), "--", "true"]);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    let reports = String::from_utf8_lossy(&output.stderr);
    assert!(reports.contains(&format!("no proxy answers at {free} (--proxy)")), "{reports}");
}
