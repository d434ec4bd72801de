//! Tests a foxy with several stores: some for small objects and some for large objects, or all for
//! the same sizes.

use crate::support::{Foxy, Origin};
use std::path::{Path, PathBuf};

/// Returns the number of records in the store of a folder, from the metrics.
fn records(foxy: &Foxy, folder: &Path) -> f64 {
    let text = foxy.admin("/metrics").body;
    let start = format!("foxy_store_records{{store=\"{}\"}} ", folder.display());
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no {start} in {text}")).parse().expect("a number")
}

fn check(small: &Path, large: &Path, start: impl Fn() -> Foxy) {
    let origin = Origin::start();
    let pages = [origin.url("a"), origin.url(&"b".repeat(200))];
    let foxy = start();
    let bodies: Vec<_> = pages.iter().map(|page| foxy.get(page).body).collect();
    assert_eq!(bodies[0].len(), 1200, "just what the first store takes");
    assert!(bodies[1].len() > 1200);
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let foxy = start();
    for folder in [small, large] {
        assert!((records(&foxy, folder) - 1.0).abs() < 0.1, "{}", folder.display());
    }
    for (page, body) in pages.iter().zip(&bodies) {
        let again = foxy.get(page);
        assert!(again.cache_status().contains("foxy; hit"), "{again:?}");
        assert_eq!(&again.body, body);
    }
    assert_eq!(origin.asked(), 2);
}

#[test]
fn small_objects_go_to_coss_large_ones_to_aufs_and_both_outlast_a_clean_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, large) = (folder.path().join("small"), folder.path().join("large"));
    let first = PathBuf::from(format!("{},scheme=coss,max-object=1200", small.display()));
    let second = format!("{},scheme=aufs,min-object=1201", large.display());
    check(&small, &large, || Foxy::start(&first, &["--store", &second]));
}

#[test]
fn lines_of_a_squid_configuration_name_stores_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (small, large) = (folder.path().join("small"), folder.path().join("large"));
    let first = PathBuf::from(format!("{},max-object=1200", small.display()));
    let second = format!("ufs {} 64 16 256 min-size=1201", large.display());
    let flags = ["--cache-dir", &second, "--store-selection", "least-load"];
    check(&small, &large, || Foxy::start(&first, &flags));
}

#[test]
fn objects_are_spread_over_equal_stores_and_the_loss_of_one_costs_only_what_it_had() {
    const PAGES: usize = 24;
    let folder = tempfile::tempdir().expect("a folder");
    let disks = ["one", "two", "three"].map(|name| folder.path().join(name));
    let others = [disks[1].to_str().expect("UTF-8"), disks[2].to_str().expect("UTF-8")];
    let start = || Foxy::start(&disks[0], &["--store", others[0], "--store", others[1]]);
    let origin = Origin::start();
    let pages: Vec<_> = (0..PAGES).map(|number| origin.url(&format!("page{number}"))).collect();
    let hits = |foxy: &Foxy| {
        pages.iter().filter(|page| foxy.get(page).cache_status().contains("foxy; hit")).count()
    };
    let foxy = start();
    assert_eq!((hits(&foxy), hits(&foxy)), (0, PAGES));
    let held = disks.each_ref().map(|disk| records(&foxy, disk) as usize);
    assert!(held.iter().all(|&held| held > 0) && held.iter().sum::<usize>() == PAGES, "{held:?}");
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    std::fs::remove_dir_all(&disks[1]).expect("the second disk is lost");
    let foxy = start();
    assert_eq!(hits(&foxy), PAGES - held[1]);
}
