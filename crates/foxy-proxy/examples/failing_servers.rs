//! Measures errors and latencies while servers of an origin die, become slow, or answer only probes
//! well. The other servers of the origin work. Also counts unsafe requests that were sent twice,
//! and forged fields that reach a server. Prints one record for each number. Run with `--release`.
#![expect(clippy::print_stdout, reason = "an example speaks to its user")]
#![expect(clippy::expect_used, reason = "an example ends with the first failure")]

use foxy_base::clock;
use foxy_proxy::cache::purge::Purges;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::server::{Parts, Proxy, name_resolver};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{GroupSettings, OriginServer, Origins, Probe, Scheme};
use foxy_testkit::changing_server::{Behaviour, ChangingServer, PROBE};
use foxy_testkit::client::Client;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const CLIENTS: usize = 8;
/// Number of requests in each phase of the measurement. Each tenth request is a POST.
const REQUESTS: usize = 40_000;
/// Time for which the slow server waits before each response.
const SLOW: Duration = Duration::from_millis(300);
/// Client address that clients forge in fields such as `X-Forwarded-For`.
const FORGED: &str = "192.0.2.66";

/// The failures in a scenario: the first element is the failure of the first server, and so on. All
/// failures begin after a tenth of the requests.
type Failures = [Failure];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Dies,
    TurnsSlow,
    Lies,
    HangsUp,
}

fn main() {
    use Failure::{Dies, HangsUp, Lies, TurnsSlow};
    let scenarios: [(&str, usize, &Failures); 7] = [
        ("the good server alone", 1, &[]),
        ("three good servers", 3, &[]),
        ("one of three dies", 3, &[Dies]),
        ("one of three turns slow", 3, &[TurnsSlow]),
        ("one of three lies", 3, &[Lies]),
        ("one of three hangs up", 3, &[HangsUp]),
        ("one dies, one turns slow, one lies, one is good", 4, &[Dies, TurnsSlow, Lies]),
    ];
    for (subject, count, failures) in scenarios {
        let servers: Vec<_> = (0..count).map(|_| ChangingServer::start()).collect();
        let addresses: Vec<_> = servers.iter().map(|server| server.address).collect();
        let proxy = proxy(&addresses);
        load(proxy.addresses()[0], 0, || {});
        let change = || {
            for (failure, server) in failures.iter().zip(&servers) {
                match failure {
                    Dies => server.dies(),
                    TurnsSlow => server.becomes(Behaviour::Slow(SLOW)),
                    Lies => server.becomes(Behaviour::Lies),
                    HangsUp => server.becomes(Behaviour::HangsUp),
                }
            }
        };
        report(subject, load(proxy.addresses()[0], REQUESTS, change));
        report_requests(subject, &servers, failures);
    }
}

/// Reports the requests that a server got twice or with forged fields, and the number of requests
/// that the slow server got.
fn report_requests(subject: &str, servers: &[ChangingServer], failures: &Failures) {
    let mut posts: HashMap<String, usize> = HashMap::new();
    let mut forged = 0;
    for request in servers.iter().flat_map(ChangingServer::requests) {
        forged += usize::from(request.contains(FORGED));
        if request.starts_with("POST") {
            let line = request.lines().next().unwrap_or_default().to_owned();
            *posts.entry(line).or_default() += 1;
        }
    }
    measure("posts", subject, posts.len());
    measure("posts_sent_twice", subject, posts.values().filter(|count| **count > 1).count());
    measure("requests_with_forged_fields_at_a_server", subject, forged);
    if let Some(place) = failures.iter().position(|failure| *failure == Failure::TurnsSlow) {
        // At least half of these requests reached the server after it had become slow.
        measure("requests_of_the_slow_server", subject, servers[place].requests().len());
    }
}

fn proxy(addresses: &[SocketAddr]) -> Proxy {
    let server = |address: &SocketAddr| OriginServer {
        scheme: Scheme::Http,
        host: address.ip().to_string(),
        port: address.port(),
    };
    let servers: Vec<_> = addresses.iter().map(server).collect();
    let group = GroupSettings {
        probe: Some(Probe { path: PROBE.into(), interval: Duration::from_millis(500) }),
        servers: servers.clone(),
        ..GroupSettings::of_one(servers[0].clone())
    };
    let origins = Origins::new(vec![group], &Origins::default(), clock::monotonic(), 7);
    let settings = ProxySettings {
        listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
        mode: Mode::Reverse { origins: origins.into() },
        ..ProxySettings::default()
    };
    let parts = Parts {
        store: None,
        cold: None,
        purges: Purges::in_memory(),
        sink: None,
        sample: None,
        resolver: name_resolver(Vec::new()),
        sockets: Vec::new(),
    };
    Proxy::start(settings, parts).expect("the proxy starts")
}

/// Sends the requests of a phase, and calls `change` after the first tenth. Returns the number of
/// answers other than 200, and the latencies in order.
fn load(address: SocketAddr, first: usize, change: impl Fn() + Sync) -> (usize, Vec<Duration>) {
    let (next, errors) = (AtomicUsize::new(first), AtomicUsize::new(0));
    let latencies = Mutex::new(Vec::with_capacity(REQUESTS));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::on(TcpStream::connect(address).expect("it accepts"));
                let mut own = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= first + REQUESTS {
                        break;
                    }
                    if number == first + REQUESTS / 10 {
                        change();
                    }
                    let began = clock::monotonic();
                    let status = client.ask(&request(number)).status;
                    own.push(clock::monotonic().since(began));
                    errors.fetch_add(usize::from(status != 200), Ordering::SeqCst);
                }
                latencies.lock().expect("not poisoned").append(&mut own);
            });
        }
    });
    let mut latencies = latencies.into_inner().expect("not poisoned");
    latencies.sort_unstable();
    (errors.into_inner(), latencies)
}

fn request(number: usize) -> String {
    let fields = format!(
        "Host: a.test\r\nX-Forwarded-For: {FORGED}\r\nForwarded: for={FORGED}\r\n\
         X-Real-IP: {FORGED}\r\nConnection: X-Hop, X-Forwarded-For, Forwarded\r\n\
         X-Hop: {FORGED}\r\nKeep-Alive: {FORGED}\r\nProxy-Connection: {FORGED}"
    );
    if number.is_multiple_of(10) {
        return format!("POST /{number} HTTP/1.1\r\n{fields}\r\nContent-Length: 2\r\n\r\nhi");
    }
    format!("GET /{number} HTTP/1.1\r\n{fields}\r\n\r\n")
}

fn report(subject: &str, (errors, latencies): (usize, Vec<Duration>)) {
    measure("requests", subject, latencies.len());
    measure("errors", subject, errors);
    for (name, permille) in [("p50_us", 500), ("p99_us", 990), ("p999_us", 999)] {
        let latency = latencies[latencies.len() * permille / 1000];
        measure(name, subject, latency.as_micros());
    }
}

fn measure(name: &str, subject: &str, value: impl std::fmt::Display) {
    println!(
        "{{\"kind\": \"measure\", \"name\": \"{name}\", \"subject\": \"{subject}\", \
         \"value\": {value}, \"repeats\": 1}}"
    );
}
