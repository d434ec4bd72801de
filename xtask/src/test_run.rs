//! Runs all tests. Runs a test that failed beside the others once more, alone: many tests start
//! servers and measure time, and a busy machine can starve a test. Names each such test.

use crate::workspace;
use std::io::{BufRead, BufReader, pipe};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Largest number of tests that are run again. More failures are no accident of a busy machine.
const MAX_REPEATED: usize = 5;

/// Interval at which a silent command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(200);

/// Beginning of the last line of a test program if one test ran and passed. A program whose tests
/// all have other names than the wanted test also succeeds.
const ONE_PASSED: &str = "test result: ok. 1 passed";

/// Runs the tests of the workspace with the options `more` of `cargo test`.
pub fn run(more: &[&str]) -> Result<String, String> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--no-fail-fast"]).args(more);
    let mut failures = Failures::default();
    let has_passed = run_and_read(command, |line| failures.read(line))?;
    if has_passed {
        return Ok("ok".into());
    }
    let failed: usize = failures.programs.iter().map(|program| program.tests.len()).sum();
    if !failures.are_complete() || failed > MAX_REPEATED {
        return Err(format!("cargo test failed; {failed} failed tests are named above"));
    }
    let mut repeated = Vec::new();
    for program in failures.programs {
        for test in &program.tests {
            println!("\n{test} failed beside other tests. Its second run, alone:");
            let mut has_run = false;
            let has_passed =
                run_and_read(program.alone(test), |line| has_run |= line.starts_with(ONE_PASSED))?;
            if !(has_passed && has_run) {
                return Err(format!("{test} failed beside other tests and alone"));
            }
        }
        repeated.extend(program.tests);
    }
    Ok(format!("ok, but these tests passed only alone: {}", repeated.join(", ")))
}

/// Runs a command, prints its output, and shows each line to `read`. Returns whether it succeeded.
fn run_and_read(mut command: Command, mut read: impl FnMut(&str)) -> Result<bool, String> {
    let (reader, writer) = pipe().map_err(|error| error.to_string())?;
    let other = writer.try_clone().map_err(|error| error.to_string())?;
    let child = command.stdout(writer).stderr(other).spawn();
    let mut child = child.map_err(|error| format!("cargo did not start: {error}"))?;
    drop(command);
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(reader).split(b'\n').map_while(Result::ok);
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    // A server that a test left behind keeps the pipe open, so the end of the pipe may never come.
    loop {
        match lines.recv_timeout(POLL) {
            Ok(line) => {
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                read(&line);
            }
            Err(RecvTimeoutError::Timeout) if !matches!(child.try_wait(), Ok(None)) => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    child.wait().map(|status| status.success()).map_err(|error| error.to_string())
}

/// A test program with failed tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Program {
    package: String,
    path: String,
    tests: Vec<String>,
}

impl Program {
    /// Returns the command that runs one test as `cargo test` does: in the package's folder.
    fn alone(&self, test: &str) -> Command {
        let root = workspace::root();
        let folders = [root.join("crates").join(&self.package), root.join(&self.package)];
        let folder = folders.into_iter().find(|folder| folder.is_dir()).unwrap_or(root.clone());
        let mut command = Command::new(root.join(&self.path));
        command.args(["--exact", test]).current_dir(folder);
        command
    }
}

/// The failed tests in the output of `cargo test`.
#[derive(Default)]
struct Failures {
    programs: Vec<Program>,
    /// Number of programs that failed, in the last lines of cargo.
    expected: Option<usize>,
    /// The path of the last program that started.
    running: String,
    /// The indented lines below the last line `failures:`.
    indented: Vec<String>,
    /// The failed tests of this program. Empty until the program's last line: it has not crashed.
    names: Vec<String>,
}

impl Failures {
    fn read(&mut self, line: &str) {
        if let Some((_, path)) = line.trim_start().strip_prefix("Running ").and_then(in_brackets) {
            self.running = path.into();
            self.indented.clear();
            self.names.clear();
        } else if line == "failures:" {
            self.indented.clear();
        } else if line.starts_with("test result: FAILED") {
            self.names = std::mem::take(&mut self.indented);
        } else if let Some(name) = line.strip_prefix("    ") {
            self.indented.push(name.into());
        } else if let Some(rest) = line.strip_prefix("error: test failed, to rerun pass `-p ") {
            let package = rest.split([' ', '`']).next().unwrap_or_default().into();
            let path = std::mem::take(&mut self.running);
            let tests = std::mem::take(&mut self.names);
            self.programs.push(Program { package, path, tests });
        } else if let Some(number) = line.strip_prefix("error: ").and_then(number_of_targets) {
            self.expected = Some(number);
        }
    }

    /// Whether the names of all failed tests are known. They are unknown after a crash of a test
    /// program, a failed doc test, or a compiler error.
    fn are_complete(&self) -> bool {
        self.expected == Some(self.programs.len())
            && self.programs.iter().all(|program| !program.tests.is_empty())
    }
}

/// Reads `2 targets failed:`.
fn number_of_targets(error: &str) -> Option<usize> {
    let (number, rest) = error.split_once(' ')?;
    matches!(rest, "target failed:" | "targets failed:").then(|| number.parse().ok())?
}

/// Splits `text (content)`.
fn in_brackets(line: &str) -> Option<(&str, &str)> {
    line.strip_suffix(')')?.rsplit_once(" (")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/foxy-1)
test a ... ok
test result: ok. 1 passed; 0 failed
     Running tests/tier/main.rs (target/debug/deps/tier-2)
test outage::b ... FAILED

failures:

---- outage::b stdout ----
    an indented line of a message

failures:
    outage::b
    c

test result: FAILED. 1 passed; 2 failed

error: test failed, to rerun pass `-p foxy --test tier`
";

    fn read(output: &str) -> Failures {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        failures
    }

    #[test]
    fn failed_tests_are_found_with_their_program() {
        let failures =
            read(&format!("{OUTPUT}error: 1 target failed:\n    `-p foxy --test tier`\n"));
        let expected = Program {
            package: "foxy".into(),
            path: "target/debug/deps/tier-2".into(),
            tests: vec!["outage::b".into(), "c".into()],
        };
        assert_eq!(failures.programs, [expected]);
        assert!(failures.are_complete());
    }

    #[test]
    fn failures_without_names_are_not_run_again() {
        let crash = "     Running tests/x.rs (target/debug/deps/x-3)\n\
            stack backtrace:\n    0: main\n\
            error: test failed, to rerun pass `-p foxy --test x`\n\
            error: 2 targets failed:\n";
        let doc =
            "error: doctest failed, to rerun pass `-p foxy --doc`\nerror: 2 targets failed:\n";
        for more in [crash, doc, "error: could not compile `foxy`\n"] {
            assert!(!read(&format!("{OUTPUT}{more}")).are_complete(), "{more}");
        }
    }
}
