//! Tests foxy under systemd: the sockets that systemd opens, and the states that foxy reports.

use crate::support::{Foxy, Origin};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Prepares a foxy that receives `socket` with the name `name`, as systemd would pass it.
fn activated(folder: &Path, name: &str, socket: OwnedFd) -> Command {
    let mut command = Command::new("sh");
    command.env_clear().env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", name);
    command.args(["-c", "exec \"$0\" \"$@\" 3<&0 </dev/null", env!("CARGO_BIN_EXE_foxy"), "serve"]);
    command.args(["--allow-destination", "127.0.0.0/8", "--admin", "127.0.0.1:0", "--store"]);
    command.arg(folder).args(["--size", "64M", "--memory", "8M", "--workers", "2"]);
    command.stdin(socket).stdout(Stdio::null());
    command
}

#[test]
fn foxy_serves_from_systemds_socket_and_tells_its_states() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let manager = UnixDatagram::bind(folder.path().join("notify")).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let told = || {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).expect("foxy tells");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut command = activated(folder.path(), "foxy.socket", listener.into());
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let foxy = Foxy::ready(command);
    assert_eq!(foxy.proxy, address);
    assert_eq!(foxy.welcome.matches("  proxy ").count(), 1, "{}", foxy.welcome);
    assert_eq!(foxy.get(&origin.url("/x")).status, 200);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &foxy.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    assert_eq!(told(), "READY=1\n");
    signal("-HUP");
    assert!(told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(told(), "READY=1\n");
    signal("-TERM");
    assert_eq!(told(), "STOPPING=1\n");
    assert!(foxy.wait().0.success());
}

#[test]
fn a_socket_that_foxy_cannot_serve_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = || TcpListener::bind("127.0.0.1:0").expect("bound").into();
    let connection = || UnixStream::pair().expect("a pair").0.into();
    let exposed = || TcpListener::bind("0.0.0.0:0").expect("bound").into();
    let cases: [(&str, OwnedFd, &str); 4] = [
        ("metrics", listener(), "of its unit to listen, listen-tls, listen-transparent or admin"),
        ("foxy.socket", connection(), "use ListenStream= and Accept=no in its unit"),
        ("listen-tls", listener(), "give `tls-certificate` and `tls-key`"),
        ("listen", exposed(), "no setting says which clients may use foxy"),
    ];
    for (name, socket, expected) in cases {
        let output = activated(folder.path(), name, socket).output().expect("the binary runs");
        let report = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{report}");
        assert!(report.contains(expected), "{report}");
    }
}
