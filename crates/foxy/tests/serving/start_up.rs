//! Tests the reasons why foxy refuses to start. For each, foxy ends with exit code 2 and one
//! message that names the remedy.

use crate::support::{Foxy, Origin, refused, refused_on, refused_plain, refused_with};
use std::net::TcpListener;
use std::path::Path;

fn check(folder: &Path, more: &[&str], expected: &[&str]) {
    let (code, report) = refused(folder, more);
    assert_eq!(code, Some(2), "{report}");
    for part in expected {
        assert!(report.contains(part), "{report:?} does not say {part:?}");
    }
    assert!(!report.contains("panicked"), "{report}");
}

#[test]
fn an_address_in_use_names_the_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("bound").to_string();
    let message = format!("cannot listen on {address} (--listen)");
    check(folder.path(), &["--listen", &address], &[&message, "give another address"]);
    let message = format!("cannot listen on {address} (--admin)");
    check(folder.path(), &["--admin", &address], &[&message]);
}

#[test]
fn a_second_foxy_on_one_address_or_store_is_refused() {
    let (folder, other) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let first = Foxy::start(folder.path(), &[]);
    check(folder.path(), &[], &["in use by another foxy", "--store"]);
    check(other.path(), &["--listen", &first.proxy.to_string()], &["(--listen)"]);
}

#[test]
fn a_store_is_one_foxys_without_the_folders_lock_and_by_another_name_of_its_file() {
    for (scheme, name) in
        [("webcosm", "webcosm.foxy"), ("coss", "coss.foxy"), ("diskd", "foxy-ufs-ledger")]
    {
        let (folder, other) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let flags = ["--scheme", scheme];
        let first = Foxy::start(folder.path(), &flags);
        let file = folder.path().join(name);
        std::fs::hard_link(&file, other.path().join(name)).expect("linked");
        std::fs::remove_file(folder.path().join("foxy.lock")).expect("a lock");
        for path in [folder.path(), other.path()] {
            let expected = format!("store {}: in use by another foxy", path.join(name).display());
            check(path, &flags, &[&expected, "--store"]);
        }
        first.kill();
        drop(Foxy::start(folder.path(), &flags));
    }
}

#[test]
fn a_store_file_that_is_not_ours_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("webcosm.foxy");
    let foreign = "somebody's diary\n".repeat(10_000);
    std::fs::write(&file, &foreign).expect("written");
    check(
        folder.path(),
        &[],
        &[
            "is not a foxy store, and foxy does not change it",
            folder.path().to_str().expect("UTF-8"),
        ],
    );
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), foreign);
}

#[test]
fn a_truncated_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    Foxy::start(folder.path(), &[]).kill();
    let path = folder.path().join("webcosm.foxy");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a store");
    file.set_len(20_000).expect("cut");
    check(folder.path(), &[], &["of its 67108864 bytes", "move the file away"]);
    assert_eq!(file.metadata().expect("still there").len(), 20_000);
}

#[test]
fn every_scheme_leaves_alone_a_foreign_file_that_begins_with_zeros_and_a_short_rest() {
    for (scheme, name) in [
        ("webcosm", "webcosm.foxy"),
        ("stream-packetizer", "stream-packetizer.foxy"),
        ("buddy", "buddy.foxy"),
        ("ufs", "foxy-ufs-ledger"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        Foxy::start(folder.path(), &["--scheme", scheme]).kill();
        let mut rest = std::fs::read(&path).expect("a store");
        rest.truncate(100);
        let mut zeros = vec![0; 300_000];
        zeros.extend(b"somebody's diary");
        for (bytes, expected) in
            [(rest, "restore the complete file"), (zeros, "is not a foxy store, and")]
        {
            std::fs::write(&path, &bytes).expect("written");
            for size in ["64M", "32M"] {
                check(folder.path(), &["--scheme", scheme, "--size", size], &[expected]);
            }
            assert_eq!(std::fs::read(&path).expect("still there"), bytes, "{scheme}");
        }
    }
}

#[test]
fn what_is_no_file_at_the_stores_place_is_named_and_left_alone() {
    let named = [
        ("webcosm", "webcosm.foxy"),
        ("stream-packetizer", "stream-packetizer.foxy"),
        ("coss", "coss.foxy"),
        ("diskd", "foxy-ufs-ledger"),
    ];
    for (scheme, name) in named {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let expected = format!("{}: a link, folder or pipe has the name", path.display());
        let refused = || check(folder.path(), &["--scheme", scheme], &[&expected, "move it away"]);
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, &path).expect("made");
        refused();
        assert!(!target.exists());
        std::fs::write(&target, "a diary").expect("written");
        refused();
        assert_eq!(std::fs::read(&target).expect("still there"), b"a diary");
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("made");
        refused();
        std::fs::remove_dir(&path).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        refused();
        let (code, report) = refused_plain(folder.path(), &["--scheme", scheme]);
        assert!(code == Some(2) && report.contains(&expected), "{report}");
    }
}

#[test]
fn a_store_that_is_a_file_or_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").expect("written");
    check(&file, &[], &["not a folder"]);
    check(Path::new("/proc/foxy"), &[], &["store /proc/foxy: "]);
}

#[test]
fn an_access_log_that_cannot_be_opened_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("none/access.log");
    let log = log.to_str().expect("UTF-8");
    check(
        folder.path(),
        &["--access-log", log],
        &["cannot open the access log", log, "(--access-log)"],
    );
}

#[test]
fn a_full_disk_and_a_read_only_one_are_refused_with_what_would_be_right() {
    for (options, expected) in [
        ("size=64k", "room for 65536 bytes; a store needs at least 16 MiB, free some space"),
        (
            "size=40m",
            "the size is 64 MiB, but the disk has room for 41943040 bytes; set at \
             most 40M",
        ),
        ("ro", "its file system is read-only; mount it for writing"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some((code, report)) = refused_on(options, folder.path()) else { return };
        assert_eq!(code, Some(2), "{options}: {report}");
        assert!(report.contains(expected), "{options}: {report:?}");
        assert!(report.contains(folder.path().to_str().expect("UTF-8")), "{options}: {report:?}");
    }
}

#[test]
fn a_size_that_the_disk_does_not_have_is_refused_whatever_the_scheme() {
    for scheme in ["webcosm", "stream-packetizer", "ufs", "buddy"] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ["--size", "2T", "--scheme", scheme];
        let Some((code, report)) = refused_with("size=40m", folder.path(), &options) else {
            return;
        };
        assert_eq!(code, Some(2), "{scheme}: {report}");
        assert!(report.contains("2 TiB, but the disk has room for 41943040"), "{scheme}: {report}");
        assert_eq!(report.lines().count(), 1, "{scheme}: {report}");
    }
}

#[test]
fn a_policy_that_the_scheme_does_not_ask_is_refused_with_the_schemes_that_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--scheme", "buddy", "--policy", "gdsf"];
    check(
        folder.path(),
        &flags,
        &["--policy: the scheme buddy has its own eviction order", "stream-packetizer, ufs"],
    );
}

#[test]
fn the_welcome_says_the_size_that_the_store_has() {
    let folder = tempfile::tempdir().expect("a folder");
    Foxy::start(folder.path(), &["--scheme", "webcosm"]).kill();
    let again = Foxy::start_plain(folder.path(), &[]);
    assert!(again.welcome.contains("(64 MiB, webcosm, "), "{}", again.welcome);
    assert!(again.admin("/metrics").body.contains("foxy_store_size_bytes"), "it is told");
}

#[test]
fn the_next_start_does_not_wait_for_the_killed_one_to_be_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let mut foxy = Foxy::start(folder.path(), &[]);
    let address = foxy.proxy.to_string();
    for _ in 0..5 {
        foxy.signal("KILL");
        let next = Foxy::start(folder.path(), &["--listen", &address]);
        drop(std::mem::replace(&mut foxy, next));
        assert!(foxy.get(&origin.url("page")).body.starts_with("the page /page"));
    }
}
