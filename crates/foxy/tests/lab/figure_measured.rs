//! Tests the program `foxy figure` with figures that need measurements on real file systems.
//! Measures only what this machine and user allow.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.arg("figure").args(arguments).args(["--scale", "0.02", "--folder"]).arg(folder);
    command
}

fn rows(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("there").next().is_none()
}

fn mounts_in(folder: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").expect("readable");
    mounts.contains(folder.to_str().expect("UTF-8"))
}

#[test]
fn every_technique_is_measured_in_a_folder_that_is_empty_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = command(&["001-table2-disk"], folder.path()).output().expect("the binary runs");
    let measured = rows(&output).into_iter().filter(|line| line.contains(" measured "));
    assert_eq!(measured.filter(|line| !line.contains("not possible here")).count(), 20);
    assert!(is_empty(folder.path()));
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output =
        command(&["000-d1"], &folder.path().join("none")).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such folder"));
}

#[test]
fn a_terminated_run_leaves_no_mount_and_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = command(&["000-d1"], folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    while child.try_wait().expect("a child").is_none() && !mounts_in(folder.path()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
    let mut text = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut text).expect("text");
    let ended = child.wait().expect("ends");
    assert!(
        !status.success() || ended.code() == Some(3) || text.contains("not possible here"),
        "{ended}"
    );
    assert!(!mounts_in(folder.path()));
    assert!(is_empty(folder.path()));
}
