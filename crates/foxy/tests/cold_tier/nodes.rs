//! Two live nodes with the same cold tier: each finds what the other has stored, and none serves a
//! response that the other has replaced or purged.

use crate::scene::{
    Scene, finds, is_cold_hit, is_confirmed, offer, purge_surely, reload, stop, up,
};
use foxy_testkit::wait::until;

#[test]
fn a_node_finds_the_records_of_a_node_that_died_and_a_wiped_node_its_own() {
    let Some(scene) = Scene::start("two nodes with the same cold tier") else { return };
    let disks = [0, 1].map(|_| tempfile::tempdir().expect("a folder"));
    let urls: Vec<_> = (0..8).map(|number| scene.page(number)).collect();
    let (of_first, of_second) = urls.split_at(4);
    let first = scene.foxy(disks[0].path(), "10s");
    let second = scene.foxy(disks[1].path(), "10s");
    for (foxy, urls) in [(&first, of_first), (&second, of_second)] {
        until("the store's first answer", || up(foxy));
        urls.iter().for_each(|url| offer(foxy, url));
    }
    purge_surely(&second, &of_second[0]);
    stop(second);
    // The first node runs on. It learns of the records within a minute.
    finds(&first, 3);
    scene.change(&of_second[1]);
    for (number, url) in of_second.iter().enumerate() {
        let page = first.get(url);
        assert!(!is_cold_hit(&page), "{number}: {}", page.cache_status());
        assert_eq!(is_confirmed(&page), number > 1, "{number}: {}", page.cache_status());
        assert!(page.body == scene.content(url), "{number} has old content");
    }
    stop(first);
    // The second node comes back with an empty disk.
    let disk = tempfile::tempdir().expect("a folder");
    let second = scene.foxy(disk.path(), "10s");
    until("the manifests", || up(&second));
    let again: Vec<_> = of_first.iter().map(|url| second.get(url)).collect();
    assert!(again.iter().all(is_confirmed), "{:?}", again[0].fields);
    for url in of_second {
        let page = second.get(url);
        assert!(!is_cold_hit(&page), "{}", page.cache_status());
        assert!(page.body == scene.content(url), "old content: {}", page.cache_status());
    }
}

#[test]
fn a_replaced_response_does_not_come_back_from_the_other_node() {
    let Some(scene) = Scene::start("a response that another node has replaced") else { return };
    let disks = [0, 1].map(|_| tempfile::tempdir().expect("a folder"));
    let url = scene.page(1);
    let [first, second] = disks.each_ref().map(|disk| scene.foxy(disk.path(), "10s"));
    for foxy in [&first, &second] {
        until("the store's first answer", || up(foxy));
        assert_eq!(foxy.get(&url).status, 200);
    }
    offer(&first, &url);
    // The second node replaces the response before it can know of the first node's record.
    scene.change(&url);
    assert!(reload(&second, &url).body == scene.content(&url));
    stop(first);
    finds(&second, 1);
    stop(second);
    let (second, _disk) = scene.wiped("10s", 1);
    let page = second.get(&url);
    assert!(page.body == scene.content(&url), "old content: {}", page.cache_status());
}
