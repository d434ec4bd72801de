//! Tests stores whose old content cannot be used. foxy must start with an empty store, and report
//! the reason once.

use crate::support::{Foxy, Origin};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Stores a page with the scheme that `flags` name. Then stops foxy normally.
fn stored(folder: &Path, flags: &[&str], url: &str) {
    let foxy = Foxy::start(folder, flags);
    foxy.get(url);
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
}

fn overwrite(path: &Path, at: u64, length: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("a store");
    file.write_all_at(&vec![0x5a; length], at).expect("written");
}

#[test]
fn a_store_that_begins_anew_says_why_once_and_one_that_goes_on_says_nothing() {
    type Change = fn(&Path);
    let superblocks: Change = |path| [40, 4136].into_iter().for_each(|at| overwrite(path, at, 8));
    let journal: Change = |path| overwrite(path, 8192, 512 << 10);
    let nothing: Change = |_| {};
    let cases = [
        ("webcosm", "webcosm.foxy", superblocks, Some("both copies of its superblock are damaged")),
        (
            "webcosm",
            "webcosm.foxy",
            journal,
            Some("its forget journal, which lists removed records, is damaged"),
        ),
        (
            "stream-packetizer",
            "stream-packetizer.foxy",
            journal,
            Some("its forget journal, which lists removed records, is damaged"),
        ),
        ("buddy", "buddy.foxy", journal, Some("its index, which only a clean stop writes")),
        ("ufs", "foxy-ufs-ledger", superblocks, Some("both copies of its superblock are damaged")),
        ("webcosm", "webcosm.foxy", nothing, None),
        ("ufs", "foxy-ufs-ledger", nothing, None),
        ("buddy", "buddy.foxy", nothing, None),
    ];
    for (scheme, name, change, expected) in cases {
        let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
        let (flags, url) = (["--scheme", scheme], origin.url("page"));
        stored(folder.path(), &flags, &url);
        change(&folder.path().join(name));
        let foxy = Foxy::start(folder.path(), &flags);
        let said: Vec<_> =
            foxy.welcome.lines().filter(|line| line.contains("starts empty")).collect();
        let metric = format!(
            "foxy_store_begun_anew{{store=\"{}\"}} {}",
            folder.path().display(),
            said.len()
        );
        assert!(foxy.admin("/metrics").body.contains(&metric), "{scheme}: no {metric}");
        assert_eq!(
            foxy.get(&url).cache_status().contains("foxy; hit"),
            expected.is_none(),
            "{scheme}"
        );
        match expected {
            None => assert!(said.is_empty(), "{scheme}: {said:?}"),
            Some(reason) => {
                assert!(said.len() == 1 && said[0].contains(reason), "{scheme}: {}", foxy.welcome);
            }
        }
    }
}

#[test]
fn the_metric_counts_a_store_that_is_discarded_without_its_purge_list() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let url = origin.url("page");
    stored(folder.path(), &[], &url);
    std::fs::remove_file(folder.path().join("foxy.purges")).expect("a purge list");
    let foxy = Foxy::start(folder.path(), &[]);
    assert!(foxy.welcome.contains("the purge list is missing"), "{}", foxy.welcome);
    let metric = format!("foxy_store_begun_anew{{store=\"{}\"}} 1", folder.path().display());
    assert!(foxy.admin("/metrics").body.contains(&metric), "no {metric}");
    assert!(!foxy.get(&url).cache_status().contains("foxy; hit"));
}

#[test]
fn a_store_of_zeros_that_was_begun_has_lost_its_content_to_serve_fsck_and_inspect() {
    for (scheme, name) in
        [("webcosm", "webcosm.foxy"), ("stream-packetizer", "stream-packetizer.foxy")]
    {
        for length in [64 << 20, 0] {
            let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
            let (flags, url) = (["--scheme", scheme], origin.url("page"));
            stored(folder.path(), &flags, &url);
            let file = std::fs::File::create(folder.path().join(name)).expect("a store");
            file.set_len(length).expect("zeros");
            let path = folder.path().to_str().expect("UTF-8");
            for command in [&["fsck", path][..], &["store", "inspect", path]] {
                let (code, _, said) = crate::support::commands::foxy(command);
                assert_eq!(code, Some(1), "{command:?}: {said}");
                assert!(said.contains("the store has lost its content"), "{command:?}: {said}");
            }
            let foxy = Foxy::start(folder.path(), &flags);
            assert!(
                foxy.welcome.contains("starts empty: its file holds only zeros"),
                "{}",
                foxy.welcome
            );
            assert!(!foxy.get(&url).cache_status().contains("foxy; hit"));
        }
    }
}

#[test]
fn a_file_of_zeros_in_a_folder_where_no_store_was_begun_is_a_new_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = std::fs::File::create(folder.path().join("webcosm.foxy")).expect("made");
    file.set_len(64 << 20).expect("zeros");
    let (code, _, said) =
        crate::support::commands::foxy(&["fsck", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(code, Some(0), "{said}");
    let foxy = Foxy::start(folder.path(), &[]);
    assert!(!foxy.welcome.contains("starts empty"), "{}", foxy.welcome);
}

#[test]
fn a_damaged_record_is_a_miss_and_a_mild_trouble() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let url = origin.url("page?bytes=20000");
    stored(folder.path(), &[], &url);
    let path = folder.path().join("webcosm.foxy");
    let bytes = std::fs::read(&path).expect("a store");
    let line = b"the page /page?bytes=20000\n";
    let at = bytes.windows(line.len()).position(|found| found == line).expect("the body");
    overwrite(&path, at as u64 + 100, 8);
    let mut foxy = Foxy::start(folder.path(), &[]);
    assert!(foxy.get(&url).cache_status().contains("fwd=uri-miss"));
    foxy.report_containing("records on its disk are damaged");
    let health = foxy.admin("/healthz");
    assert_eq!(health.status, 200, "{health:?}");
    assert!(health.body.contains("records on its disk are damaged"), "{health:?}");
}
