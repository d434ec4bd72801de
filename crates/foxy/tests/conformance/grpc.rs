//! Sends gRPC calls of each kind through foxy with a real client and a real server: Python's
//! grpcio. gRPC needs HTTP/2 on both sides, trailers, and bodies that flow in both directions at
//! once.

use crate::support::{Foxy, not_run, write_secret};
use foxy_testkit::ports::free_ports;
use std::process::{Command, Stdio};

/// The interpreter of the operating system, whose packages `cargo xtask tools` installs.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn grpc_calls_of_each_kind_pass() {
    let mut python = Command::new(PYTHON);
    python.args(["-c", "import grpc"]).stderr(Stdio::null());
    if !python.status().is_ok_and(|status| status.success()) {
        let reason = "Python's grpcio is not installed; `cargo xtask tools` installs it";
        return not_run("gRPC calls through foxy", reason);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&certificate, made.cert.pem()).expect("writable");
    write_secret(&key, &made.signing_key.serialize_pem());
    let (certificate, key) = (certificate.to_str().expect("UTF-8"), key.to_str().expect("UTF-8"));
    let port = free_ports(1);
    let origin = format!("https://localhost:{port}");
    let foxy = Foxy::start(
        &folder.path().join("store"),
        &[
            &["--origin", &origin, "--origin-ca", certificate, "--listen-tls", "127.0.0.1:0"][..],
            &["--tls-certificate", certificate, "--tls-key", key],
        ]
        .concat(),
    );
    let secure = foxy.welcome.split_once("https://127.0.0.1:").expect("a line about TLS").1;
    let secure = secure.split(' ').next().expect("a port");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/grpc_calls.py");
    let output = Command::new(PYTHON)
        .args([script, secure, certificate, key, &port.to_string()])
        .output()
        .expect("Python ran before");
    let said = String::from_utf8_lossy(&output.stdout);
    let problems = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "unary failure server-stream client-stream conversation\n", "{problems}");
}
