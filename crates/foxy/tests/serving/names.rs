//! Tests the name server of `foxy origin` as a DNS client sees it. Also tests how foxy behaves with
//! a name server that refuses all questions.

use crate::support::Foxy;
use crate::support::commands::{command, ended, signal};
use std::io::{BufRead, BufReader, Lines};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

/// Builds a DNS question for the IPv4 address of the name `h1.` followed by these labels (RFC 1035
/// §4).
fn question(labels: [&str; 2]) -> Vec<u8> {
    let mut packet = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in ["h1"].into_iter().chain(labels) {
        packet.push(u8::try_from(label.len()).expect("short"));
        packet.extend_from_slice(label.as_bytes());
    }
    packet.extend_from_slice(&[0, 0, 1, 0, 1]);
    packet
}

/// A running `foxy origin` with a name server, and its output. Drop ends the command.
pub struct Named {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Named {
    pub fn start(more: &[&str]) -> Self {
        let mut command = command(
            &[&["origin", "--listen", "127.0.0.1:0", "--dns", "127.0.0.1:0"], more].concat(),
        );
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    /// Returns the port of the origin and the address of the name server. Works once.
    pub fn places(&mut self) -> (String, String) {
        let [origin, names] = [self.line(), self.line()];
        let port = origin.split_once("127.0.0.1:").and_then(|(_, rest)| rest.split_once('/'));
        let server = names.rsplit(' ').next().expect("an address");
        (port.expect("a port").0.to_owned(), server.to_owned())
    }

    /// Interrupts the command. Returns its last line of output.
    fn end(mut self) -> String {
        signal(self.child.id(), "INT");
        let said = self.line();
        assert!(self.child.wait().expect("a child").success());
        said
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

#[test]
fn an_origin_is_the_name_server_of_its_names_and_says_at_its_end_what_was_asked() {
    let mut named = Named::start(&["--dns-cost", "1ms"]);
    let [_, line] = [named.line(), named.line()];
    let place = line
        .strip_prefix("origin: its names end with origin.test; the name server is at ")
        .expect(&line);
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    client.connect(place).expect("connected");
    let mut packet = [0; 512];
    client.send(&question(["origin", "test"])).expect("sent");
    let length = client.recv(&mut packet).expect("an answer");
    assert!(packet[..length].ends_with(&[0, 4, 127, 0, 0, 1]), "{:?}", &packet[..length]);
    client.send(&question(["example", "org"])).expect("sent");
    let length = client.recv(&mut packet).expect("an answer");
    assert_eq!(
        (packet[3] & 15, packet[7]),
        (5, 0),
        "refused, nothing in it: {:?}",
        &packet[..length]
    );
    assert_eq!(
        named.end(),
        "origin: name server: DNS questions: 1 for addresses, 0 for other data, 1 refused, 0 \
         dropped"
    );
}

/// Starts a name server that refuses every question at once. It runs until the test process ends.
fn refusing() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("bound");
    std::thread::spawn(move || {
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            (packet[2], packet[3]) = (packet[2] | 0x80, 5);
            socket.send_to(&packet[..length], from).expect("sent");
        }
    });
    address
}

#[test]
fn a_proxy_asks_its_configured_name_servers_and_one_that_refuses_stops_no_other() {
    let mut named = Named::start(&[]);
    let (port, server) = named.places();
    let folder = tempfile::tempdir().expect("a folder");
    let refusing = refusing().to_string();
    let foxy = Foxy::start(folder.path(), &["--name-server", &refusing, "--name-server", &server]);
    for object in [1, 1, 2, 3, 4] {
        let answer = foxy.get(&format!("http://h7.origin.test:{port}/o/{object}/100/1"));
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let elsewhere = foxy.get(&format!("http://example.test:{port}/o/1/100/1"));
    assert_eq!(elsewhere.status, 502, "{elsewhere:?}");
    let said = named.end();
    // foxy has two workers here. Each worker sends its own question for a name.
    let asked = |count| said.contains(&format!("DNS questions: {count} for addresses,"));
    assert!((asked(1) || asked(2)) && !said.contains(", 0 refused,"), "{said}");
}

#[test]
fn names_are_refused_where_nobody_would_ask_for_them() {
    for (arguments, expected) in [
        (
            &["origin", "--listen", "0.0.0.0:0", "--dns", "127.0.0.1:0"][..],
            "names get the origin's address",
        ),
        (&["origin", "--dns-cost", "1ms"], "--dns <ADDRESS:PORT>"),
        (&["load", "--proxy", "127.0.0.1:1", "--hosts", "2", "--reverse"], "--reverse"),
        (&["load", "--proxy", "127.0.0.1:1", "--hosts", "2", "--tls"], "--tls"),
        (&["load", "--proxy", "127.0.0.1:1", "--dns", "127.0.0.1:0"], "--hosts <N>"),
        (&["load", "--proxy", "127.0.0.1:1", "--hosts", "0"], "--hosts <N>"),
    ] {
        let (code, _, err) = ended(&mut command(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}
