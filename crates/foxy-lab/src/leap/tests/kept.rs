//! Tests of reused connections. Some test servers keep connections open, and some close them.

use super::{honest, run_of, whole};
use crate::leap::multiplier::passthrough::TIME_LIMIT;
use crate::leap::*;
use crate::wire::tls::by_hand::{authority, origin};
use foxy_http::Method;
use foxy_http::Scheme;
use foxy_testkit::http::read_head;
use foxy_testkit::origin::listen;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The reaction of a test server to a request.
enum Act {
    /// Answers and reads the next request.
    Answer(Vec<u8>),
    /// Answers, sends more bytes after a delay, and reads the next request.
    AndThen(Vec<u8>, &'static [u8]),
    /// Sends this answer, which may be incomplete, and closes the connection.
    Last(Vec<u8>),
}

/// The counts of a test server.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

/// Starts a server that calls `act` for each request, with the number of the request on its
/// connection, from zero. Each connection has its own thread.
fn keeping(act: impl Fn(usize) -> Act + Send + Sync + 'static) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let counts = Arc::clone(&seen);
    let address = listen(move |client| {
        seen.connections.fetch_add(1, SeqCst);
        converse(client, &act, &seen);
    });
    (address, counts)
}

fn converse(mut client: TcpStream, act: impl Fn(usize) -> Act, seen: &Seen) {
    for number in 0.. {
        let Some(head) = read_head(&mut client) else { return };
        seen.requests.fetch_add(1, SeqCst);
        match act(number) {
            Act::Answer(answer) => client.write_all(&answer).expect("sent"),
            Act::AndThen(answer, more) => {
                client.write_all(&answer).expect("sent");
                std::thread::sleep(Duration::from_millis(20));
                client.write_all(more).expect("sent");
            }
            Act::Last(answer) => return client.write_all(&answer).expect("sent"),
        }
        // The client asked the server to close the connection.
        if head.contains("Connection: close") {
            return;
        }
    }
}

fn one() -> Vec<u8> {
    whole("", "one")
}

fn asked() -> Asked {
    Asked::get("o.test".into(), "/a".into(), Duration::ZERO)
}

/// Sends two probes, then the requests at intervals of 100 ms. They go to a correct origin and to
/// `proxy`. Copies reuse connections.
fn replay(proxy: SocketAddr, requests: Vec<Asked>) -> LeapReport {
    let (origin, _) = keeping(|_| Act::Answer(one()));
    let mut run = run_of(&[("direct", origin, Manner::Direct), ("proxy", proxy, Manner::Reverse)]);
    (run.connections, run.pace) = (Connections::Kept, LeapPace::Rate(10.0));
    let count = requests.len() as u64;
    let mut requests = requests.into_iter();
    let report =
        crate::leap::run(&run, &asked(), &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
    let direct = &report.paths[0];
    assert_eq!((direct.count(Verdict::Ok), direct.failed(), direct.late_surplus), (count, 0, 0));
    report
}

#[test]
fn a_kept_connection_is_asked_again_and_costs_nothing_to_connect() {
    let (proxy, seen) = keeping(|_| Act::Answer(one()));
    let report = replay(proxy, vec![asked(); 5]);
    let [direct, proxy] = &report.paths[..] else { panic!("two paths") };
    assert_eq!((direct.carriages, proxy.carriages), ([0, 5, 0], [0, 5, 0]));
    assert_eq!(
        (proxy.connect.count(), proxy.connect_median(), proxy.count(Verdict::Ok)),
        (0, 0, 5)
    );
    assert_eq!((seen.connections.load(SeqCst), seen.requests.load(SeqCst)), (1, 7));
    let records = format!("{:?}", report.records(&[]));
    assert!(records.contains("kept_connections_closed"), "{records}");
}

#[test]
fn one_that_was_closed_meanwhile_or_says_that_it_ends_is_nobodys_fault() {
    let (proxy, seen) = keeping(|_| Act::Last(whole("Connection: close\r\n", "one")));
    let report = replay(proxy, vec![asked(); 3]);
    assert_eq!((report.paths[1].failed(), report.paths[1].carriages), (0, [3, 0, 0]));
    assert_eq!(seen.connections.load(SeqCst), 5);
    let (proxy, seen) = keeping(|_| Act::Last(one()));
    let report = replay(proxy, vec![asked(); 3]);
    // The server closes the connection after each answer. The first request follows the probes so
    // closely that it may be sent before the close arrives.
    let [_, kept, _] = report.paths[1].carriages;
    assert_eq!((report.paths[1].failed(), report.paths[1].answers, kept), (0, 3, 0));
    assert_eq!(seen.connections.load(SeqCst), 5);
}

#[test]
fn one_that_is_closed_without_a_byte_is_tried_once_more_on_a_new_one_and_only_then() {
    let (proxy, seen) =
        keeping(|number| if number == 0 { Act::Answer(one()) } else { Act::Last(Vec::new()) });
    let report = replay(proxy, vec![asked(); 2]);
    assert_eq!((report.paths[1].count(Verdict::Ok), report.paths[1].carriages), (2, [0, 0, 2]));
    // The second probe and both requests each tried an idle connection, and the server closed it.
    // Each was then repeated on a new connection.
    assert_eq!((seen.connections.load(SeqCst), seen.requests.load(SeqCst)), (4, 7));
    assert!(report.paths[1].connect_median() > 0);

    let (proxy, seen) = keeping(|_| Act::Last(Vec::new()));
    let report = replay(proxy, vec![asked()]);
    assert_eq!(
        (report.paths[1].failures[PathFailure::Unanswered as usize], report.paths[1].carriages),
        (1, [1, 0, 0])
    );
    assert_eq!(seen.requests.load(SeqCst), 2, "the first probe and the request");

    let begins = |number| {
        if number == 0 { Act::Answer(one()) } else { Act::Last(b"HTTP/1.1 200 O".to_vec()) }
    };
    let report = replay(keeping(begins).0, vec![asked(); 2]);
    assert_eq!(
        (report.paths[1].failures[PathFailure::Closed as usize], report.paths[1].carriages),
        (1, [1, 1, 0])
    );
}

#[test]
fn unrepeatable_and_http_1_0_requests_get_new_connections() {
    let post = Message { method: Method::Post, body: Some("x".into()), ..Message::default() };
    let old = Message { version: foxy_http::Version::Http10, ..Message::default() };
    for message in [post, old] {
        let message = Arc::new(message);
        let requests = vec![Asked { message: Arc::clone(&message), ..asked() }; 2];
        let mut run = run_of(&[("direct", honest(), Manner::Direct)]);
        run.connections = Connections::Kept;
        let report = crate::leap::run(
            &run,
            &requests[0].clone(),
            &mut requests.into_iter(),
            &mut |_| {},
            &mut |_| {},
        );
        let report = report.expect("run");
        assert_eq!(
            (report.paths[0].answers, report.paths[0].carriages),
            (2, [2, 0, 0]),
            "{message:?}"
        );
    }
}

#[test]
fn surplus_bytes_are_named_and_never_taken_for_the_next_answer() {
    let twice = |_| Act::Answer([one(), whole("", "two")].concat());
    let report = replay(keeping(twice).0, vec![asked(); 3]);
    assert_eq!(
        (report.paths[1].failures[PathFailure::Surplus as usize], report.paths[1].carriages),
        (3, [3, 0, 0])
    );
    for more in [&b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo"[..], b"x"] {
        // The server sends more bytes only after answers to real requests, not after the two
        // probes. These bytes arrive before the next request.
        let late =
            move |number| if number < 2 { Act::Answer(one()) } else { Act::AndThen(one(), more) };
        let report = replay(keeping(late).0, vec![asked(); 3]);
        let proxy = &report.paths[1];
        assert_eq!((proxy.count(Verdict::Ok), proxy.failed()), (3, 0), "{:?}", proxy.examples);
        assert_eq!((proxy.late_surplus, proxy.carriages), (1, [1, 2, 0]));
    }
}

#[test]
fn a_kept_tunnel_carries_requests_for_its_own_server_alone() {
    let (secure, mut trust) = origin();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, secure.address().port()));
    let (certificates, own) = authority();
    let proxy =
        Multiplier::pass_through_tls(None, Some(certificates), Outgoing::new(&trust), TIME_LIMIT)
            .expect("started");
    trust.add_all(&own);
    let mut run =
        run_of(&[("direct", to, Manner::Direct), ("proxy", proxy.address(), Manner::Forward)]);
    (run.outgoing, run.connections) = (Outgoing::new(&trust), Connections::Kept);
    run.time_limit = Duration::from_secs(5);
    let asked = |host: &str, path: &str| {
        let authority = format!("{host}:{}", to.port());
        Asked::get(authority.into(), path.into(), Duration::ZERO).over(Scheme::Https)
    };
    let hosts = ["127.0.0.1", "localhost", "127.0.0.1", "localhost", "127.0.0.1"];
    let mut requests = hosts.iter().map(|host| asked(host, "/o/1/10/1"));
    let probe = asked("127.0.0.1", "/o/2/10/1");
    let report =
        crate::leap::run(&run, &probe, &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
    for path in &report.paths {
        assert_eq!(
            (path.count(Verdict::Ok), path.carriages),
            (5, [1, 4, 0]),
            "{:?}",
            path.examples
        );
    }
    assert_eq!(proxy.stop().expect("served").clients.expect("clients").connections, 2);
}
