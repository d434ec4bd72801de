//! Runs foxy commands to their end and returns their output. Also starts foxy commands that serve
//! until they are dropped.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

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

/// Sends a signal by its name, as for kill(1).
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// A running `foxy` command that prints its address in its first line, such as `foxy origin`. Drop
/// kills it.
pub struct Serving {
    child: Child,
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
        let mut child = command
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Self { child, address }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the command has ended.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("a child")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

/// Runs the lab command `name` with an origin in place of a forward proxy. Writes `lines` to the
/// workload file. Returns the records.
pub fn run_workload(name: &str, lines: &str, more: &[&str]) -> Vec<serde_json::Value> {
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
pub fn value(records: &[serde_json::Value], name: &str) -> f64 {
    let record = records.iter().find(|record| record["name"] == name);
    record.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().expect("a number")
}
