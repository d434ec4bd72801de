//! Tests the cold tier of a real foxy with a real store. Records survive the loss of a node's disk,
//! purged ones do not come back, and no request fails or waits while the store is away.
#![cfg(feature = "cold")]

mod s3;
#[path = "../support/mod.rs"]
mod support;

use foxy_testkit::wait::until;
use s3::{Mood, S3};
use std::path::Path;
use support::{Foxy, Origin, Response, not_run, request, write_secret};
use tempfile::TempDir;

const SEGMENT_BYTES: u64 = 16 << 20;
const PAGE_BYTES: u64 = 300_000;
/// Pages of this size need more than one segment.
const PAGES: u64 = 70;

struct Scene {
    s3: S3,
    origin: Origin,
    secrets: TempDir,
}

impl Scene {
    fn start(check: &str) -> Option<Self> {
        let Some(s3) = S3::start() else {
            not_run(check, "the machine has no moto_server");
            return None;
        };
        let secrets = tempfile::tempdir().expect("a folder");
        write_secret(&secrets.path().join("s3"), "name:secret\n");
        Some(Self { s3, origin: Origin::start(), secrets })
    }

    fn foxy(&self, folder: &Path, timeout: &str) -> Foxy {
        let credentials = self.secrets.path().join("s3").display().to_string();
        let mut flags = self.s3.flags("foxy", &credentials);
        let more = ["--cold-timeout", timeout, "--memory", "64M", "--purge-from", "127.0.0.1"];
        flags.extend(more.map(str::to_owned));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Foxy::start(folder, &flags)
    }

    /// Starts a foxy with a new disk. Returns it when it has found `records` in the cold tier.
    fn wiped(&self, timeout: &str, records: u64) -> (Foxy, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let foxy = self.foxy(folder.path(), timeout);
        until("the list of the cold tier's records", || {
            (sum(&foxy, "foxy_cold_records{state=\"stored\"}") == records as f64).then_some(())
        });
        (foxy, folder)
    }

    fn page(&self, number: u64) -> String {
        self.origin.url(&format!("{number}/bytes={PAGE_BYTES}"))
    }

    /// Puts pages into the cold tier: gets each twice, and stops foxy.
    fn fill(&self, folder: &Path, urls: &[String]) {
        let foxy = self.foxy(folder, "10s");
        until("the store's first answer", || up(&foxy));
        for url in urls.iter().chain(urls) {
            assert_eq!(foxy.get(url).status, 200);
        }
        stop(foxy);
    }
}

fn stop(foxy: Foxy) {
    foxy.signal("TERM");
    let (status, said) = foxy.wait();
    assert_eq!(status.code(), Some(0), "{said}");
}

/// Returns the sum of the samples that begin with this text.
fn sum(foxy: &Foxy, begin: &str) -> f64 {
    let text = foxy.admin("/metrics").body;
    let lines = text.lines().filter(|line| line.starts_with(begin));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

fn up(foxy: &Foxy) -> Option<()> {
    (sum(foxy, "foxy_cold_up ") == 1.0).then_some(())
}

fn is_cold_hit(page: &Response) -> bool {
    page.cache_status().starts_with("foxy; hit") && page.cache_status().ends_with("detail=cold")
}

fn purge(foxy: &Foxy, url: &str) -> Response {
    let host = url.trim_start_matches("http://").split('/').next().expect("a host");
    let text = format!("PURGE {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    request(foxy.proxy, &text)
}

#[test]
fn records_that_were_asked_for_again_survive_the_loss_of_a_disk() {
    let Some(scene) = Scene::start("records of a lost disk") else { return };
    let lost = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..PAGES).map(|number| scene.page(number)).collect();
    let foxy = scene.foxy(lost.path(), "10s");
    until("the store's first answer", || up(&foxy));
    let once = scene.page(PAGES);
    assert_eq!(foxy.get(&once).status, 200);
    for url in urls.iter().chain(&urls) {
        assert_eq!(foxy.get(url).status, 200);
    }
    until("a full segment", || {
        let put = "foxy_cold_requests_total{kind=\"put-segment\",result=\"ok\"}";
        (sum(&foxy, put) >= 1.0).then_some(())
    });
    stop(foxy);
    let segments = scene.s3.objects("foxy/segments");
    let bytes: u64 = segments.iter().sum();
    assert!(bytes > PAGES * PAGE_BYTES, "{bytes} bytes of {PAGES} pages");
    assert_eq!(segments.len() as u64, bytes.div_ceil(SEGMENT_BYTES), "{segments:?}");
    assert_eq!(scene.s3.objects("foxy/manifests").len(), 1);

    let (foxy, _disk) = scene.wiped("10s", PAGES);
    let asked = scene.origin.asked();
    for url in &urls {
        let page = foxy.get(url);
        assert!(is_cold_hit(&page), "{url}: {}", page.cache_status());
        assert_eq!(page.body.len() as u64, PAGE_BYTES);
        let again = foxy.get(url);
        assert!(again.cache_status().starts_with("foxy; hit"), "{}", again.cache_status());
        assert!(!is_cold_hit(&again), "the record is on this node again");
    }
    assert_eq!(scene.origin.asked(), asked, "the origin was not asked");
    assert!(foxy.get(&once).cache_status().starts_with("foxy; fwd=uri-miss"), "asked for once");
    assert!(sum(&foxy, "foxy_cold_cost_total ") > 0.0);
}

#[test]
fn what_was_purged_or_replaced_does_not_come_back() {
    let Some(scene) = Scene::start("purges of the cold tier") else { return };
    let lost = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..4).map(|number| scene.page(number)).collect();
    scene.fill(lost.path(), &urls);
    let foxy = scene.foxy(lost.path(), "10s");
    until("the acknowledgement of a purge", || {
        (purge(&foxy, &urls[0]).status == 200).then_some(())
    });
    // The purge was acknowledged, so it holds although foxy cannot write anything more.
    foxy.kill();
    let foxy = scene.foxy(lost.path(), "10s");
    until("the store's first answer", || up(&foxy));
    scene.s3.becomes(Mood::Away);
    let host = urls[1].trim_start_matches("http://").split('/').next().expect("a host");
    let post = format!(
        "POST {} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        urls[1]
    );
    assert_eq!(request(foxy.proxy, &post).status, 200);
    let anew = format!(
        "GET {} HTTP/1.1\r\nHost: {host}\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n",
        urls[2]
    );
    assert_eq!(request(foxy.proxy, &anew).status, 200);
    // The store does not know of the removals, so the node's own list has them.
    foxy.kill();
    scene.s3.becomes(Mood::Works);
    let foxy = scene.foxy(lost.path(), "10s");
    until("the store's first answer", || up(&foxy));
    assert!(!is_cold_hit(&foxy.get(&urls[1])));
    stop(foxy);
    let (foxy, _disk) = scene.wiped("10s", 2);
    for (number, url) in urls.iter().enumerate() {
        let page = foxy.get(url);
        assert_eq!(is_cold_hit(&page), number == 3, "{number}: {}", page.cache_status());
    }
    until("the acknowledgement of a purge", || {
        (purge(&foxy, &urls[3]).status == 200).then_some(())
    });
    foxy.kill();
    // The purge came from a node that did not store the response first.
    let (foxy, _disk) = scene.wiped("10s", 1);
    assert!(!is_cold_hit(&foxy.get(&urls[3])));
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
    // More than two segments of pages: foxy holds at most two, and refuses the others.
    for number in 100..100 + 4 * PAGES {
        let url = scene.page(number);
        for _ in 0..2 {
            assert_eq!(foxy.get(&url).status, 200);
        }
    }
    let busy = "foxy_cold_refused_total{reason=\"busy\"}";
    assert!(sum(&foxy, busy) > 0.0, "no record was refused");
    let waiting = sum(&foxy, "foxy_cold_records{state=\"waiting\"}");
    assert!(waiting * PAGE_BYTES as f64 <= 42.0 * 1024.0 * 1024.0, "{waiting} records wait");
    scene.s3.becomes(Mood::Works);
    until("the first segment after the store's return", || {
        let put = "foxy_cold_requests_total{kind=\"put-segment\",result=\"ok\"}";
        (sum(&foxy, put) >= 1.0).then_some(())
    });
    until("the acknowledgement of a purge", || {
        (purge(&foxy, &first[0]).status == 200).then_some(())
    });
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
