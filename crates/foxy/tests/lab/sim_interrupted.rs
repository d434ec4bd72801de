//! Tests `foxy sim` in a real folder. If a signal ends the run, it must remove its files. After a
//! kill, the next run must remove the files that remained.

use crate::support::commands;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn command(folder: &Path, scale: &str, schemes: &str) -> Command {
    let mut command = commands::command(&["sim", "--workload", "table1", "--scale", scale]);
    command
        .args(["--scheme", schemes, "--device"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Starts a run that would take many seconds, and waits until it has created its folder. Returns
/// the running command and this folder.
fn begun(folder: &Path) -> (Child, PathBuf) {
    let schemes = "ufs,single-directory,multiple-dirs,aufs,diskd";
    let mut child = command(folder, "0.02", schemes).spawn().expect("the binary runs");
    let prefix = format!("foxy-sim-{}-", child.id());
    loop {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before anything was made");
        let made = entries(folder).into_iter().find(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(&prefix))
        });
        match made {
            Some(made) => return (child, made),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).expect("there").flatten().map(|entry| entry.path()).collect()
}

/// Waits for the end of the command. Returns its exit code and its standard error.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut text = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    (child.wait().expect("ends").code(), text)
}

fn check_signal(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let (child, _) = begun(folder.path());
    commands::signal(child.id(), name);
    let (code, text) = end(child);
    assert_eq!(code, Some(3), "{name}: {text}");
    assert!(text.contains("stopped by a signal; its files are removed"), "{name}: {text}");
    assert!(entries(folder.path()).is_empty(), "{name}");
}

#[test]
fn an_interrupted_run_removes_what_it_made_and_says_so() {
    check_signal("INT");
    check_signal("TERM");
}

#[test]
fn a_run_removes_the_folders_of_killed_runs_and_keeps_those_of_running_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut killed, left) = begun(folder.path());
    let next = || end(command(folder.path(), "0.001", "stream").spawn().expect("the binary runs"));
    let (code, text) = next();
    assert!(
        code == Some(3) && left.exists() && text.contains("in use"),
        "beside a running one: {text}"
    );
    killed.kill().expect("it runs");
    killed.wait().expect("ends");
    assert!(left.exists(), "nobody could remove it");
    let (code, text) = next();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains(&format!("{}: removed; a killed run had left it", left.display())),
        "{text}"
    );
    assert!(entries(folder.path()).is_empty());
}
