//! Tests that clients of a forward proxy cannot reach other services of the proxy's machine, even
//! through the machine's public address. The test runs in a network namespace with public addresses
//! of its own. Without a namespace, the test only prints that it did not run.

use crate::support::{Foxy, request};
use foxy_testkit::http::read_head;
use std::io::Write;
use std::net::TcpListener;
use std::process::Command;

const FOUR: &str = "8.8.4.4";
const SIX: &str = "2606:4700::1111";

/// Set in the namespace. The test starts itself there, and this variable tells it so.
const IN_NAMESPACE: &str = "FOXY_TEST_IN_NAMESPACE";

/// Runs the test `name` again in a new network namespace. Returns false if the system allows no
/// namespace.
fn inside(name: &str) -> bool {
    let set_up = format!(
        "ip link set lo up && ip addr add {FOUR}/32 dev lo && ip addr add {SIX}/128 dev lo nodad"
    );
    let namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--", "sh", "-c", script]);
        command
    };
    if !namespace(&set_up).status().is_ok_and(|status| status.success()) {
        return false;
    }
    let mut test = namespace(&format!("{set_up} && exec \"$0\" --exact {name}"));
    test.arg(std::env::current_exe().expect("a program")).env(IN_NAMESPACE, "1");
    let output = test.output().expect("it ran before");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    true
}

#[test]
fn a_client_does_not_reach_other_services_of_the_machine() {
    if std::env::var_os(IN_NAMESPACE).is_some() {
        return check_inside();
    }
    if !inside("own_machine::a_client_does_not_reach_other_services_of_the_machine") {
        let text = "\nNOT RUN: the machine's own public address: no network namespace here\n";
        std::io::stderr().write_all(text.as_bytes()).expect("written");
    }
}

/// Starts a service that listens on all addresses of the machine. Returns its port.
fn service() -> u16 {
    let listener = TcpListener::bind("[::]:0").expect("bound");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let _proxy_left = read_head(&mut stream);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret";
            let _proxy_left = stream.write_all(answer.as_bytes());
        }
    });
    port
}

/// Requests a service of the machine through foxy. Outside a namespace, the requests would go to
/// the machine's own addresses.
fn check_inside() {
    let port = service();
    let folder = tempfile::tempdir().expect("a folder");
    let hosts = [
        FOUR.to_owned(),
        format!("[{SIX}]"),
        format!("[::ffff:{FOUR}]"),
        "[64:ff9b::808:404]".to_owned(),
    ];
    let ask = |foxy: &Foxy, host: &str| {
        let text = format!(
            "GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        );
        request(foxy.proxy, &text)
    };
    let mut foxy = Foxy::start(folder.path(), &[]);
    for host in &hosts {
        let answer = ask(&foxy, host);
        assert_eq!(answer.status, 403, "{host}: {answer:?}");
        assert!(answer.body.contains("the proxy's own machine; to allow it"), "{host}: {answer:?}");
    }
    foxy.report_containing("asked for 8.8.4.4");
    foxy.kill();
    let allowed = ["--allow-destination", "8.8.4.4/32", "--allow-destination", "2606:4700::/32"];
    let foxy = Foxy::start(folder.path(), &allowed);
    for host in &hosts[..3] {
        assert_eq!(ask(&foxy, host).status, 200, "{host}");
    }
}
