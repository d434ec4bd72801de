//! Commands that are run to their end, what they said and wrote, and those that serve until they
//! are dropped.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// `foxy` with these arguments.
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

/// The command in a namespace where `folder` is a file system in memory with these options. `None`
/// where this user may not mount, not even there.
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
        .arg(format!("{mount} && exec \"$0\" \"$@\""))
        .arg(command.get_program())
        .args(command.get_args());
    inside.stdin(Stdio::null()).stdout(Stdio::null());
    Some(inside)
}

/// The run records in a file.
pub fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("written");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Sends a signal by name, as kill(1) takes it.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// A `foxy` that serves at an address that it says in its first line. It is killed when dropped.
pub struct Serving {
    child: Child,
    /// Where it serves.
    pub address: String,
}

impl Serving {
    /// The verifying origin.
    pub fn origin() -> Self {
        Self::start(&mut command(&["origin"]))
    }

    /// The verifying origin behind TLS. The certificate of its authority goes to a file.
    pub fn secure_origin(authority: &str) -> Self {
        Self::start(&mut command(&["origin", "--write-ca", authority]))
    }

    /// A reference proxy with its store in a folder.
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

    /// Waits until it has ended.
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

/// A command against an origin, as if that were a forward proxy, with a workload file of these
/// lines; its records.
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

/// The value of the first measure of that name.
pub fn value(records: &[serde_json::Value], name: &str) -> f64 {
    let record = records.iter().find(|record| record["name"] == name);
    record.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().expect("a number")
}
