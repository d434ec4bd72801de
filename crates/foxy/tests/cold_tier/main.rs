//! The cold tier with a real store that speaks S3: records survive the loss of a node's disk, and
//! old responses do not come back.
#![cfg(feature = "cold")]

mod nodes;
mod outage;
mod s3;
mod scene;
#[path = "../support/mod.rs"]
mod support;

use foxy_testkit::wait::until;
use s3::Mood;
use scene::{
    PAGE_BYTES, Scene, get_in, is_cold_hit, is_confirmed, offer, post, purge_surely, reload,
    sent_a_segment, stop, sum, up,
};

const SEGMENT_BYTES: u64 = 16 << 20;
/// Pages of this number need more than one segment.
const PAGES: u64 = 70;

#[test]
fn records_that_were_asked_for_again_survive_the_loss_of_a_disk() {
    let Some(scene) = Scene::start("records of a lost disk") else { return };
    let lost = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..PAGES).map(|number| scene.page(number)).collect();
    let foxy = scene.foxy(lost.path(), "10s");
    until("the store's first answer", || up(&foxy));
    let once = scene.page(PAGES);
    assert_eq!(foxy.get(&once).status, 200);
    urls.iter().for_each(|url| offer(&foxy, url));
    sent_a_segment(&foxy);
    stop(foxy);
    let segments = scene.s3.objects("foxy/segments");
    let bytes: u64 = segments.iter().sum();
    assert!(bytes > PAGES * PAGE_BYTES, "{bytes} bytes of {PAGES} pages");
    assert_eq!(segments.len() as u64, bytes.div_ceil(SEGMENT_BYTES), "{segments:?}");
    assert_eq!(scene.s3.objects("foxy/manifests").len(), 1);

    let (foxy, _disk) = scene.wiped("10s", PAGES);
    // The node was not there when these pages changed.
    urls.iter().step_by(7).for_each(|url| scene.change(url));
    for (number, url) in urls.iter().enumerate() {
        let page = foxy.get(url);
        assert_eq!(is_confirmed(&page), number % 7 != 0, "{url}: {}", page.cache_status());
        assert!(page.body == scene.content(url), "{url} has old content");
        let again = foxy.get(url);
        assert!(again.cache_status().starts_with("foxy; hit"), "{}", again.cache_status());
        assert!(!is_cold_hit(&again), "the record is on this node again");
        assert!(again.body == scene.content(url), "{url} has old content");
    }
    assert!(foxy.get(&once).cache_status().starts_with("foxy; fwd=uri-miss"), "asked for once");
    assert!(sum(&foxy, "foxy_cold_cost_total ") > 0.0);
}

#[test]
fn what_a_node_evicts_comes_back_without_the_origin_but_never_outdated() {
    let Some(scene) = Scene::start("evicted records") else { return };
    let disk = tempfile::tempdir().expect("a folder");
    let foxy = scene.foxy_with(disk.path(), "10s", &["--memory", "8M"]);
    until("the store's first answer", || up(&foxy));
    let urls: Vec<_> = (0..PAGES).map(|number| scene.page(number)).collect();
    urls.iter().for_each(|url| offer(&foxy, url));
    sent_a_segment(&foxy);
    let (replaced, kept) = urls[..40].split_at(10);
    for (number, url) in replaced.iter().enumerate() {
        scene.change(url);
        if number % 2 == 0 {
            assert!(reload(&foxy, url).body == scene.content(url));
        } else {
            post(&foxy, url);
        }
    }
    // Pages that are asked for once drive the others out of memory and disk.
    let mut fills = PAGES..;
    let mut evicted = kept.iter().cycle().take(4 * kept.len());
    let came_back = evicted.any(|url| {
        for number in fills.by_ref().take(8) {
            assert_eq!(foxy.get(&scene.page(number)).status, 200);
        }
        let asked = scene.asked();
        let page = foxy.get(url);
        assert!(page.body == scene.content(url), "{url} has old content");
        is_cold_hit(&page) && scene.asked() == asked
    });
    assert!(came_back, "no page came from the cold tier");
    for url in replaced {
        let page = foxy.get(url);
        assert!(page.body == scene.content(url), "old content: {}", page.cache_status());
    }
}

#[test]
fn what_was_purged_does_not_come_back() {
    let Some(scene) = Scene::start("purges of the cold tier") else { return };
    let lost = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..4).map(|number| scene.page(number)).collect();
    scene.fill(lost.path(), &urls);
    let foxy = scene.foxy(lost.path(), "10s");
    purge_surely(&foxy, &urls[0]);
    // The purge was acknowledged, so it holds although foxy cannot write anything more.
    foxy.kill();
    let (foxy, _disk) = scene.wiped("10s", 4);
    for (number, url) in urls.iter().enumerate() {
        let page = foxy.get(url);
        assert_eq!(is_confirmed(&page), number != 0, "{number}: {}", page.cache_status());
    }
    purge_surely(&foxy, &urls[3]);
    foxy.kill();
    // The purge came from a node that did not store the response first.
    let disk = tempfile::tempdir().expect("a folder");
    let foxy = scene.foxy(disk.path(), "10s");
    until("the manifests", || up(&foxy));
    for number in [0, 3] {
        let page = foxy.get(&urls[number]);
        assert!(!is_confirmed(&page) && !is_cold_hit(&page), "{}", page.cache_status());
    }
}

#[test]
fn what_was_replaced_while_the_store_was_away_does_not_come_back() {
    let Some(scene) = Scene::start("replaced records of the cold tier") else { return };
    let disk = tempfile::tempdir().expect("a folder");
    let urls: Vec<_> = (0..4).map(|number| scene.page(number)).collect();
    scene.fill(disk.path(), &urls);
    let foxy = scene.foxy(disk.path(), "10s");
    until("the store's first answer", || up(&foxy));
    scene.s3.becomes(Mood::Away);
    urls[..2].iter().for_each(|url| scene.change(url));
    post(&foxy, &urls[0]);
    assert!(reload(&foxy, &urls[1]).body == scene.content(&urls[1]));
    // The store does not know of the new responses.
    foxy.kill();
    scene.s3.becomes(Mood::Works);
    let (wiped, _other_disk) = scene.wiped("10s", 4);
    for foxy in [scene.foxy(disk.path(), "10s"), wiped] {
        until("the manifests", || up(&foxy));
        for url in &urls {
            let page = foxy.get(url);
            assert!(!is_cold_hit(&page), "{}", page.cache_status());
            assert!(page.body == scene.content(url), "old content: {}", page.cache_status());
        }
    }
}

#[test]
fn each_variant_comes_back_to_its_own_requests() {
    let Some(scene) = Scene::start("variants in the cold tier") else { return };
    let disk = tempfile::tempdir().expect("a folder");
    let foxy = scene.foxy(disk.path(), "10s");
    until("the store's first answer", || up(&foxy));
    let url = scene.varied_page(1);
    for _ in 0..2 {
        assert_eq!(get_in(&foxy, &url, "de").status, 200);
    }
    stop(foxy);
    let (foxy, _disk) = scene.wiped("10s", 2);
    let first = get_in(&foxy, &url, "de");
    assert!(is_confirmed(&first), "{}", first.cache_status());
    let again = get_in(&foxy, &url, "de");
    assert!(again.cache_status().starts_with("foxy; hit"), "{}", again.cache_status());
    assert!(!get_in(&foxy, &url, "fr").cache_status().starts_with("foxy; hit"));
}
