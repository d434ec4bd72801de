//! Tests that wrong passwords slow no other user, and that no log contains the passwords. The time
//! of an answer must not reveal whether a user exists.
//!
//! `docs/proofs.md` describes the test at full size.

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foxy_base::clock;
use foxy_base::random::Random;
use foxy_report::Latencies;
use foxy_testkit::http::{header, read_head};
use foxy_testkit::wait::PATIENCE;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;
use support::Origin;
use support::black_box::{BlackBox, binary, variable};
use support::run_record::RunRecord;

/// The beginning of each wrong password.
const WRONG: &str = "wrong-password-";
const PASSWORD: &str = "open sesame";
/// Local address of the good user, who sends right passwords.
const GOOD: &str = "127.0.0.2:0";
/// Local address of the guesser, who sends wrong passwords.
const GUESSER: &str = "127.0.0.3:0";
/// Largest factor by which wrong passwords may lengthen the 99th percentile of the good user's
/// request times, compared with requests without credentials. An increase of up to [`NOISE`] is
/// allowed in any case.
const SLOWER: f64 = 3.0;
/// A smaller increase of the 99th percentile of latency counts as noise.
const NOISE: Duration = Duration::from_millis(2);
/// foxy refuses wrong passwords of known and of unknown users. The medians of the times of both
/// refusals may differ by at most this share.
const MAX_DIFFERENCE: f64 = 0.02;

#[derive(Clone, Copy)]
struct Size {
    tries: u64,
    /// Number of connections of the guesser. Each sends five wrong passwords a second.
    guessers: u64,
    /// Duration of the phase in which only the good user sends requests.
    alone: Duration,
    /// Number of users who send their first request while the guesser sends wrong passwords.
    first: u64,
    /// Number of refusals that are timed for a known user, and for an unknown user.
    timings: u64,
    is_timed: bool,
}

const SMALL: Size = Size {
    tries: 60,
    guessers: 20,
    alone: Duration::from_millis(300),
    first: 2,
    timings: 10,
    is_timed: false,
};
const FULL: Size = Size {
    tries: 100_000,
    guessers: 200,
    alone: Duration::from_secs(20),
    first: 40,
    timings: 4_000,
    is_timed: true,
};

/// The foxy under test, which has a users file.
struct Scene {
    /// The process, behind a lock because the channel for its output cannot be shared between
    /// threads.
    foxy: Mutex<BlackBox>,
    process: u32,
    proxy: SocketAddr,
    admin: SocketAddr,
    origin: Origin,
    folder: tempfile::TempDir,
}

/// Results of a phase in which the good user's requests are timed.
#[derive(Default)]
struct Phase {
    good: Latencies,
    failures: u64,
    first: Latencies,
    answers: [u64; 2],
    processor_share: f64,
}

#[test]
fn wrong_passwords_slow_nobody_reveal_no_user_and_leave_no_trace() {
    let size = if variable("FOXY_GUESSES").is_some() { FULL } else { SMALL };
    let mut scene = Scene::start(size);
    let mut record = RunRecord::new("cargo test --test guesses", 1, size.tries as f64 / 1e5);
    scene.phase(size, 0, None);
    let alone = scene.phase(size, 0, None);
    let bare = scene.phase(size, size.tries / 5, None);
    let beside = scene.phase(size, size.tries, Some("ann"));
    for (name, phase) in [("alone", &alone), ("no-credentials", &bare), ("guesses", &beside)] {
        phase.record(&mut record, name);
    }
    let [known, unknown] = scene.timings(size.timings);
    let difference = distance(&known, &unknown);
    for (name, times) in [("known", &known), ("unknown", &unknown)] {
        for (quantile, share) in [("p5", 0.05), ("p50", 0.5), ("p95", 0.95)] {
            let value = times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
            measure(&mut record, &format!("time_of_refusal_{quantile}_us"), name, value, "us");
        }
    }
    measure(&mut record, "largest_difference_of_distributions", "foxy", difference, "share");
    let limit = 1.95 * (2.0 / size.timings as f64).sqrt();
    measure(&mut record, "difference_by_chance_1_in_1000", "foxy", limit, "share");
    let leaks = scene.leaks();
    measure(&mut record, "passwords_in_logs", "foxy", leaks.len() as f64, "count");
    let mut missed: Vec<String> = leaks;
    missed.extend((alone.failures + beside.failures > 0).then(|| "a good request failed".into()));
    let is_answered = beside.answers.iter().sum::<u64>() == size.tries && beside.answers[0] > 0;
    missed.extend((!is_answered).then(|| format!("answers: {:?}", beside.answers)));
    if size.is_timed {
        let limit = bare.p99().mul_f64(SLOWER).max(bare.p99() + NOISE);
        let slow = (beside.p99() > limit).then(|| format!("p99 {:?}", beside.p99()));
        let medians = [&known, &unknown].map(|times| times[times.len() / 2].as_secs_f64());
        let apart = (medians[0] / medians[1] - 1.0).abs() > MAX_DIFFERENCE;
        missed.extend(slow);
        missed.extend(apart.then(|| format!("medians of refusals: {medians:?}")));
    }
    record.write(variable("FOXY_GUESSES_RECORD").as_deref(), missed.is_empty());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Ends a phase when it is dropped.
struct EndOfPhase<'a>(&'a AtomicBool);

impl Drop for EndOfPhase<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Scene {
    fn start(size: Size) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        add_user(&path("users"), "ann");
        (0..size.first).for_each(|number| add_user(&path("users"), &format!("user{number}")));
        let mut command = Command::new(binary());
        command.env_clear().args(["serve", "--workers", "2", "--memory", "8M", "--size", "64M"]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--allow-destination", "127.0.0.0/8", "--access-log-format", "json"]);
        command.arg("--access-log").arg(path("access.log"));
        command.arg("--users-file").arg(path("users")).arg("--store").arg(path("store"));
        let mut foxy = BlackBox::spawn(&mut command).expect("the binary runs");
        let ready = foxy.ready(PATIENCE);
        let (proxy, admin) = ready.unwrap_or_else(|why| panic!("foxy did not start: {why}"));
        let (process, foxy) = (foxy.id(), Mutex::new(foxy));
        Self { foxy, process, proxy, admin, origin: Origin::start(), folder }
    }

    fn request(&self, credentials: Option<(&str, &str)>) -> String {
        let field = credentials.map_or(String::new(), |(user, password)| {
            let text = STANDARD.encode(format!("{user}:{password}"));
            format!("Proxy-Authorization: Basic {text}\r\n")
        });
        let (url, host) = (self.origin.url("page"), self.origin.address);
        format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n")
    }

    /// Times the requests of the good user, while a guesser sends `tries` requests with wrong
    /// passwords of `user`. If `user` is `None`, these requests have no credentials.
    fn phase(&self, size: Size, tries: u64, user: Option<&str>) -> Phase {
        let (is_over, result) = (AtomicBool::new(false), Mutex::new(Phase::default()));
        let (next, answers) = (AtomicU64::new(0), [AtomicU64::new(0), AtomicU64::new(0)]);
        let (began, processor) = (clock::monotonic(), processor_time(self.process));
        scope(|scope| {
            // If a guess fails, the threads of the good user end, so that the test ends too.
            let _over = EndOfPhase(&is_over);
            let good = |seed| self.good(seed, &is_over, &result);
            let goods: Vec<_> = (0..4).map(|seed| scope.spawn(move || good(seed))).collect();
            let guess = || self.guess(user, tries, size.guessers, &next, &answers);
            let guessers = if tries > 0 { size.guessers } else { 0 };
            let guessers: Vec<_> = (0..guessers).map(|_| scope.spawn(guess)).collect();
            if user.is_some() {
                self.first_requests(size, &result);
            }
            guessers.into_iter().for_each(|guesser| guesser.join().expect("no panic"));
            if tries == 0 {
                sleep(size.alone);
            }
            is_over.store(true, Ordering::SeqCst);
            goods.into_iter().for_each(|good| good.join().expect("no panic"));
        });
        let used = processor_time(self.process) - processor;
        let mut phase = result.into_inner().expect("no panic");
        phase.processor_share = used / clock::monotonic().since(began).as_secs_f64();
        phase.answers = answers.map(AtomicU64::into_inner);
        phase
    }

    /// Sends about 200 requests of the good user a second, until the phase is over.
    fn good(&self, seed: u64, is_over: &AtomicBool, result: &Mutex<Phase>) {
        let (mut random, request) = (Random::new(seed), self.request(Some(("ann", PASSWORD))));
        let (mut connection, mut times, mut failures) = (connect(GOOD, self.proxy), vec![], 0);
        while !is_over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10).mul_f64(random.unit()));
            let began = clock::monotonic();
            failures += u64::from(ask(&mut connection, &request) != 200);
            times.push(clock::monotonic().since(began));
        }
        let mut phase = result.lock().expect("no panic");
        times.into_iter().for_each(|time| phase.good.add(time));
        phase.failures += failures;
    }

    fn guess(
        &self,
        user: Option<&str>,
        tries: u64,
        guessers: u64,
        next: &AtomicU64,
        answers: &[AtomicU64; 2],
    ) {
        let mut connection = connect(GUESSER, self.proxy);
        let began = clock::monotonic();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= tries {
                return;
            }
            let due = Duration::from_millis(200).mul_f64(number as f64 / guessers as f64);
            sleep(due.saturating_sub(clock::monotonic().since(began)));
            let password = format!("{WRONG}{number}");
            let request = self.request(user.map(|user| (user, &*password)));
            match ask(&mut connection, &request) {
                407 => answers[0].fetch_add(1, Ordering::Relaxed),
                429 => answers[1].fetch_add(1, Ordering::Relaxed),
                status => panic!("a guess was answered with {status}"),
            };
        }
    }

    /// Sends the first request of each further user. Each user has a local address of its own.
    fn first_requests(&self, size: Size, result: &Mutex<Phase>) {
        for number in 0..size.first {
            sleep(Duration::from_millis(200));
            let mut connection = connect(&format!("127.0.1.{}:0", number + 1), self.proxy);
            let request = self.request(Some((&format!("user{number}"), PASSWORD)));
            let began = clock::monotonic();
            let status = ask(&mut connection, &request);
            let mut phase = result.lock().expect("no panic");
            phase.first.add(clock::monotonic().since(began));
            phase.failures += u64::from(status != 200);
        }
    }

    /// Returns the sorted times after which foxy refused wrong passwords: of a known user, and of
    /// an unknown user.
    fn timings(&self, count: u64) -> [Vec<Duration>; 2] {
        let mut times = [Vec::new(), Vec::new()];
        let (mut connection, mut random) = (connect(GUESSER, self.proxy), Random::new(3));
        for number in 0..count {
            let first = usize::from(random.chance(0.5));
            for kind in [first, 1 - first] {
                let password = format!("{WRONG}{kind}-{number}");
                let request = self.request(Some((["ann", "bob"][kind], &password)));
                let began = clock::monotonic();
                assert_eq!(ask(&mut connection, &request), 407);
                times[kind].push(clock::monotonic().since(began));
            }
        }
        times.iter_mut().for_each(|times| times.sort_unstable());
        times
    }

    /// Returns the places in logs, messages and metrics that contain a password.
    fn leaks(&mut self) -> Vec<String> {
        let metrics = support::request(
            self.admin,
            &format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", self.admin),
        );
        let foxy = self.foxy.get_mut().expect("no panic");
        foxy.signal("TERM");
        assert!(foxy.ended(PATIENCE).is_some(), "foxy does not stop");
        let log = std::fs::read_to_string(self.folder.path().join("access.log")).expect("a log");
        assert!(log.contains("\"user\":\"ann\""), "the log works");
        let encoded = STANDARD.encode(format!("ann:{WRONG}"));
        // The end of the Base64 text depends on the rest of the password, so it is cut off.
        let secrets = [WRONG, PASSWORD, &encoded[..encoded.len() - 4]];
        let places = [("log", log), ("message", foxy.said()), ("metrics", metrics.body)];
        let found = places.iter().flat_map(|(name, text)| {
            let lines = text.lines().filter(|line| secrets.iter().any(|it| line.contains(it)));
            lines.map(move |line| format!("{name}: {line}"))
        });
        found.collect()
    }
}

impl Phase {
    fn p99(&self) -> Duration {
        Duration::from_micros(self.good.at(0.99))
    }

    fn record(&self, record: &mut RunRecord, name: &str) {
        let quantiles = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];
        for (quantile, share) in quantiles {
            let value = self.good.at(share) as f64;
            measure(record, &format!("good_user_{quantile}_us"), name, value, "us");
        }
        if self.first.count() > 0 {
            for (quantile, share) in quantiles {
                let value = self.first.at(share) as f64;
                measure(record, &format!("first_request_{quantile}_us"), name, value, "us");
            }
        }
        measure(record, "good_requests", name, self.good.count() as f64, "count");
        measure(record, "failed_good_requests", name, self.failures as f64, "count");
        measure(record, "processor_share", name, self.processor_share, "share");
        measure(record, "answers_407", name, self.answers[0] as f64, "count");
        measure(record, "answers_429", name, self.answers[1] as f64, "count");
    }
}

/// Returns the largest distance between the cumulative distributions of two lists of times (the
/// statistic of Kolmogorov and Smirnov).
fn distance(first: &[Duration], second: &[Duration]) -> f64 {
    let share = |times: &[Duration], limit: Duration| {
        times.partition_point(|time| *time <= limit) as f64 / times.len() as f64
    };
    let limits = first.iter().chain(second);
    limits.map(|&limit| (share(first, limit) - share(second, limit)).abs()).fold(0.0, f64::max)
}

fn add_user(file: &Path, name: &str) {
    let mut add = Command::new(binary());
    add.args(["user", "add"]).arg(file).arg(name).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut add = add.spawn().expect("the binary runs");
    let mut input = add.stdin.take().expect("piped");
    writeln!(input, "{PASSWORD}").expect("foxy reads");
    drop(input);
    assert!(add.wait().expect("a child").success());
}

fn connect(from: &str, to: SocketAddr) -> BufReader<TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from: SocketAddr = from.parse().expect("an address");
    socket.bind(&from.into()).expect("a loopback address");
    socket.connect(&to.into()).expect("foxy accepts");
    socket.set_tcp_nodelay(true).expect("set");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    BufReader::new(socket.into())
}

/// Sends a request, and reads the answer. Returns its status.
fn ask(connection: &mut BufReader<TcpStream>, request: &str) -> u16 {
    connection.get_mut().write_all(request.as_bytes()).expect("sent");
    let head = read_head(connection).expect("an answer");
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    connection.read_exact(&mut vec![0; length.expect("a length")]).expect("a body");
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

/// Returns the processor time of a process in seconds.
fn processor_time(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = text.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64
}

fn measure(record: &mut RunRecord, name: &str, subject: &str, value: f64, unit: &str) {
    let line = format!("guesses: {subject}: {name} {value}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is writable");
    record.measure(name, subject, value, unit);
}
