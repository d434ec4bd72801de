//! Tests the command line as scripts use it: exit codes, and the output on standard output and
//! standard error.

use std::process::{Command, Output, Stdio};

fn foxy(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.args(arguments).env_clear().stdin(Stdio::null()).output().expect("the binary runs")
}

fn check(arguments: &[&str], code: i32, standard_output: &[&str], standard_error: &[&str]) {
    let output = foxy(arguments);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{err}");
    for part in standard_output {
        assert!(out.contains(part), "{arguments:?} printed {out:?}, not {part:?}");
    }
    for part in standard_error {
        assert!(err.contains(part), "{arguments:?} reported {err:?}, not {part:?}");
    }
}

#[test]
fn help_and_version_are_printed() {
    check(&["--help"], 0, &["serve", "check", "load", "origin"], &[]);
    check(
        &["serve", "--help"],
        0,
        &["--listen <ADDRESS|off>", "[default: 127.0.0.1:3128]", "--config"],
        &[],
    );
    check(&["--version"], 0, &["foxy 0.", " (commit ", ", with the lab)"], &[]);
}

#[test]
fn the_help_groups_the_commands() {
    let output = foxy(&["--help"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let order =
        ["\nProxy:\n", "\n  serve  ", "\nLook:\n", "\n  explain  ", "\nLab:\n", "\n  load  "];
    let places = order.map(|part| text.find(part).unwrap_or_else(|| panic!("{part:?}: {text}")));
    assert!(places.is_sorted(), "{text}");
    assert!(!text.contains("disk-helper"), "{text}");
}

#[test]
fn completions_and_manual_pages_come_from_the_table_of_commands() {
    for shell in ["bash", "zsh", "fish"] {
        check(&["completions", shell], 0, &["allow-client", "fsck"], &[]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("man1");
    check(&["man", pages.to_str().expect("UTF-8")], 0, &[], &[]);
    let page = std::fs::read_to_string(pages.join("foxy-serve.1")).expect("a page");
    assert!(page.contains("allow\\-client"), "{page}");
    check(&["man", "/proc/none"], 3, &[], &["cannot write manual pages to /proc/none: "]);
}

#[test]
fn the_schema_of_the_settings_file_is_printed() {
    let schema = ["\"$schema\"", "\"additionalProperties\": false", "\"tls-handshake\""];
    check(&["check", "--print-schema"], 0, &schema, &[]);
    check(&["check", "--help"], 0, &["--print-schema"], &[]);
}

#[test]
fn unknown_flags_and_commands_are_unusable() {
    check(&["serve", "--lisen", "127.0.0.1:0"], 2, &[], &["--lisen", "--listen"]);
    check(&["brew"], 2, &[], &["brew"]);
    check(&[], 2, &[], &["Usage"]);
}

#[test]
fn bad_values_are_refused_together_before_anything_is_opened() {
    check(
        &["serve", "--size", "10X", "--workers", "0"],
        2,
        &[],
        &["--size: size \"10X\" has an unknown unit", "--workers: 0 is too small; give at least 1"],
    );
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("foxy.toml");
    std::fs::write(&path, "listen = \"127.0.0.1:0\"\nsise = \"1G\"\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    let expected =
        [":2:1: there is no setting `sise`; did you mean `size`?", "2 | sise = \"1G\"\n  | ^^^^\n"];
    check(&["check", path], 2, &[], &expected);
    check(&["serve", "--config", path], 2, &[], &expected);
}

#[test]
fn a_sound_file_is_shown_with_what_it_leads_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("foxy.toml");
    std::fs::write(&path, "size = \"1G\"\n").expect("written");
    let path = path.to_str().expect("UTF-8");
    check(
        &["check", path],
        0,
        &["size = \"1 GiB\"", "foxy.toml:1:1", "listen = \"127.0.0.1:3128\""],
        &[],
    );
    check(
        &["check", "/nonexistent/foxy.toml"],
        2,
        &[],
        &["cannot read the configuration file /nonexistent"],
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    let status =
        command.args(["check", "--print-docs"]).stdout(writer).status().expect("the binary runs");
    assert_eq!(status.code(), Some(0));
}
