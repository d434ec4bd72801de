//! Tests large bodies, which the cache stores in parts of 1 MiB. Certain parts stay in memory, and
//! no client may receive bytes of an outdated response.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::cache::purge::{Named, Strength};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use std::sync::{Arc, Barrier};

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";

const PART: usize = 1 << 20;
const LENGTH: usize = 4 * PART + 5;
const PARTS: usize = 5;

/// Size of the memory cache in bytes. It has room for every part of a body.
const MEMORY: u64 = 256 << 20;

/// Returns the body of one version. Each byte differs from the byte at the same position of every
/// other version.
fn body(version: usize) -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251).wrapping_add(version) as u8).collect()
}

/// Starts an origin that answers each request with another version of the body.
fn origin() -> TestOrigin {
    TestOrigin::start(|_, number| ok(FRESH, &body(number)))
}

fn with_memory(memory: u64) -> TestProxy {
    proxy_with(|settings| settings.memory = memory)
}

fn is_hit(proxy: &TestProxy, url: &str, version: usize) {
    let answer = proxy.get(url, "");
    assert!(answer.cache_status().starts_with("foxy; hit"), "{}", answer.head);
    assert!(answer.body == body(version), "not version {version}");
}

#[test]
fn a_part_that_was_read_twice_is_read_no_more_whole_or_for_a_range() {
    let (origin, proxy) = (origin(), with_memory(MEMORY));
    let url = origin.url("/x");
    proxy.get(&url, "");
    is_hit(&proxy, &url, 0);
    is_hit(&proxy, &url, 0);
    assert_eq!(proxy.store.found(), 2 * PARTS);
    is_hit(&proxy, &url, 0);
    let range = proxy.get(&url, "Range: bytes=1048570-1048580\r\n");
    assert!(range.status == 206 && range.body == body(0)[1_048_570..=1_048_580], "{}", range.head);
    assert_eq!(proxy.store.found(), 2 * PARTS, "read again");
    assert_eq!(proxy.count(Counter::StoreParts), 2 * PARTS as u64);
    assert_eq!(proxy.count(Counter::MemoryParts), PARTS as u64 + 2);
}

#[test]
fn a_body_that_is_read_once_takes_no_memory() {
    let (origin, proxy) = (origin(), with_memory(MEMORY));
    proxy.get(&origin.url("/x"), "");
    is_hit(&proxy, &origin.url("/x"), 0);
    assert!(
        proxy.proxy.gauges().memory().0 < PART as u64 / 2,
        "{:?}",
        proxy.proxy.gauges().memory()
    );
}

#[test]
fn parts_take_no_more_memory_than_there_is() {
    let memory = 40 << 20;
    let (origin, proxy) = (origin(), with_memory(memory));
    for number in 0..12 {
        let url = origin.url(&format!("/{number}"));
        proxy.get(&url, "");
        (0..3).for_each(|_| is_hit(&proxy, &url, number));
        assert!(proxy.proxy.gauges().memory().0 <= memory);
    }
    assert!(proxy.count(Counter::MemoryParts) > 0, "none was kept");
}

#[test]
fn a_purge_and_a_replacement_hold_for_parts_in_memory() {
    let (origin, proxy) = (origin(), with_memory(MEMORY));
    let url = origin.url("/x");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let scopes = Named::Url.scopes(&url).expect("a name");
    for version in [0, 2] {
        proxy.get(&url, "");
        (0..3).for_each(|_| is_hit(&proxy, &url, version));
        let reload = proxy.get(&url, "Cache-Control: no-cache\r\nIf-None-Match: \"other\"\r\n");
        assert!(reload.body == body(version + 1), "{}", reload.head);
        (0..3).for_each(|_| is_hit(&proxy, &url, version + 1));
        runtime.block_on(proxy.proxy.handle().purge(&scopes, Strength::Hard)).expect("purged");
    }
    assert!(proxy.get(&url, "").body == body(4), "what was purged came back");
    assert!(proxy.count(Counter::MemoryParts) > 0, "none was kept");
}

#[test]
fn many_clients_of_one_body_get_every_byte_in_little_memory() {
    for memory in [0, MEMORY] {
        let (origin, proxy) = (origin(), with_memory(memory));
        let url = origin.url("/x");
        proxy.get(&url, "");
        let begin = Arc::new(Barrier::new(20));
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    begin.wait();
                    (0..3).for_each(|_| is_hit(&proxy, &url, 0));
                });
            }
        });
        assert_eq!(origin.requests(), 1);
        if memory > 0 {
            assert!(proxy.store.found() < 20 * PARTS, "each client read for itself");
        }
    }
}
