//! Tests that clients of a forward proxy cannot reach other services of the proxy's machine, even
//! through the machine's public address. The test runs in a network namespace with public addresses
//! of its own. Without a namespace, the test only prints that it did not run.

use crate::support::{Foxy, namespace, not_run, request};
use foxy_testkit::http::read_head;
use std::io::Write;
use std::net::TcpListener;

const FOUR: &str = "8.8.4.4";
const SIX: &str = "2606:4700::1111";

#[test]
fn a_client_does_not_reach_other_services_of_the_machine() {
    if namespace::is_inside() {
        return check_inside();
    }
    let set_up = format!(
        "ip link set lo up && ip addr add {FOUR}/32 dev lo && ip addr add {SIX}/128 dev lo nodad"
    );
    let test = "network::own_machine::a_client_does_not_reach_other_services_of_the_machine";
    if !namespace::rerun(test, &set_up) {
        not_run("the machine's own public address", "no network namespace here");
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
