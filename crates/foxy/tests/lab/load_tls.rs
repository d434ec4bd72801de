//! Tests the program `foxy load --tls` with a running foxy: through CONNECT tunnels, through TLS
//! interception, and with mistakes in its arguments that prevent responses.

use crate::support::Foxy;
use crate::support::commands::{Serving, command, ended, foxy, records};
use foxy_testkit::tunnel::{OPEN, TunnelProxy};
use std::path::Path;

/// Starts an origin with TLS. Writes the certificate of its authority to `folder`.
fn origin(folder: &Path) -> (Serving, String) {
    let authority = folder.join("origin.pem").to_str().expect("UTF-8").to_owned();
    (Serving::secure_origin(&authority), authority)
}

/// Starts a foxy that allows tunnels to this origin.
fn proxy(folder: &Path, origin: &Serving, more: &[&str]) -> Foxy {
    let port = origin.address.rsplit(':').next().expect("a port");
    Foxy::start(&folder.join("store"), &[&["--connect-port", port], more].concat())
}

fn load(proxy: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let mut load = command(&["load", "--proxy", proxy, "--tls", "--objects", "20", "--size", "1K"]);
    ended(load.args(["--requests", "100", "--clients", "4"]).args(more))
}

#[test]
fn tunnels_carry_every_byte_and_no_hits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, authority) = origin(folder.path());
    let foxy = proxy(folder.path(), &origin, &[]);
    let (address, file) = (foxy.proxy.to_string(), folder.path().join("run.jsonl"));
    let bars = ["--fail-if", "errors>0", "--fail-if", "wrong_bytes>0", "--fail-if", "hit_ratio>0"];
    let more =
        ["--origin", &origin.address, "--ca", &authority, "--json", file.to_str().expect("UTF-8")];
    let (code, out, err) = load(&address, &[&bars[..], &more[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let found = records(&file);
    let requests = found.iter().find(|record| record["name"] == "requests").expect("counted");
    assert_eq!(requests["value"], 100.0);
}

#[test]
fn hits_come_through_interception_over_every_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, authority) = origin(folder.path());
    let own = folder.path().join("ca");
    let own = own.to_str().expect("UTF-8");
    assert_eq!(foxy(&["ca", "init", "--allow", "127.0.0.0/8", "--dir", own]).0, Some(0));
    let intercepting =
        ["--intercept-ca", own, "--intercept-host", "127.0.0.1", "--origin-ca", &authority];
    let foxy = proxy(folder.path(), &origin, &intercepting);
    let trusted = format!("{own}/ca.pem");
    for protocol in ["1.0", "1.0-keep-alive", "1.1", "1.1-close", "2"] {
        let more = ["--origin", &origin.address, "--ca", &trusted, "--protocol", protocol];
        let bars =
            ["--fail-if", "errors>0", "--fail-if", "wrong_bytes>0", "--fail-if", "hit_ratio<1"];
        let (code, out, err) = load(&foxy.proxy.to_string(), &[&more[..], &bars[..]].concat());
        assert_eq!(code, Some(0), "{protocol}: {out}{err}");
    }
}

#[test]
fn the_origin_that_is_started_here_is_trusted_and_counts() {
    let (proxy, folder) = (TunnelProxy::start(OPEN), tempfile::tempdir().expect("a folder"));
    let (_origin, other) = origin(folder.path());
    for more in [&[][..], &["--ca", &other]] {
        let bars = ["--no-warm-up", "--fail-if", "errors>0", "--fail-if", "origin_requests<100"];
        let (code, out, err) = load(&proxy.address.to_string(), &[&bars[..], more].concat());
        assert_eq!(code, Some(0), "{out}{err}");
    }
}

#[test]
fn with_reverse_tls_begins_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, authority) = origin(folder.path());
    let more = ["--reverse", "--origin", "localhost", "--ca", &authority, "--fail-if", "errors>0"];
    let (code, out, err) = load(&origin.address, &more);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn a_proxy_that_refuses_connect_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = Foxy::start_plain(&folder.path().join("store"), &["--size", "64M"]);
    let (code, _, err) = load(&foxy.proxy.to_string(), &["--no-warm-up"]);
    assert_eq!(code, Some(3), "its port is not one that foxy opens tunnels to");
    let (_, _, gone) = load("127.0.0.1:1", &["--no-warm-up"]);
    assert!(
        gone.contains("no request got a correct answer (connect); is the proxy running there?"),
        "{gone}"
    );
    assert!(
        err.contains(
            "no request got a correct answer (tunnel_refused); the proxy refuses CONNECT; allow "
        ),
        "{err}"
    );
}

#[test]
fn what_keeps_tls_from_being_spoken_is_said_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, authority) = origin(folder.path());
    let foxy = proxy(folder.path(), &origin, &[]);
    let (other, none) = (folder.path().join("other.pem"), folder.path().join("none.pem"));
    std::fs::write(&other, "this is no PEM\n").expect("written");
    let check = |more: &[&str], code: i32, expected: &str| {
        let (ended, _, err) = load(&foxy.proxy.to_string(), &[&["--no-warm-up"], more].concat());
        assert_eq!(ended, Some(code), "{err}");
        assert!(err.contains(expected), "{expected}: {err}");
        assert_eq!(err.trim_end().lines().count(), 1, "{err}");
    };
    let ca = |file: &Path| file.to_str().expect("UTF-8").to_owned();
    check(
        &["--ca", &ca(&other)],
        2,
        "other.pem: the file holds no certificate in PEM; name a file of certificates in PEM",
    );
    check(&["--ca", &ca(&none)], 2, "none.pem: cannot be read: No such file");
    check(&["--ca", &ca(folder.path())], 2, "cannot be read: Is a directory");
    let there = ["--origin", &origin.address];
    check(
        &there,
        3,
        "no request got a correct answer (tls_certificate); the certificate is not trusted",
    );
    let two = ["--ca", &authority, "--protocol", "2"];
    check(
        &[&there[..], &two].concat(),
        3,
        "no request got a correct answer (tls_handshake); the TLS handshake failed",
    );
    let (code, _, err) = without_tls(&authority);
    assert_eq!(code, Some(2));
    assert!(err.contains("--tls"), "{err}");
}

/// Runs `foxy load` with `--ca` but without `--tls`, which is refused.
fn without_tls(authority: &str) -> (Option<i32>, String, String) {
    foxy(&["load", "--proxy", "127.0.0.1:1", "--ca", authority])
}

#[test]
fn an_authority_that_cannot_be_written_is_said() {
    let (code, _, err) =
        foxy(&["origin", "--listen", "127.0.0.1:0", "--write-ca", "/nowhere/at/all.pem"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("--write-ca /nowhere/at/all.pem: cannot be written: "), "{err}");
}
