//! Tests objects that are large compared with their store. If `Cache-Status` says that foxy stored
//! an object, the next request must be a hit.

use crate::support::{Foxy, Origin};

/// Starts a foxy whose store of 64 MiB is full of smaller objects.
fn full(folder: &std::path::Path, origin: &Origin) -> Foxy {
    let foxy = Foxy::start(folder, &[]);
    for number in 0..140 {
        foxy.get(&origin.url(&format!("{number}?bytes=500000")));
    }
    foxy
}

/// Whether the second of two requests is a hit.
fn is_hit(foxy: &Foxy, url: &str) -> bool {
    let first = foxy.get(url);
    assert!(first.cache_status().contains("stored"), "{:?}", first.fields);
    // foxy stores the head and the end of the body shortly after the client has received
    // everything. The pause lets it finish.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let again = foxy.get(url);
    assert_eq!(again.body.len(), first.body.len());
    again.cache_status().contains("foxy; hit")
}

#[test]
fn an_object_of_an_eighth_of_a_full_store_is_a_hit_once_it_was_fetched() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = full(folder.path(), &origin);
    let hits =
        (0..5).filter(|number| is_hit(&foxy, &origin.url(&format!("large{number}?bytes=8000000"))));
    assert_eq!(hits.count(), 5);
}

#[test]
fn an_object_that_a_store_cannot_hold_is_not_said_to_be_stored() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = full(folder.path(), &origin);
    assert!(is_hit(&foxy, &origin.url("a?bytes=20000000")), "it fits");
    let too_large = foxy.get(&origin.url("b?bytes=40000000"));
    assert!(too_large.cache_status().contains("detail=too-large"), "{:?}", too_large.fields);
}

#[test]
fn without_a_store_memory_alone_caches() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = Foxy::start(folder.path(), &["--scheme", "null", "--memory", "64M"]);
    for page in ["small", "a?bytes=1000000"] {
        let url = origin.url(page);
        let first = foxy.get(&url);
        assert!(first.cache_status().contains("stored"), "{page}: {:?}", first.fields);
        assert!(foxy.get(&url).cache_status().contains("foxy; hit"), "{page}");
    }
    let large = foxy.get(&origin.url("a?bytes=1100000"));
    assert!(
        large.cache_status().contains("detail=too-large"),
        "above memory-object-limit: {:?}",
        large.fields
    );
    assert_eq!(origin.asked(), 3);
}

#[test]
fn without_a_store_the_limits_of_memory_are_those_of_objects() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let config = folder.path().join("foxy.toml");
    std::fs::write(&config, "memory-object-limit = \"3M\"\n").expect("written");
    let file = config.to_str().expect("UTF-8");
    for (memory, larger_than_a_mebibyte) in [("64M", true), ("8M", false)] {
        let foxy =
            Foxy::start(folder.path(), &["--scheme", "null", "--memory", memory, "--config", file]);
        let url = origin.url("a?bytes=2000000");
        let said = foxy.get(&url).cache_status().contains("stored");
        let hit = foxy.get(&url).cache_status().contains("foxy; hit");
        assert_eq!((said, hit), (larger_than_a_mebibyte, larger_than_a_mebibyte), "{memory}");
    }
}
