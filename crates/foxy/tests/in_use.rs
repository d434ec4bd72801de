//! What happens to a store's files while foxy uses them is said, and costs misses: never a wrong byte, never a crash.

mod support;

use std::path::Path;
use support::{Foxy, Origin};

/// A foxy whose store has the page, and its memory nothing.
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
        let (flags, file, url) = (["--scheme", scheme], folder.path().join(name), origin.url("page"));
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
        for (change, said) in
            [(cut, " to 100 bytes while in use"), (removed, "was removed"), (replaced, "another file")]
        {
            let mut foxy = with_a_stored_page(folder.path(), &flags, &url);
            assert_eq!(foxy.admin("/healthz").status, 200, "{scheme}");
            change(&file);
            foxy.report_containing(said);
            let health = foxy.admin("/healthz");
            assert!(health.status == 503 && health.body.contains(said), "{scheme}: {health:?}");
            for page in ["page", "page", "other", "other"] {
                let answer = foxy.get(&origin.url(page));
                assert!(answer.body.starts_with(&format!("the page /{page}")), "{scheme}: {answer:?}");
            }
            foxy.signal("TERM");
            assert_eq!(foxy.wait().0.code(), Some(0), "{scheme}");
            std::fs::remove_dir_all(folder.path()).expect("removed");
            std::fs::create_dir(folder.path()).expect("made");
        }
    }
}
