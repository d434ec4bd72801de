//! Tests `foxy check`, which tries a configuration as `foxy serve` would, and changes nothing.

use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `foxy check` with `content` as the configuration on standard input. Returns the exit code,
/// standard output and standard error.
fn check(folder: &Path, flags: &[&str], content: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env_clear().env("HOME", folder).args(["check", "-"]).args(flags);
    command.env("FOXY_WORKERS", "3").env("FOXY_WORKER", "4");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    child.stdin.take().expect("piped").write_all(content.as_bytes()).expect("foxy reads");
    let output = child.wait_with_output().expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_sound_file_passes_beside_a_running_foxy_and_nothing_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("bound");
    let content = format!("listen = \"{address}\"\nadmin = \"off\"\n");
    let (code, settings, report) = check(folder.path(), &[], &content);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        settings.contains("workers = 3 ") && settings.contains("# FOXY_WORKERS\n"),
        "{settings}"
    );
    assert!(
        report.contains("foxy: warning: -:1:1: cannot listen on ")
            && report.contains("stop the program")
    );
    assert!(report.contains("FOXY_WORKER is not a setting and has no effect"), "{report}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
}

#[test]
fn everything_that_serve_would_refuse_is_told_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("written");
    let place = folder.path().display();
    let content = format!(
        "listen = [\"127.0.0.1:0\", \"unix:{place}/file\", \"192.0.2.1:3128\"]\n\
         listen-tls = \"127.0.0.1:0\"\nadmin = \"off\"\nallow-client = \"192.0.2.0/24\"\n\
         store = \"{place}/file\"\nsize = \"64M\"\n\
         tls-certificate = \"{place}/a.pem\"\ntls-key = \"{place}/a.key\"\n\
         admin-token-file = \"{place}/token\"\naccess-log = \"{place}/none/log\"\n\
         [[rule]]\nname = \"no-video\"\nthen = {{ store = false }}\n"
    );
    let (code, settings, report) = check(folder.path(), &["--json"], &content);
    assert_eq!(code, Some(2), "{report}");
    let result: Value = serde_json::from_str(&settings).expect("JSON");
    assert_eq!((&result["ok"], &result["file"]), (&false.into(), &"-".into()));
    assert_eq!(result["settings"]["size"]["value"], "64 MiB");
    assert_eq!(result["settings"]["size"]["source"], "-:6:1");
    assert_eq!(result["rules"][0]["name"], "no-video");
    assert_eq!(result["rules"][0]["text"], "then = { store = false }");
    let complaints = result["complaints"].as_array().expect("a list");
    for (line, part) in [
        (1, "foxy leaves it alone"),
        (1, "cannot listen on 192.0.2.1:3128 (--listen): "),
        (5, "not a folder"),
        (7, "a.pem (tls-certificate): "),
        (9, "token (admin-token-file) cannot be read"),
        (10, "cannot open the access log "),
    ] {
        let is_told = complaints.iter().any(|complaint| {
            complaint["line"] == line
                && complaint["column"] == 1
                && complaint["severity"] == "error"
                && complaint["message"].as_str().is_some_and(|text| text.contains(part))
        });
        assert!(is_told, "{line}: {part}: {settings}");
        assert!(report.contains(part), "{report}");
    }
}
