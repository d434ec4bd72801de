//! Tests that an answer from the Collector's cache takes the same time as the original fetch.

use super::*;
use crate::leap::collector::answer::spool;
use crate::wire::key;
use foxy_base::Random;
use foxy_report::statistics::distribution_distance;
use std::rc::Rc;

/// The durations of equal requests in milliseconds: a miss, the hit that follows, and two requests
/// sent directly to the origin.
struct Pair {
    miss: f64,
    hit: f64,
    itself: [f64; 2],
}

/// The largest allowed difference between the durations of a hit and of the miss before it, in
/// milliseconds.
const BAR_MS: f64 = 2.0;

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Checks that a hit takes as long as the miss before it. The bound is `BAR_MS` plus the difference
/// between two direct requests. It applies to the median and the 90th percentile of the time
/// differences. One of five rounds must pass, because other work on the machine disturbs the times.
fn held(name: &str, mut round: impl FnMut() -> Vec<Pair>) {
    let mut seen = Vec::new();
    for _ in 0..5 {
        let pairs = round();
        let at = |share: f64, apart: &dyn Fn(&Pair) -> f64| {
            let mut apart: Vec<f64> = pairs.iter().map(apart).collect();
            apart.sort_by(f64::total_cmp);
            apart[((apart.len() - 1) as f64 * share) as usize]
        };
        let found = [0.5, 0.9].map(|share| {
            let noise = at(share, &|pair| (pair.itself[0] - pair.itself[1]).abs());
            (at(share, &|pair| (pair.hit - pair.miss).abs()), noise)
        });
        let (misses, hits): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|pair| (pair.miss, pair.hit)).unzip();
        let distance = distribution_distance(&misses, &hits);
        if found.iter().all(|(apart, noise)| *apart <= BAR_MS + noise) && distance < 1.0 {
            return;
        }
        seen.push((found, distance));
    }
    panic!(
        "{name}: median and p90 with their noise, and distance of distributions, by round: {seen:?}"
    );
}

/// Starts an origin that reads its delays from the URL path `/FIRST/GAP/PIECES`. FIRST is the delay
/// of the first byte in milliseconds. GAP is the delay between pieces in milliseconds. PIECES is
/// the number of pieces of 1,000 bytes.
fn slow() -> Origin {
    Origin::new(|request, client| {
        let path = request.split(' ').nth(1).expect("a path");
        let numbers: Vec<u64> =
            path.split(['/', '?']).filter_map(|part| part.parse().ok()).collect();
        std::thread::sleep(Duration::from_millis(numbers[0]));
        let fields = "ETag: \"1\"\r\nCache-Control: max-age=900\r\n";
        if request.contains("If-None-Match: \"1\"") {
            return give(client, format!("HTTP/1.1 304 Same\r\n{fields}\r\n").as_bytes());
        }
        let (first, rest) = ("x".repeat(1000), numbers[2] - 1);
        let length = numbers[2] * 1000;
        give(
            client,
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{first}")
                .as_bytes(),
        );
        for _ in 0..rest {
            std::thread::sleep(Duration::from_millis(numbers[1]));
            give(client, first.as_bytes());
        }
    })
}

/// Sends pairs of equal requests to two listeners of a Collector (common parent proxy). With
/// `later`, the second request of a pair starts this long after the first. Each pair requests
/// another URL.
fn pairs(
    origin: &Origin,
    collector: &Collector,
    lines: [&str; 2],
    pieces: u64,
    later: Option<Duration>,
) -> Vec<Pair> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let (to, mut random) = (collector.addresses(), Random::new(7));
    (0..20)
        .map(|_| {
            let (first, mark) = (1 + random.below(10), NUMBER.fetch_add(1, Ordering::SeqCst));
            let url = origin.url(&format!("/{first}/2/{pieces}?{mark}"));
            let whole = if pieces == 0 { 0 } else { pieces as usize * 1000 };
            let (miss, hit) = match later {
                None => (get(to[0], &url, lines[0]), get(to[1], &url, lines[1])),
                Some(wait) => std::thread::scope(|scope| {
                    let miss = scope.spawn(|| get(to[0], &url, lines[0]));
                    std::thread::sleep(wait);
                    (get(to[1], &url, lines[1]), miss.join().expect("asked"))
                }),
            };
            assert!(miss.body.len() == whole || miss.status == 304, "{}", miss.head);
            assert_eq!((miss.status, miss.body.len()), (hit.status, hit.body.len()));
            let itself = [0, 1].map(|_| milliseconds(get(origin.address, &url, lines[0]).last));
            Pair { miss: milliseconds(miss.last), hit: milliseconds(hit.last), itself }
        })
        .collect()
}

const SAME: &str = "If-None-Match: \"1\"\r\n";
const OTHER: &str = "If-None-Match: \"0\"\r\n";

#[test]
fn a_hit_takes_as_long_as_its_miss_with_any_conditions_and_in_a_single_packet() {
    let (origin, collector) = (slow(), collector(2, |_| {}));
    for (name, lines, pieces) in [
        ("no condition", ["", ""], 4),
        ("not modified", [SAME, SAME], 4),
        ("modified", [OTHER, OTHER], 4),
        ("modified, and asked for without a condition", [OTHER, ""], 4),
        ("one packet", ["", ""], 1),
    ] {
        held(name, || pairs(&origin, &collector, lines, pieces, None));
    }
    let report = collector.report();
    assert_eq!(report.requests(), 2 * report.fetches);
}

#[test]
fn a_request_during_the_fetch_takes_as_long_as_the_first() {
    let (origin, collector) = (slow(), collector(2, |_| {}));
    for wait in [0, 4] {
        held("concurrent", || {
            pairs(&origin, &collector, ["", ""], 4, Some(Duration::from_millis(wait)))
        });
    }
}

/// Starts an origin that spreads a body over 30 ms and sends a confirmation (304) after 60 ms.
fn confirming() -> Origin {
    Origin::new(|request, client| {
        let fields = "ETag: \"1\"\r\nCache-Control: max-age=900\r\n";
        if request.contains("If-None-Match: \"1\"") {
            std::thread::sleep(Duration::from_millis(60));
            return give(
                client,
                format!("HTTP/1.1 304 Same\r\nX-News: yes\r\n{fields}\r\n").as_bytes(),
            );
        }
        give(
            client,
            format!("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n{fields}\r\n12345").as_bytes(),
        );
        std::thread::sleep(Duration::from_millis(30));
        give(client, b"67890");
    })
}

/// The Collector (common parent proxy) normally asks the origin about a stored answer when its
/// lifetime ends. The test cannot wait three minutes, so it sends a reload request.
#[test]
fn a_confirmed_answer_costs_the_new_first_byte_and_the_old_transfer() {
    let origin = confirming();
    let spool = Rc::new(spool::Spool::new(1 << 20, None));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let shared = Rc::new(
            shared::Shared::new(CollectorOptions::new(Vec::new()), &[], Arc::default())
                .expect("made"),
        );
        let alarmed = Rc::clone(&shared);
        tokio::task::spawn_local(async move { alarmed.alarm.run().await });
        let head = key::tests::head(&format!("GET {} HTTP/1.1\nHost: x", origin.url("/")));
        let to = key::Destination::of(&head, crate::Scheme::Http).expect("http");
        let (asked, url) = (key::RequestKey::new(&head, &to, 0), to.url(&head));
        let request =
            request::Request { head, body: None, to, url, asked, arrival: clock::monotonic() };
        let request = Rc::new(request);
        let (mut older, mut kept) = (None, Vec::new());
        for _ in 0..2 {
            let answer = Rc::new(answer::SharedAnswer::new(&spool));
            let make = || Rc::clone(&answer);
            let unlike =
                key::RequestKey { key: older.is_some().into(), conditional: None, reload: true };
            let decision = shared.table.borrow_mut().find(
                &unlike,
                &request.head.headers,
                clock::monotonic(),
                make,
            );
            let table::Decision::Fetch(slot, _) = decision else { panic!("{decision:?}") };
            shared.fetches.set(1);
            let (request, answer_of, older_of) =
                (Rc::clone(&request), Rc::clone(&answer), older.clone());
            let (address, turn) = (origin.address.ip(), Duration::ZERO);
            fetch::run(
                Rc::clone(&shared),
                fetch::Errand { slot, answer: answer_of, request, address, turn, older: older_of },
            )
            .await;
            kept.push(Rc::clone(&answer));
            older = Some(answer);
        }
        let first = &kept[0];
        kept[1].see(|progress| {
            let start = progress.start.as_ref().expect("a head");
            assert!(
                start.confirms
                    && start.head.status == 200
                    && start.first_byte >= Duration::from_millis(60),
                "{start:?}"
            );
            assert_eq!(start.head.headers.get_str("x-news"), Some("yes"));
            let last = progress.marks.after(9).expect("a mark");
            assert!(last.end == 10 && last.at >= Duration::from_millis(10), "{last:?}");
            assert_eq!(first.see(|first| first.marks.after(9)), Some(last), "as it came then");
            assert_eq!(progress.body.length(), 10);
        });
    });
    assert_eq!(origin.count(), 2);
}

/// Returns the number of bytes that have arrived so far, without waiting.
fn come(stream: &mut TcpStream) -> usize {
    stream.set_nonblocking(true).expect("set");
    let mut piece = vec![0; 64 << 10];
    std::iter::repeat_with(|| stream.read(&mut piece).unwrap_or(0))
        .take_while(|read| *read > 0)
        .sum()
}

#[test]
fn lesson_2_no_follower_has_a_byte_before_the_initiator_nor_ends_before_it() {
    let (origin, collector) = (slow(), collector(4, |_| {}));
    for (pieces, mark) in [(1, 1), (5, 2)] {
        let text = format!(
            "GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            origin.url(&format!("/20/5/{pieces}?{mark}"))
        );
        let ask = |to: &SocketAddr| {
            let mut stream = TcpStream::connect(to).expect("connected");
            stream.write_all(text.as_bytes()).expect("sent");
            stream
        };
        let mut initiator = ask(&collector.addresses()[0]);
        while origin.count() < mark {
            std::thread::yield_now();
        }
        let mut followers: Vec<_> =
            collector.addresses()[1..].iter().map(|to| (ask(to), 0)).collect();
        // On one machine, a sent byte arrives at once. So the initiator (the first request) must
        // already have every byte that a follower has.
        let mut at_initiator = 0;
        while followers
            .iter()
            .any(|(_, bytes)| *bytes <= pieces * 1000 + 100 || *bytes < at_initiator)
        {
            for (stream, bytes) in &mut followers {
                *bytes += come(stream);
                at_initiator += come(&mut initiator);
                assert!(*bytes <= at_initiator, "{bytes} bytes, and the initiator {at_initiator}");
            }
        }
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn lesson_1_a_name_is_paid_for_once_by_each_proxy() {
    let origin = slow();
    let collector = collector(3, |options| {
        options.origin = Some(origin.address);
        options.name_cost = Duration::from_millis(150);
    });
    let to = collector.addresses();
    let ask = |proxy: usize, host: &str, mark: u32| {
        get(to[proxy], &format!("http://{host}/1/1/1?{mark}"), "").last
    };
    let paid = Duration::from_millis(150);
    assert!(ask(0, "a.test", 1) >= paid);
    assert!(ask(0, "a.test", 2) < paid, "it has paid");
    assert!(ask(1, "a.test", 1) >= paid, "a hit, but this proxy has not paid");
    assert!(ask(1, "a.test:81", 3) < paid, "the port is not part of the name");
    assert!(ask(1, "b.test", 4) >= paid, "another name");
    assert!(ask(2, "127.0.0.1", 5) < paid, "an address has no name");
}

#[test]
fn the_modelled_round_trips_are_paid_by_misses_and_hits_alike() {
    let origin = slow();
    let collector = collector(2, |options| options.round_trip = Duration::from_millis(25));
    let url = origin.url("/1/1/1");
    for &to in collector.addresses() {
        let took = get(to, &url, "").last;
        assert!(took >= Duration::from_millis(51), "{took:?}");
    }
}
