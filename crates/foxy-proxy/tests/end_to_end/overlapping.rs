//! Tests fetches of one URL that overlap. In whatever order they end, later answers must be the
//! response of the fetch that began last (RFC 9111 §4). Fetches of other URLs must make no
//! difference.

use crate::bench::{TestProxy, forward_proxy, proxy_with};
use crate::ranges::sparse::{SLICE, Sparse};
use foxy_proxy::cache::CacheKey;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

const RELOAD: &str = "Cache-Control: no-cache\r\n";
const VARIES: &str = "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n";
const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// Starts an origin that gives `answers` in order, and then repeats the last answer. It delays each
/// answer whose number is in `held`, until the test sends a message on the channel of this answer.
fn origin<const HELD: usize>(
    answers: Vec<Vec<u8>>,
    held: [usize; HELD],
) -> (TestOrigin, [Sender<()>; HELD]) {
    let channels = held.map(|number| (number, channel()));
    let go = channels.each_ref().map(|(_, (go, _))| go.clone());
    let waits = channels.map(|(number, (_, wait))| (number, Mutex::new(wait)));
    let origin = TestOrigin::start(move |_, number| {
        if let Some((_, wait)) = waits.iter().find(|(held, _)| *held == number) {
            wait.lock().expect("not poisoned").recv().expect("the test goes on");
        }
        answers[number.min(answers.len() - 1)].clone()
    });
    (origin, go)
}

/// Sends a request on another thread. Returns when the origin has received the request.
fn slowly(proxy: &TestProxy, origin: &TestOrigin, lines: &str) -> JoinHandle<Vec<u8>> {
    let (mut client, before) = (proxy.connect(), origin.requests());
    let request =
        format!("GET {} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", origin.url("/x"), origin.address);
    let asked = thread::spawn(move || client.ask(&request).body);
    while origin.requests() == before {
        thread::yield_now();
    }
    asked
}

/// Lets the origin give a delayed answer. Returns the body that `late` then receives.
fn released(go: &Sender<()>, late: JoinHandle<Vec<u8>>) -> Vec<u8> {
    go.send(()).expect("the origin waits");
    late.join().expect("answered")
}

fn language(name: &str) -> String {
    format!("Accept-Language: {name}\r\n")
}

fn reload(name: &str) -> String {
    format!("{RELOAD}{}", language(name))
}

/// Returns URLs that share a lock in the cache with the URL `/x`, because the hashes of their keys
/// fall into the same group.
fn beside(origin: &TestOrigin) -> impl Iterator<Item = String> {
    let group = |url: &str| {
        let key = CacheKey::new(url.to_owned()).hash.0;
        u16::from_le_bytes([key[2], key[3]]) % 1024
    };
    let (base, wanted) = (origin.url("/"), group(&origin.url("/x")));
    (0..).map(move |number: u32| format!("{base}{number}")).filter(move |url| group(url) == wanted)
}

#[test]
fn reloads_of_two_variants_overlap_and_each_variant_is_renewed() {
    let answers = [&b"en 1"[..], b"de 1", b"en 2", b"de 2"].map(|body| ok(VARIES, body));
    let (origin, [go]) = origin(answers.to_vec(), [2]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    for name in ["en", "de"] {
        proxy.get(&url, &language(name));
    }
    let late = slowly(&proxy, &origin, &reload("en"));
    assert_eq!(proxy.get(&url, &reload("de")).body, b"de 2");
    assert_eq!(released(&go, late), b"en 2");
    for (name, body) in [("en", b"en 2"), ("de", b"de 2")] {
        let hit = proxy.get(&url, &language(name));
        assert!(hit.cache_status().starts_with("foxy; hit"), "{name}: {}", hit.head);
        assert_eq!(hit.body, body, "{name}");
    }
}

#[test]
fn a_slow_fetch_brings_nothing_older_back_after_many_reloads_of_other_urls() {
    let (origin, [go]) = origin(vec![ok(FRESH, b"v1"), ok(FRESH, b"v2")], [0]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let late = slowly(&proxy, &origin, "");
    assert_eq!(proxy.get(&url, RELOAD).body, b"v2");
    for other in beside(&origin).take(40) {
        proxy.get(&other, RELOAD);
    }
    assert_eq!(released(&go, late), b"v1");
    assert_eq!(proxy.get(&url, "").body, b"v2");
}

#[test]
fn a_slow_fetch_is_kept_after_many_reloads_of_other_urls() {
    let (origin, [go]) = origin(vec![ok(FRESH, b"v1")], [0]);
    let proxy = forward_proxy();
    let late = slowly(&proxy, &origin, "");
    for other in beside(&origin).take(40) {
        proxy.get(&other, RELOAD);
    }
    released(&go, late);
    let hit = proxy.get(&origin.url("/x"), "");
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
}

#[test]
fn an_unsafe_request_for_another_url_costs_no_fetch_its_place() {
    let (origin, [go]) = origin(vec![ok(FRESH, b"v1"), ok("", b"posted")], [0]);
    let proxy = forward_proxy();
    let late = slowly(&proxy, &origin, "");
    let other = beside(&origin).next().expect("there are more");
    let posted =
        format!("PUT {other} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", origin.address);
    assert_eq!(proxy.connect().ask(&posted).body, b"posted");
    released(&go, late);
    let hit = proxy.get(&origin.url("/x"), "");
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
}

#[test]
fn a_newer_response_that_is_not_stored_lets_no_older_one_in() {
    let newer = ok("Cache-Control: no-store\r\n", b"v2");
    let (origin, [go]) = origin(vec![ok(FRESH, b"v1"), newer], [0]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let late = slowly(&proxy, &origin, "");
    assert_eq!(proxy.get(&url, RELOAD).body, b"v2");
    assert_eq!(released(&go, late), b"v1");
    assert_eq!(proxy.get(&url, "").body, b"v2");
}

#[test]
fn a_list_that_an_older_fetch_changes_hides_no_newer_variant() {
    let other = ok("Cache-Control: max-age=600\r\nVary: Cookie\r\n", b"older");
    let answers = vec![ok(VARIES, b"en 1"), other, ok(VARIES, b"en 2"), ok(VARIES, b"en 3")];
    let (origin, [older, newer]) = origin(answers, [1, 2]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, &language("en"));
    let [one, two] = [(); 2].map(|()| slowly(&proxy, &origin, &reload("en")));
    assert_eq!(released(&older, one), b"older");
    assert_eq!(released(&newer, two), b"en 2");
    let body = proxy.get(&url, &language("en")).body;
    assert!([&b"en 2"[..], b"en 3"].contains(&&*body), "{}", String::from_utf8_lossy(&body));
}

#[test]
fn a_whole_that_answers_a_range_lets_no_older_response_of_its_variant_in() {
    let answers = [&b"de 0"[..], b"en 1", b"en 2", b"de 3", b"en 4"].map(|body| ok(VARIES, body));
    let (origin, [plain, ranged]) = origin(answers.to_vec(), [1, 2]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, &language("de"));
    let plain_fetch = slowly(&proxy, &origin, &language("en"));
    let ranged_fetch = slowly(&proxy, &origin, &format!("Range: bytes=0-1\r\n{}", language("en")));
    assert_eq!(proxy.get(&url, &reload("de")).body, b"de 3");
    released(&ranged, ranged_fetch);
    assert_eq!(released(&plain, plain_fetch), b"en 1");
    let hit = proxy.get(&url, &language("en"));
    assert_eq!(hit.body, b"en 2", "{}", hit.head);
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
}

#[test]
fn no_request_joins_a_fetch_that_began_before_a_newer_response_was_answered() {
    let answers = [&b"en 1"[..], b"en 2", b"en 3"].map(|body| ok(VARIES, body));
    let (origin, [older]) = origin(answers.to_vec(), [0]);
    let proxy = proxy_with(|settings| settings.memory = 0);
    let url = origin.url("/x");
    let older_fetch = slowly(&proxy, &origin, &language("en"));
    let ranged = proxy.get(&url, &format!("Range: bytes=0-1\r\n{}", language("en")));
    assert_eq!(ranged.body, b"en 2", "{}", ranged.head);
    proxy.store.forget_everything();
    let next = proxy.get(&url, &language("en"));
    assert_eq!(next.body, b"en 3", "{}", next.head);
    assert_eq!(released(&older, older_fetch), b"en 1");
    assert_eq!(proxy.get(&url, &language("en")).body, b"en 3");
}

#[test]
fn a_reload_that_breaks_off_after_its_head_lets_no_older_response_in() {
    let mut broken = ok(&format!("{FRESH}Connection: close\r\n"), b"v2");
    broken.truncate(broken.len() - 1);
    let answers = vec![ok(FRESH, b"v1"), broken, ok(FRESH, b"v3")];
    let (origin, [older]) = origin(answers, [0]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let older_fetch = slowly(&proxy, &origin, "");
    let mut client = proxy.connect();
    client
        .send(format!("GET {url} HTTP/1.1\r\nHost: {}\r\n{RELOAD}\r\n", origin.address).as_bytes());
    while client.read() > 0 {}
    assert_eq!(released(&older, older_fetch), b"v1");
    let next = proxy.get(&url, "");
    assert_eq!(next.body, b"v3", "{}", next.head);
}

#[test]
fn a_whole_whose_fetch_began_before_a_newer_slice_was_fetched_is_not_kept() {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let newer = Sparse::fresh(2 * SLICE);
    let origin = TestOrigin::start(move |head, number| {
        if number == 0 {
            wait.lock().expect("not poisoned").recv().expect("the test goes on");
            return ok("Cache-Control: max-age=600\r\nETag: \"old\"\r\n", b"old");
        }
        newer.answer(head)
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let late = slowly(&proxy, &origin, "");
    let slice = proxy.get(&url, "Range: bytes=0-9\r\n");
    assert_eq!(slice.status, 206, "{}", slice.head);
    assert_eq!(released(&go, late), b"old");
    assert_ne!(proxy.get(&url, "").body, b"old");
}

#[test]
fn what_a_busy_store_had_is_gone_when_it_refuses_what_was_fetched_instead() {
    let (origin, []) = origin(vec![ok(FRESH, b"v1"), ok(FRESH, b"v2"), ok(FRESH, b"v3")], []);
    let proxy = proxy_with(|settings| settings.memory = 0);
    let url = origin.url("/x");
    proxy.get(&url, "");
    proxy.store.set_busy(true);
    proxy.store.refuse();
    assert_eq!(proxy.get(&url, "").body, b"v2");
    proxy.store.set_busy(false);
    assert_eq!(proxy.get(&url, "").body, b"v3");
}

#[test]
fn requests_for_private_responses_do_not_wait_for_each_other() {
    let answers = [&b"1"[..], b"2", b"3"].map(|body| ok("Cache-Control: private\r\n", body));
    let (origin, [go]) = origin(answers.to_vec(), [1]);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let late = slowly(&proxy, &origin, "");
    assert_eq!(proxy.get(&url, "").body, b"3");
    assert_eq!(released(&go, late), b"2");
}
