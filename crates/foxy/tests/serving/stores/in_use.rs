//! Tests foxy while another program changes the files of its store. foxy must report the change.
//! The change may cause misses, but no wrong bytes and no crash.

use crate::support::{Foxy, Origin, request};
use std::path::Path;

/// Starts a foxy that has the page in its store but not in its memory.
fn with_a_stored_page(folder: &Path, flags: &[&str], url: &str) -> Foxy {
    let foxy = Foxy::start(folder, flags);
    foxy.get(url);
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    Foxy::start(folder, flags)
}

#[test]
fn a_store_file_that_is_removed_replaced_or_cut_in_use_is_said_at_once() {
    for (scheme, name) in [
        ("webcosm", "webcosm.foxy"),
        ("stream-packetizer", "stream-packetizer.foxy"),
        ("ufs", "foxy-ufs-ledger"),
    ] {
        let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
        let (flags, file, url) =
            (["--scheme", scheme], folder.path().join(name), origin.url("page"));
        type Change = fn(&Path);
        let cut: Change = |file| {
            let open = std::fs::OpenOptions::new().write(true).open(file).expect("a store");
            open.set_len(100).expect("cut");
        };
        let removed: Change = |file| std::fs::remove_file(file).expect("a store");
        let replaced: Change = |file| {
            std::fs::remove_file(file).expect("a store");
            std::fs::write(file, "a diary").expect("written");
        };
        let removed_whole: Change =
            |file| std::fs::remove_dir_all(file.parent().expect("a folder")).expect("a store");
        for (change, said) in [
            (cut, " bytes, was shortened while in use"),
            (removed, "was removed"),
            (replaced, "another file"),
            (removed_whole, "was removed"),
        ] {
            let mut foxy = with_a_stored_page(folder.path(), &flags, &url);
            assert_eq!(foxy.admin("/healthz").status, 200, "{scheme}");
            change(&file);
            foxy.report_containing(said);
            let health = foxy.admin("/healthz");
            assert!(health.status == 503 && health.body.contains(said), "{scheme}: {health:?}");
            for page in ["page", "page", "other", "other"] {
                let answer = foxy.get(&origin.url(page));
                assert!(
                    answer.body.starts_with(&format!("the page /{page}")),
                    "{scheme}: {answer:?}"
                );
            }
            foxy.signal("TERM");
            assert_eq!(foxy.wait().0.code(), Some(0), "{scheme}");
            if folder.path().exists() {
                std::fs::remove_dir_all(folder.path()).expect("removed");
            }
            std::fs::create_dir(folder.path()).expect("made");
        }
    }
}

#[test]
fn a_purge_holds_although_its_list_was_removed_and_is_refused_without_a_folder() {
    let (parent, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let (folder, away) = (parent.path().join("store"), parent.path().join("away"));
    let url = origin.url("page");
    let mut foxy = with_a_stored_page(&folder, &[], &url);
    let purge = |foxy: &Foxy| {
        request(
            foxy.admin,
            &format!("POST /purge?hard&url={url} HTTP/1.1\r\nHost: {}\r\n\r\n", foxy.admin),
        )
    };
    std::fs::remove_file(folder.join("foxy.purges")).expect("a list");
    assert_eq!(purge(&foxy).status, 200);
    std::fs::rename(&folder, &away).expect("moved");
    let refused = purge(&foxy);
    assert!(refused.status == 503 && refused.body.contains("purge-not-durable"), "{refused:?}");
    foxy.report_containing("foxy.purges cannot be written");
    let health = foxy.admin("/healthz");
    assert!(
        health.status == 503 && health.body.contains("foxy.purges cannot be written"),
        "{health:?}"
    );
    std::fs::rename(&away, &folder).expect("moved back");
    foxy.report_containing("over: ");
    foxy.kill();
    let foxy = Foxy::start(&folder, &[]);
    assert!(!foxy.get(&url).cache_status().contains("foxy; hit"), "the purge was acknowledged");
}
