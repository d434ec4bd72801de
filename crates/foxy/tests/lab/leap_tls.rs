//! Tests LEAP with TLS on every connection. Clients connect through the Multiplier, which copies
//! their requests, to a foxy that intercepts TLS. Behind foxy are the Collector, a parent proxy
//! that fetches each object once, and an origin. All use an authority of `foxy ca init`.

use crate::support::Foxy;
use crate::support::commands::{Running, Serving, command, ended, foxy, measure, records};
use std::path::Path;

/// Creates a certificate authority for this machine's names. Returns the paths of its folder and of
/// its certificate.
fn authority(folder: &Path) -> (String, String) {
    let place = folder.join("lab-ca").to_str().expect("UTF-8").to_owned();
    let made =
        foxy(&["ca", "init", "--allow", "127.0.0.0/8", "--allow", "localhost", "--dir", &place]);
    assert_eq!(made.0, Some(0), "{made:?}");
    (place.clone(), format!("{place}/ca.pem"))
}

/// Starts a foxy that intercepts TLS to this machine's port `port`. For origins, foxy trusts the
/// authority in `trusted`.
fn intercepting(folder: &Path, own: &str, port: &str, trusted: &str) -> Foxy {
    let hosts = ["--intercept-ca", own, "--intercept-host", "127.0.0.1"];
    Foxy::start(
        &folder.join("store"),
        &[&hosts[..], &["--connect-port", port, "--origin-ca", trusted]].concat(),
    )
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().expect("a port")
}

/// Runs `foxy load`, which checks every byte of the responses.
fn clients(multiplier: &str, origin: &str, trusted: &str, protocol: &str) {
    let mut load =
        command(&["load", "--proxy", multiplier, "--tls", "--origin", origin, "--ca", trusted]);
    load.args(["--protocol", protocol, "--objects", "10", "--size", "3K", "--no-warm-up"]);
    load.args([
        "--requests",
        "40",
        "--clients",
        "4",
        "--fail-if",
        "errors>0",
        "--fail-if",
        "wrong_bytes>0",
    ]);
    let (code, out, err) = ended(&mut load);
    assert_eq!(code, Some(0), "HTTP/{protocol}: {out}{err}");
}

#[test]
fn a_replay_judges_a_proxy_that_intercepts_beside_the_origin_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (own, _) = authority(folder.path());
    let (trusted, json) = (file("origin.pem"), file("json"));
    let origin = Serving::secure_origin(&trusted);
    let proxy = intercepting(folder.path(), &own, port(&origin.address), &trusted);
    let named = format!("foxy={}", proxy.proxy);
    let paths = [
        "--tls",
        "--proxy",
        &named,
        "--direct",
        &origin.address,
        "--ca",
        &trusted,
        "--ca-dir",
        &own,
    ];
    let more = ["--requests", "60", "--json", &json, "--fail-if", "verdict_ok<60"];
    let (code, out, err) = foxy(&[&["leap"], &paths[..], &more].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let records = records(Path::new(&json));
    let found =
        |subject| (measure(&records, subject, "verdict_ok"), measure(&records, subject, "errors"));
    assert_eq!(
        (found("direct"), found("foxy")),
        ((Some(60.0), Some(0.0)), (Some(60.0), Some(0.0))),
        "{out}"
    );
    assert!(measure(&records, "foxy", "hit_ratio").expect("known") > 0.0, "{out}");
    let (code, out, _) = foxy(&[&["leap"], &paths[..7], &["--requests", "3"]].concat());
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("tls_certificate"), "{out}");
}

#[test]
fn https_goes_through_multiplier_interception_and_collector_to_a_tls_origin() {
    for protocol in ["1.1", "2"] {
        end_to_end(protocol);
    }
}

/// Tests all connections with this HTTP version, from clients to Multiplier (LEAP's request copier)
/// and from Multiplier to proxy.
fn end_to_end(protocol: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (own, certificate) = authority(folder.path());
    let (trusted, json) = (file("origin.pem"), file("json"));
    let origin = Serving::secure_origin(&trusted);
    let listen = ["--listen", "direct=127.0.0.1:0", "--listen", "foxy=127.0.0.1:0"];
    let tls = ["--origin", &origin.address, "--ca-dir", &own, "--ca", &trusted];
    let collector = Running::start(&mut command(&[&["collector"], &listen[..], &tls].concat()), 2);
    let [direct, parent] = [0, 1].map(|line| collector.address(line, "://"));
    let proxy = intercepting(folder.path(), &own, port(parent), &certificate);
    let named = format!("foxy={}", proxy.proxy);
    let front = ["leap", "--listen", "127.0.0.1:0", "--tls", "--ca-dir", &own, "--direct", direct];
    let more =
        ["--proxy", &named, "--json", &json, "--fail-if", "verdict_ok<80", "--protocol", protocol];
    let multiplier = Running::start(&mut command(&[&front[..], &more].concat()), 1);
    clients(multiplier.address(0, "://"), parent, &certificate, "1.1");
    clients(multiplier.address(0, "://"), parent, &certificate, "2");
    let (code, said) = multiplier.stop("INT");
    assert_eq!(code, Some(0), "{said}");
    let records = records(Path::new(&json));
    for path in ["direct", "foxy"] {
        assert_eq!(measure(&records, path, "verdict_ok"), Some(80.0), "{said}");
    }
    let (_, said) = collector.stop("INT");
    assert!(said.contains(" 10 origin fetches\n"), "one exchange for each object: {said}");
}

#[test]
fn who_is_started_here_and_ends_tls_needs_an_authority() {
    let refused = |more: &[&str], part: &str| {
        let (code, _, err) = foxy(&[&["leap", "--tls", "--proxy", "a=127.0.0.1:1"], more].concat());
        assert_eq!((code, err.lines().count()), (Some(2), 1), "{err}");
        assert!(err.contains(part), "{err}");
    };
    refused(
        &["--passthrough"],
        "--passthrough: with --tls, the proxy that this option starts needs certificates; name the folder of an authority (`foxy ca init`)",
    );
    refused(&["--collector", "127.0.0.1:9"], "--collector: with --tls");
    refused(&["--passthrough", "--ca-dir", "/nowhere"], "/nowhere/ca.pem");
}
