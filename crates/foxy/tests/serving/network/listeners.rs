//! Tests the addresses at which foxy listens: several of them, Unix sockets, and addresses that
//! other machines can reach.

use crate::support::{Foxy, Origin, refused};
use foxy_testkit::client::exchange;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

fn ask(stream: impl std::io::Read + std::io::Write, method: &str, url: &str) -> String {
    let host = url.split('/').nth(2).expect("a host");
    let request = format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    String::from_utf8_lossy(&exchange(stream, &request)).into_owned()
}

fn unix(path: &Path) -> UnixStream {
    UnixStream::connect(path).expect("foxy listens there")
}

#[test]
fn a_unix_socket_serves_but_does_not_purge_and_goes_with_foxy() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let (proxy, admin) = (folder.path().join("proxy.sock"), folder.path().join("admin.sock"));
    drop(std::os::unix::net::UnixListener::bind(&proxy).expect("a dead socket"));
    let path = |path: &Path| format!("unix:{}", path.display());
    let (listen, at_admin) = (path(&proxy), path(&admin));
    let more = ["--listen", &listen, "--listen", "localhost:0", "--admin", "127.0.0.1:0"];
    let further = ["--admin", &at_admin, "--purge-from", "127.0.0.0/8"];
    let foxy = Foxy::start(folder.path(), &[&more[..], &further].concat());
    let url = origin.url("/x");
    assert!(ask(unix(&proxy), "GET", &url).starts_with("HTTP/1.1 200 "));
    assert!(ask(unix(&proxy), "GET", &url).contains("Cache-Status: foxy; hit"));
    assert!(ask(unix(&proxy), "PURGE", &url).contains("detail=purge-not-allowed"));
    let near = TcpStream::connect(foxy.proxy).expect("foxy listens there");
    assert!(ask(near, "PURGE", &url).contains("detail=purged"));
    let mut health = Command::new(env!("CARGO_BIN_EXE_foxy"));
    health
        .env_clear()
        .env("FOXY_LISTEN", ":3128")
        .args(["health", "--admin", &at_admin])
        .stdin(Stdio::null());
    let output = health.output().expect("the binary runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"ok\":true"), "{output:?}");
    let kill = Command::new("kill").arg(foxy.id().to_string()).status();
    assert!(kill.expect("kill runs").success());
    let (status, reports) = foxy.wait();
    assert!(status.success() && !proxy.exists() && !admin.exists(), "{reports}");
}

#[test]
fn all_addresses_are_for_the_clients_that_a_setting_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, report) = refused(folder.path(), &["--listen", ":0"]);
    assert_eq!(code, Some(2), "{report}");
    for part in ["--listen: other machines can reach :0", "\n  --allow-client 192.168.0.0/16\n"] {
        assert!(report.contains(part), "{report}");
    }
    let origin = Origin::start();
    for (client, expected) in [("127.0.0.0/8", "200"), ("192.0.2.0/24", "403")] {
        let foxy = Foxy::start(folder.path(), &["--listen", ":0", "--allow-client", client]);
        let stream = TcpStream::connect(("127.0.0.1", foxy.proxy.port())).expect("IPv4 too");
        let answer = ask(stream, "GET", &origin.url("/x"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
        foxy.kill();
    }
}

#[test]
fn an_address_of_another_machine_is_named_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--listen", "192.0.2.1:3128", "--allow-client", "192.0.2.0/24"];
    let (code, report) = refused(folder.path(), &more);
    assert_eq!(code, Some(2), "{report}");
    assert!(report.contains("cannot listen on 192.0.2.1:3128 (--listen): "), "{report}");
    assert!(report.contains("this machine does not have the address"), "{report}");
}
