//! Tests a foxy that may open few files. foxy closes idle connections, and lets further clients
//! wait.

mod support;

use foxy_testkit::http::read_head;
use foxy_testkit::origin::listen_in_order;
use foxy_testkit::wait::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use support::Foxy;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Starts an origin that sends each response only after a message from `go`. The returned channel
/// gives the test a message for each request that arrived.
fn holding(go: Receiver<()>) -> (SocketAddr, Receiver<()>) {
    let (asked, all) = channel();
    let (give, given) = channel::<TcpStream>();
    let address = listen_in_order(move |stream| {
        let _nobody_counts = asked.send(());
        give.send(stream).expect("the other thread takes it");
    });
    std::thread::spawn(move || {
        go.recv().expect("the test goes on");
        for mut stream in given {
            let _client_left = read_head(&mut stream);
            let _client_left = stream.write_all(OK.as_bytes());
        }
    });
    (address, all)
}

fn asking(foxy: &Foxy, origin: SocketAddr, number: usize) -> TcpStream {
    let mut client = TcpStream::connect(foxy.proxy).expect("connected");
    let text = format!(
        "GET http://{origin}/{number} HTTP/1.1\r\nHost: {origin}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(text.as_bytes()).expect("sent");
    client
}

fn limited(folder: &std::path::Path, soft: u64, hard: u64) -> Foxy {
    let inner = support::command(folder, &["--size", "64M", "--name-server", "127.0.0.1:9"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"")]);
    command.arg(inner.get_program()).args(inner.get_args()).env_clear();
    Foxy::ready(command)
}

#[test]
fn clients_beyond_the_descriptors_wait_and_are_served_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = limited(folder.path(), 64, 256);
    assert!(
        foxy.admin("/metrics").body.contains("process_max_fds 256"),
        "raised to the hard limit"
    );
    let (go, wait) = channel();
    let (origin, asked) = holding(wait);
    let mut clients: Vec<TcpStream> =
        (0..150).map(|number| asking(&foxy, origin, number)).collect();
    let mut served = 0;
    while asked.recv_timeout(Duration::from_secs(2)).is_ok() {
        served += 1;
    }
    assert!((20..100).contains(&served), "{served} clients at a time");
    let last = clients.last_mut().expect("many");
    last.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    let early = last.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "neither refused nor closed");
    go.send(()).expect("the origin waits");
    for (number, mut client) in clients.into_iter().enumerate() {
        client.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{number}: {answer}");
    }
}

#[test]
fn idle_clients_give_way_where_descriptors_are_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = limited(folder.path(), 256, 256);
    let idle: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(foxy.proxy).expect("connected")).collect();
    let origin = support::Origin::start();
    assert_eq!(foxy.get(&origin.url("page")).status, 200);
    drop(idle);
}
