//! Tests how much memory foxy uses: at most the bound in docs/operation.md, which depends on
//! `--memory`. After a peak, foxy must return to the memory that it used before.

mod support;

use foxy_base::clock;
use foxy_testkit::wait::PATIENCE;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use support::{Foxy, Origin};

/// Value of `--memory` in bytes.
const MEMORY: u64 = 32 << 20;

/// The bound in docs/operation.md: 1.75 times `--memory`, plus 40 MiB for the program. The factor
/// covers the allocator, which rounds sizes up and leaves holes.
const BOUND: u64 = MEMORY / 4 * 7 + (40 << 20);

const CLIENTS: usize = 8;

fn start(folder: &std::path::Path) -> Foxy {
    Foxy::start_plain(folder, &["--size", "512M", "--memory", "32M"])
}

/// Requests all URLs over a few persistent connections.
fn get(foxy: &Foxy, urls: &[String]) {
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mine = urls.iter().skip(client).step_by(CLIENTS);
            scope.spawn(move || mine.for_each(|url| drop(foxy.get(url))));
        }
    });
}

#[test]
fn disk_hits_leave_no_more_in_memory_than_it_is_told_to_use_and_a_stated_amount() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = start(folder.path());
    // Sizes in bytes just above one and two pages. foxy reads whole pages, so for these sizes it
    // reads the most bytes in relation to the record.
    let sizes = [4_200, 4_600, 5_000, 8_300, 8_800];
    let url =
        |number: usize| origin.url(&format!("{number}?bytes={}", sizes[number % sizes.len()]));
    let urls: Vec<_> = (0..8_000).map(url).collect();
    get(&foxy, &urls);
    get(&foxy, &urls);
    let memory = foxy.memory();
    assert!(memory <= BOUND, "{} MiB of {}", memory >> 20, BOUND >> 20);
    assert!(foxy.admin("/metrics").body.contains("foxy_store_hits_total"));
}

/// Number of clients at the peak. Each sends an incomplete request head, which is too short to
/// count against foxy's memory budget for large heads.
const CLIENTS_AT_PEAK: usize = 4_000;

/// Connects a client that sends most of a request head.
fn half_a_head(foxy: &Foxy) -> TcpStream {
    let mut stream = TcpStream::connect(foxy.proxy).expect("connected");
    let head = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: {}", "x".repeat(7_500));
    stream.write_all(head.as_bytes()).expect("sent");
    stream
}

/// Waits until `is_wanted` accepts the number of bytes that foxy uses, for at most `within`.
/// Returns the last number.
fn held(foxy: &Foxy, within: Duration, is_wanted: impl Fn(u64) -> bool) -> u64 {
    let begun = clock::monotonic();
    loop {
        let memory = foxy.memory();
        if is_wanted(memory) || clock::monotonic().since(begun) > within {
            return memory;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_a_peak_took_goes_back_within_ten_seconds() {
    const PEAK: u64 = 20 << 20;
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = start(folder.path());
    drop(foxy.get(&origin.url("a")));
    let before = foxy.memory();
    let clients: Vec<_> = (0..CLIENTS_AT_PEAK).map(|_| half_a_head(&foxy)).collect();
    let peak = held(&foxy, PATIENCE, |memory| memory >= before + PEAK);
    assert!(peak >= before + PEAK, "no peak: {} of {} MiB", peak >> 20, before >> 20);
    drop(clients);
    let limit = before + PEAK / 4;
    let after = held(&foxy, Duration::from_secs(10), |memory| memory <= limit);
    assert!(
        after <= limit,
        "{} MiB before, {} at the peak, {} after",
        before >> 20,
        peak >> 20,
        after >> 20
    );
}
