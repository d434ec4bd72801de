//! The store of the cold tier fails or hangs: no request fails, and none waits long.

use crate::PAGES;
use crate::s3::Mood;
use crate::scene::{PAGE_BYTES, Scene, purge, purge_surely, sent_a_segment, sum};
use crate::support::Foxy;
use foxy_base::clock;
use std::time::Duration;

/// Largest size in bytes of all records that wait: two segments and the queue before them.
const MAX_WAITING_BYTES: f64 = 42.0 * 1024.0 * 1024.0;

/// Gets more than two segments of pages, each twice. Then foxy must have refused some records.
fn overfill(scene: &Scene, foxy: &Foxy) {
    for number in 100..100 + 4 * PAGES {
        let url = scene.page(number);
        for _ in 0..2 {
            assert_eq!(foxy.get(&url).status, 200);
        }
    }
    let busy = "foxy_cold_refused_total{reason=\"busy\"}";
    assert!(sum(foxy, busy) > 0.0, "no record was refused");
    let waiting = sum(foxy, "foxy_cold_records{state=\"waiting\"}");
    assert!(waiting * PAGE_BYTES as f64 <= MAX_WAITING_BYTES, "{waiting} records wait");
}

#[test]
fn no_request_fails_while_the_store_is_away() {
    let Some(scene) = Scene::start("the loss of the cold tier's store") else { return };
    let disk = tempfile::tempdir().expect("a folder");
    let first: Vec<_> = (0..10).map(|number| scene.page(number)).collect();
    scene.fill(disk.path(), &first);
    let (foxy, _disk) = scene.wiped("10s", first.len() as u64);
    scene.s3.becomes(Mood::Away);
    let mut reasons = Vec::new();
    for url in &first {
        let page = foxy.get(url);
        assert_eq!(page.status, 200);
        reasons.extend(page.cache_status().rsplit("detail=").next().map(str::to_owned));
    }
    let expected = ["cold-failed", "cold-away"];
    assert!(reasons.iter().all(|why| expected.contains(&&**why)), "{reasons:?}");
    assert_eq!(reasons.last().map(String::as_str), Some("cold-away"), "{reasons:?}");
    let refused = purge(&foxy, &first[0]);
    assert_eq!(refused.status, 503);
    assert!(refused.cache_status().ends_with("detail=purge-cold-away"), "{refused:?}");
    overfill(&scene, &foxy);
    scene.s3.becomes(Mood::Works);
    sent_a_segment(&foxy);
    purge_surely(&foxy, &first[0]);
}

#[test]
fn a_silent_store_costs_a_request_no_more_than_the_time_limit() {
    let Some(scene) = Scene::start("a silent store of the cold tier") else { return };
    let disk = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..8).map(|number| scene.page(number)).collect();
    scene.fill(disk.path(), &urls);
    let (foxy, _disk) = scene.wiped("200ms", urls.len() as u64);
    scene.s3.becomes(Mood::Silent);
    let details = urls.iter().map(|url| {
        let page = foxy.get(url);
        assert_eq!(page.status, 200);
        page.cache_status().rsplit("detail=").next().unwrap_or_default().to_owned()
    });
    let details: Vec<_> = details.collect();
    assert!(details.iter().all(|why| ["cold-slow", "cold-away"].contains(&&**why)), "{details:?}");
    assert!(details.iter().filter(|why| *why == "cold-slow").count() < 8, "{details:?}");
}

#[test]
fn clients_notice_nothing_when_the_server_is_halted_or_killed_under_load() {
    let Some(mut scene) = Scene::start("a halted and a killed server of the cold tier") else {
        return;
    };
    let disk = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..30).map(|number| scene.page(number)).collect();
    scene.fill(disk.path(), &urls);
    let (foxy, _disk) = scene.wiped("200ms", urls.len() as u64);
    scene.s3.halt();
    let slowest = load(&scene, &foxy, &urls[..15]);
    overfill(&scene, &foxy);
    scene.s3.kill();
    let slowest = slowest.max(load(&scene, &foxy, &urls[15..]));
    // Without the time limit, a read of a halted server would never end.
    assert!(slowest < Duration::from_secs(60), "{slowest:?}");
}

/// Gets all pages at the same time, from four clients. Returns the longest time of an answer.
fn load(scene: &Scene, foxy: &Foxy, urls: &[String]) -> Duration {
    let client = |_| {
        let times = urls.iter().map(|url| {
            let begin = clock::monotonic();
            let page = foxy.get(url);
            assert_eq!(page.status, 200, "{page:?}");
            assert!(page.body == scene.content(url), "{url} has wrong content");
            clock::monotonic().since(begin)
        });
        times.max().unwrap_or_default()
    };
    std::thread::scope(|threads| {
        let clients: Vec<_> = (0..4).map(|number| threads.spawn(move || client(number))).collect();
        let times = clients.into_iter().map(|client| client.join().expect("no panic"));
        times.max().unwrap_or_default()
    })
}
