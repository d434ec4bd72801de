//! Tests `foxy ca`, and a proxy that uses the created authority: the output, and authorities with
//! which foxy does not start.

use crate::support::{Foxy, refused};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn ca(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.arg("ca").args(arguments).arg("--dir").arg(folder).output().expect("the binary runs")
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].concat().iter().map(|&byte| char::from(byte)).collect()
}

#[test]
fn an_authority_is_made_once_and_shown_and_served_with() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("ca");
    let made =
        ca(&["init", "--allow", "example.org", "--allow", "192.0.2.0/24", "--days", "30"], &folder);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    assert_eq!(said(&made), said(&ca(&["show"], &folder)));
    assert!(said(&made).contains("hosts        example.org, 192.0.2.0/24\n"), "{}", said(&made));
    let again = ca(&["init", "--allow", "example.org"], &folder);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("already"), "{}", said(&again));
    let folder = folder.to_str().expect("UTF-8");
    let foxy = Foxy::start(
        &place.path().join("store"),
        &["--intercept-ca", folder, "--intercept-host", "*.example.org"],
    );
    foxy.kill();
}

#[test]
fn an_authority_for_a_whole_top_level_domain_is_made_with_a_warning() {
    let place = tempfile::tempdir().expect("a folder");
    let made = ca(&["init", "--allow", "com", "--allow", "example.org"], &place.path().join("ca"));
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    let warning = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(
        warning.contains("--allow com: the name has no dot") && !warning.contains("example.org"),
        "{warning}"
    );
}

#[test]
fn a_proxy_does_not_start_with_an_authority_that_it_should_not_use() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("ca");
    assert_eq!(ca(&["init", "--allow", "example.org"], &folder).status.code(), Some(0));
    let path = folder.to_str().expect("UTF-8").to_owned();
    let check = |more: &[&str], expected: &str| {
        let (code, reports) = refused(&place.path().join("store"), more);
        assert_eq!(code, Some(2), "{reports}");
        assert!(reports.contains(expected), "{expected}: {reports}");
    };
    let with = |host| ["--intercept-ca", &path, "--intercept-host", host].map(str::to_owned);
    let other = with("example.com");
    check(&other.each_ref().map(String::as_str), "may only sign for example.org");
    check(&["--intercept-host", "example.org"], "needs a certificate authority");
    check(&["--intercept-ca", &path], "does nothing without `intercept-hosts`");
    let reverse = with("example.org");
    let reverse =
        [&reverse.each_ref().map(String::as_str)[..], &["--origin", "http://127.0.0.1:1"]].concat();
    check(&reverse, "a reverse proxy (`origin`) accepts no CONNECT");
    std::fs::set_permissions(folder.join("ca.key"), Permissions::from_mode(0o644))
        .expect("changed");
    let open = with("example.org");
    check(&open.each_ref().map(String::as_str), "other users may read this private key (mode 644)");
}
