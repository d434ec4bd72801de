//! Tests transparent listeners with real rules of the kernel. The test's network namespace is a
//! router on which foxy runs. Two further namespaces are a client and an origin. Without
//! namespaces or nftables, the test only prints that it did not run.

use crate::support::namespace::{self, Neighbour, shell};
use crate::support::{Foxy, Response, not_run, request};
use foxy_testkit::client::{Client, exchange};
use foxy_testkit::http::read_head;
use foxy_testkit::wait::until;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

const CLIENT: (&str, &str) = ("9.9.9", "2606:4700:9");
const ORIGIN: (&str, &str) = ("8.8.4", "2606:4700:8");
const FOUR: &str = "8.8.4.2";
const SIX: &str = "[2606:4700:8::2]";
const PORT: u16 = 3130;

/// A body with the address of the client, as the origin sees it.
fn body(peer: SocketAddr) -> String {
    format!("seen {}\n", peer.ip().to_canonical())
}

/// Starts the origin: HTTP on port 80, and on port 443 a server that returns each byte.
fn start(origin: &Neighbour) {
    let [http, echo] = [80, 443].map(|port| {
        origin.run(move || TcpListener::bind(("::", port)).expect("a port of the neighbour"))
    });
    std::thread::spawn(move || {
        for stream in http.incoming() {
            let mut stream = stream.expect("accepted");
            let body = body(stream.peer_addr().expect("connected"));
            if read_head(&mut stream).is_some() {
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n"
                );
                let _proxy_left = stream.write_all((head + &body).as_bytes());
            }
        }
    });
    std::thread::spawn(move || {
        for stream in echo.incoming() {
            let mut stream = stream.expect("accepted");
            let mut bytes = [0; 64];
            while let Ok(length @ 1..) = stream.read(&mut bytes) {
                let _proxy_left = stream.write_all(&bytes[..length]);
            }
        }
    });
}

fn connect(client: &Neighbour, address: &str) -> TcpStream {
    let address: SocketAddr = address.parse().expect("an address");
    let limit = Duration::from_secs(60);
    let connected = client.run(|| TcpStream::connect_timeout(&address, limit));
    let stream = connected.expect("the rules direct it to foxy");
    stream.set_read_timeout(Some(limit)).expect("set");
    stream
}

/// Requests a path from a host, as a client that knows no proxy.
fn get(client: &Neighbour, host: &str, path: &str) -> Response {
    let stream = connect(client, &format!("{host}:80"));
    let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    Response::parse(&exchange(stream, &text))
}

/// Replaces the packet filter.
fn filter(rules: &str) {
    shell(&format!("nft -f - <<'END'\nflush ruleset\n{rules}\nEND"));
}

/// The rules that the documents name, for a client behind the interface `lan`.
const TPROXY: &str = include_str!("../../../../../packaging/nftables/transparent.nft");
const REDIRECT: &str = "table inet foxy {
  chain divert {
    type nat hook prerouting priority dstnat;
    iifname lan tcp dport { 80, 443 } redirect to :3130
  }
}";

/// Sends packets with the mark 1 to sockets of this machine, whatever their destination.
const ROUTES: &str = "ip link set lo up
    ip rule add fwmark 1 lookup 100
    ip route add local default dev lo table 100
    ip -6 rule add fwmark 1 lookup 100
    ip -6 route add local default dev lo table 100";

#[test]
fn clients_that_know_no_proxy_are_served_by_both_kinds_of_rules() {
    let test = "network::transparent::clients_that_know_no_proxy_are_served_by_both_kinds_of_rules";
    if namespace::is_inside() {
        return check_inside();
    }
    if !namespace::rerun(test, &format!("nft list ruleset && {}", ROUTES.replace('\n', " &&"))) {
        not_run("transparent listeners", "no network namespace, or no nft command");
    }
}

fn check_inside() {
    let client = Neighbour::new("lan", CLIENT.0, CLIENT.1);
    let origin = Neighbour::new("origin", ORIGIN.0, ORIGIN.1);
    start(&origin);
    let folder = tempfile::tempdir().expect("a folder");
    let listen = format!("localhost:{PORT}");
    filter(TPROXY);
    let flags = ["--listen-transparent", &listen];
    let mut foxy = Foxy::start(folder.path(), &flags);
    assert!(foxy.welcome.contains("  transparent 127.0.0.1:3130 (tproxy)\n"), "{}", foxy.welcome);
    for (host, own) in [(FOUR, "8.8.4.1"), (SIX, "2606:4700:8::1")] {
        let first = get(&client, host, "/a");
        assert_eq!((first.status, first.body.as_str()), (200, &*format!("seen {own}\n")), "{host}");
        let second = get(&client, host, "/a");
        assert!(second.cache_status().contains("; hit"), "{second:?}");
        let echoed = echoed(&client, host);
        assert_eq!(echoed, b"\x16no TLS", "{host}");
    }
    let answer = exchange(connect(&client, "10.0.0.1:80"), "GET /x HTTP/1.0\r\n\r\n");
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 403 Private address"), "{answer}");

    let mut kept = Client::on(connect(&client, &format!("{FOUR}:80")));
    let mut hit = || {
        let answer = kept.ask(&format!("GET /a HTTP/1.1\r\nHost: {FOUR}\r\n\r\n"));
        assert!(answer.cache_status().contains("; hit"), "{}", answer.head);
        assert_eq!(answer.header("connection"), "");
    };
    hit();
    let text =
        format!("POST /upgrade HTTP/1.1\r\nHost: {0}\r\nContent-Length: 0\r\n\r\n", foxy.admin);
    let answer = request(foxy.admin, &text);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let said: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(get(&client, FOUR, "/b").status, 200, "the new process serves");
    until("the end of the old process", || foxy.has_ended().then_some(()));
    hit();
    shell(&format!("kill -9 {}", said["process"]));
    drop(foxy);

    let flags = [&flags[..], &["--origin-source", "client"]].concat();
    let foxy = Foxy::start(folder.path(), &flags);
    assert_eq!(get(&client, FOUR, "/c").body, "seen 9.9.9.2\n");
    assert_eq!(get(&client, SIX, "/c").body, "seen 2606:4700:9::2\n");
    assert_eq!(echoed(&client, FOUR), b"\x16no TLS");
    drop(foxy);

    filter(REDIRECT);
    let listen = format!(":{PORT}");
    let flags = ["--transparent-mode", "redirect", "--listen-transparent", &listen];
    let clients = ["--allow-client", "9.9.9.0/24", "--allow-client", "2606:4700:9::/64"];
    let _foxy = Foxy::start(folder.path(), &[&flags[..], &clients].concat());
    for (host, own) in [(FOUR, "8.8.4.1"), (SIX, "2606:4700:8::1")] {
        assert_eq!(get(&client, host, "/d").body, format!("seen {own}\n"), "{host}");
        assert_eq!(echoed(&client, host), b"\x16no TLS", "{host}");
    }
    let own = exchange(connect(&client, "9.9.9.1:3130"), "GET / HTTP/1.0\r\n\r\n");
    let own = String::from_utf8_lossy(&own);
    assert!(own.starts_with("HTTP/1.1 403 Address of the proxy"), "{own}");
}

/// Sends bytes that begin like TLS to port 443 of a host. Returns the bytes that come back.
fn echoed(client: &Neighbour, host: &str) -> Vec<u8> {
    let mut stream = connect(client, &format!("{host}:443"));
    stream.write_all(b"\x16no TLS").expect("sent");
    let mut bytes = vec![0; 7];
    stream.read_exact(&mut bytes).expect("the origin answers");
    bytes
}

/// Root of a new user namespace has no capability in the network namespace that is already there.
#[test]
fn a_missing_capability_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("foxy.toml");
    let content =
        "listen-transparent = \"127.0.0.1:0\"\norigin-source = \"client\"\nadmin = \"off\"\n";
    std::fs::write(&file, content).expect("written");
    let mut command = Command::new("unshare");
    command.env("HOME", folder.path());
    command.args(["--map-root-user", env!("CARGO_BIN_EXE_foxy"), "check"]).arg(&file);
    let output = command.output().expect("unshare runs");
    let report = String::from_utf8_lossy(&output.stderr);
    if report.starts_with("unshare: ") {
        return not_run("a missing capability", "no user namespace here");
    }
    assert_eq!(output.status.code(), Some(2), "{report}");
    for (line, part) in [(1, "(--listen-transparent): "), (2, "`origin-source = \"client\"`: ")] {
        let is_told = |text: &str| {
            text.contains(&format!("foxy.toml:{line}:1: "))
                && text.contains(part)
                && text.contains("give foxy the capability CAP_NET_ADMIN")
        };
        assert!(report.lines().any(is_told), "{report}");
    }
}
