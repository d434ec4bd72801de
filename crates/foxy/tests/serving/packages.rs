//! Tests the files of `packaging/`: the checkers of Debian and systemd must find no fault.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

/// Returns true if the program is installed. Without it the test cannot run.
fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let is_here = found.is_ok_and(|output| output.status.success());
    if !is_here {
        assert!(std::env::var_os("CI").is_none(), "{program} is missing");
        let text = format!("\nNOT RUN: a test of packaging/: {program} is missing\n");
        std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
    }
    is_here
}

/// Runs a program, which must succeed. Returns its standard output and standard error.
fn output(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {text:?}");
    text.concat()
}

#[test]
fn lintian_finds_no_fault_in_the_debian_package() {
    if !is_here("lintian") {
        return;
    }
    let built =
        output(Command::new(packaging().join("debian/build")).arg(env!("CARGO_BIN_EXE_foxy")));
    let package = built.lines().find(|line| line.starts_with("target/")).expect("a path");
    let package = packaging().join("..").join(package);
    let tags =
        output(Command::new("lintian").args(["--allow-root", "--fail-on=warning"]).arg(&package));
    assert!(!tags.contains("foxy: "), "{tags}");
}

#[test]
fn systemd_finds_no_fault_in_the_units_and_the_service_has_few_rights() {
    if !is_here("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for unit in ["foxy.service", "foxy.socket"] {
        let text = std::fs::read_to_string(packaging().join("systemd").join(unit)).expect("there");
        let installed = text
            .replace("/usr/bin/foxy", env!("CARGO_BIN_EXE_foxy"))
            .replace("Documentation=man:foxy(1)\n", "");
        assert_ne!(installed, text);
        std::fs::write(folder.path().join(unit), installed).expect("written");
    }
    let analyze = |arguments: &[&str]| {
        output(Command::new("systemd-analyze").args(arguments).current_dir(folder.path()))
    };
    assert_eq!(analyze(&["verify", "./foxy.service", "./foxy.socket"]), "");
    analyze(&["security", "--offline=true", "--threshold=20", "./foxy.service"]);
}

#[test]
fn the_kubernetes_manifests_are_complete_and_their_settings_are_valid() {
    let folder = packaging().join("kubernetes");
    let mut check = Command::new(env!("CARGO_BIN_EXE_foxy"));
    let home = tempfile::tempdir().expect("a folder");
    check.env_clear().env("HOME", home.path()).arg("check").arg(folder.join("foxy.toml"));
    assert!(output(&mut check).contains("allow-client = [\"10.0.0.0/8\"]"));
    let kubectl = Command::new("kubectl").arg("kustomize").arg(&folder).output();
    let Ok(built) = kubectl else {
        assert!(!is_here("kubectl"));
        return;
    };
    let text = String::from_utf8(built.stdout).expect("UTF-8");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // kustomize adds a hash to the name of the ConfigMap. It does so in both manifests only if
    // their names match.
    let config = text.split("  name: foxy-").nth(1).and_then(|rest| rest.lines().next());
    let config = config.expect("a name with the hash of the settings");
    assert!(text.matches(&format!("name: foxy-{config}")).count() >= 2, "{text}");
    for part in ["kind: Service\n", "kind: StatefulSet\n", "image: registry.example/foxy:latest"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}
