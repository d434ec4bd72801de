//! Tests the users of a proxy: the command that writes their file, reloads, and the access log.

use crate::support::commands::{command, foxy as run};
use crate::support::{Foxy, Origin, request};
use std::io::Write;
use std::process::Stdio;

#[test]
fn users_are_added_served_logged_and_removed_without_a_trace_of_their_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, log) = (path("users"), path("access.log"));
    let mut add =
        command(&["user", "add", &file, "ann"]).stdin(Stdio::piped()).spawn().expect("runs");
    add.stdin.take().expect("piped").write_all(b"open sesame\n").expect("foxy reads");
    assert!(add.wait().expect("a child").success());
    let (code, token, _) = run(&["user", "token", &file, "ci"]);
    assert_eq!(code, Some(0));
    assert_eq!(run(&["user", "list", &file]).1, "ann\tpassword\nci\ttoken\n");
    let flags = ["--users-file", &*file, "--access-log", &*log, "--access-log-format", "json"];
    let (foxy, origin) = (Foxy::start(&folder.path().join("store"), &flags), Origin::start());
    let status = |credentials: &str| {
        let url = origin.url("x");
        let field = format!("Proxy-Authorization: {credentials}\r\n");
        request(
            foxy.proxy,
            &format!("GET {url} HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n"),
        )
        .status
    };
    let (ann, bearer) = ("Basic YW5uOm9wZW4gc2VzYW1l", format!("Bearer {}", token.trim()));
    assert_eq!([status(ann), status(&bearer), status("Basic YW5uOng=")], [200, 200, 407]);
    assert_eq!(run(&["user", "remove", &file, "ann"]).0, Some(0));
    assert_eq!(run(&["user", "remove", &file, "ann"]).0, Some(2));
    let reload = || run(&["reload", "--admin", &foxy.admin.to_string()]);
    let (code, printed, _) = reload();
    assert_eq!(
        (code, printed.contains("\n  user ann: known → none")),
        (Some(0), true),
        "{printed}"
    );
    assert_eq!([status(ann), status(&bearer)], [407, 200]);
    std::fs::write(&file, "ann:open sesame\n").expect("written");
    let (code, _, error) = reload();
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("(users-file): line 1 has no valid hash"), "{error}");
    assert_eq!(status(&bearer), 200, "a mistake changes nothing");
    let logged = foxy_testkit::wait::until("the log", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        (log.lines().count() >= 6).then_some(log)
    });
    assert!(logged.contains("\"user\":\"ann\"") && logged.contains("\"user\":\"ci\""), "{logged}");
    for secret in ["open sesame", "YW5u", token.trim()] {
        assert!(!logged.contains(secret) && !error.contains(secret), "{secret}: {logged}{error}");
    }
}
