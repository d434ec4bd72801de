//! Runs foxy commands to their end and returns their output. Also starts foxy commands that run
//! until they are stopped or dropped.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// Prepares `foxy` with these arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.args(arguments);
    command
}

/// Runs `foxy` with these arguments to its end. Returns exit code, standard output and standard
/// error.
pub fn foxy(arguments: &[&str]) -> (Option<i32>, String, String) {
    ended(&mut command(arguments))
}

/// Runs a command to its end. Returns exit code, standard output and standard error.
pub fn ended(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Returns a command that does the same in a new mount namespace. There, `folder` is a file system
/// in memory with these mount options. Returns `None` if this user may not mount, even in a
/// namespace.
pub fn on_file_system(options: &str, folder: &Path, command: &Command) -> Option<Command> {
    let namespace = || {
        let mut namespace = Command::new("unshare");
        namespace.args(["--map-root-user", "--mount", "--", "sh", "-c"]);
        namespace
    };
    let mount = format!("mount -t tmpfs -o {options} none '{}'", folder.display());
    if !namespace().arg(&mount).status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut inside = namespace();
    inside
        .arg(format!("{mount} && exec env -i \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args());
    inside.stdin(Stdio::null()).stdout(Stdio::null());
    Some(inside)
}

/// Returns the run records in a file.
pub fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("written");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns the value of the first measure of `subject` with this name.
pub fn measure(records: &[Value], subject: &str, name: &str) -> Option<f64> {
    let is_it = |record: &&Value| record["subject"] == subject && record["name"] == name;
    records.iter().find(is_it)?["value"].as_f64()
}

/// Sends a signal by its name, as for kill(1).
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// A running `foxy` command that prints lines at its start, and its results when it is stopped.
/// Drop kills it.
pub struct Running {
    pub child: Child,
    out: BufReader<ChildStdout>,
    /// The lines that the command printed at its start.
    lines: Vec<String>,
}

impl Running {
    /// Starts the command. Waits until it has printed `lines` lines.
    pub fn start(command: &mut Command, lines: usize) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut read = || {
            let mut line = String::new();
            out.read_line(&mut line).expect("a line");
            line
        };
        let lines = (0..lines).map(|_| read()).collect();
        Self { child, out, lines }
    }

    /// Returns the address that follows `text` in a line of the start.
    pub fn address(&self, line: usize, text: &str) -> &str {
        let line = &self.lines[line];
        let rest = line.split(text).nth(1).unwrap_or_else(|| panic!("no {text:?} in {line:?}"));
        rest.split('/').next().expect("a first part").trim_end()
    }

    /// Stops the command with a signal. Returns its exit code and its other output.
    pub fn stop(mut self, name: &str) -> (Option<i32>, String) {
        signal(self.child.id(), name);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("a child").code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

/// A running `foxy` command that prints its address in its first line, such as `foxy origin`. Drop
/// kills it.
pub struct Serving {
    running: Running,
    /// Address at which the command serves.
    pub address: String,
}

impl Serving {
    /// Starts `foxy origin`. Clients such as `foxy load` can check every byte of its responses.
    pub fn origin() -> Self {
        Self::start(&mut command(&["origin"]))
    }

    /// Starts `foxy origin` with TLS. Writes the certificate of its authority to the file
    /// `authority`.
    pub fn secure_origin(authority: &str) -> Self {
        Self::start(&mut command(&["origin", "--write-ca", authority]))
    }

    /// Starts `foxy reference`, a simple caching proxy, with its store in the folder `store`.
    pub fn reference(store: &Path, arguments: &[&str]) -> Self {
        Self::start(command(&["reference"]).args(arguments).arg("--store").arg(store))
    }

    fn start(command: &mut Command) -> Self {
        let running = Running::start(command.args(["--listen", "127.0.0.1:0"]), 1);
        let address = running.address(0, "://").to_owned();
        Self { running, address }
    }

    pub fn id(&self) -> u32 {
        self.running.child.id()
    }

    /// Waits until the command has ended.
    pub fn wait(mut self) -> ExitStatus {
        self.running.child.wait().expect("a child")
    }
}

/// Runs the lab command `name` with an origin in place of a forward proxy. Writes `lines` to the
/// workload file. Returns the records.
pub fn run_workload(name: &str, lines: &str, more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let (workload, file) = (folder.path().join("mine.toml"), folder.path().join("run.jsonl"));
    std::fs::write(&workload, lines).expect("written");
    let origin = Serving::origin();
    let mut command = command(&[name, "--proxy", &origin.address, "--origin", &origin.address]);
    command.arg("--workload").arg(workload).arg("--json").arg(&file).args(more);
    let (code, _, err) = ended(&mut command);
    assert_eq!(code, Some(0), "{err}");
    records(&file)
}

/// Returns the value of the first record of a measure with this name.
pub fn value(records: &[Value], name: &str) -> f64 {
    let record = records.iter().find(|record| record["name"] == name);
    record.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().expect("a number")
}
