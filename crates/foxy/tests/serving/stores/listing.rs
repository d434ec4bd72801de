//! Tests `foxy store list` with a running foxy, and with its store at rest.

use crate::support::commands::foxy;
use crate::support::{Foxy, Origin};
use foxy_base::clock;
use foxy_testkit::wait::until;
use serde_json::Value;

/// Returns the lines of `foxy store list --json` as JSON.
fn listed(arguments: &[&str]) -> Vec<Value> {
    let (code, out, err) = foxy(&[&["store", "list", "--json"], arguments].concat());
    assert_eq!(code, Some(0), "{err}");
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn the_objects_of_a_running_store_and_of_the_store_at_rest_are_the_same() {
    ["webcosm", "packetizer"].into_iter().for_each(compare);
}

fn compare(scheme: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let running = Foxy::start(folder.path(), &["--scheme", scheme]);
    for page in ["b/1", "a/2?x", "a/1", "a/bytes=3000000"] {
        running.get(&origin.url(page));
    }
    let admin = running.admin.to_string();
    let of_paths = ["--path", "*/a/*"];
    let ask = || listed(&[&["--admin", &admin], &of_paths[..]].concat());
    until("all objects on disk", || Some(ask()).filter(|found| found.len() == 4));
    let (first, second) = (origin.url("a/1"), origin.url("a/2?x"));
    for purge in [&["--hard", "--prefix", &first][..], &[&second]] {
        let (code, _, err) = foxy(&[&["purge", "--admin", &admin], purge].concat());
        assert_eq!(code, Some(0), "{err}");
    }
    let live = ask();
    let (code, out, _) = foxy(&["store", "list", "--admin", &admin, "--limit", "1"]);
    assert!(code == Some(0) && out.contains("\nand 3 more; 4 objects in all, "), "{out}");
    running.signal("TERM");
    running.wait();
    let path = folder.path().to_str().expect("UTF-8");
    let at_rest = listed(&[&[path], &of_paths[..]].concat());
    let facts = |found: &[Value]| -> Vec<_> {
        let names =
            ["url", "length", "stored", "status", "parts", "received_ms", "expires_ms", "purge"];
        found.iter().map(|object| names.map(|name| object[name].clone())).collect()
    };
    assert_eq!(facts(&at_rest), facts(&live));
    let urls: Vec<_> = live.iter().filter_map(|object| object["url"].as_str()).collect();
    assert_eq!(urls, ["a/1", "a/2?x", "a/bytes=3000000"].map(|page| origin.url(page)));
    assert_eq!(live[2]["parts"], 3);
    let purges: Vec<_> = live.iter().map(|object| object["purge"].as_str()).collect();
    assert_eq!(purges, [Some("removed"), Some("stale"), None, None]);
}

#[test]
fn objects_that_lost_parts_count_with_the_bytes_that_are_left() {
    const SIZE: u64 = 64 << 20;
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let running = Foxy::start(folder.path(), &[]);
    for page in 0..50 {
        running.get(&origin.url(&format!("{page}?bytes=3000000")));
    }
    let admin = running.admin.to_string();
    let all = ["--limit", "1000"];
    let is_cut = |object: &Value| object["stored"].as_u64() < object["length"].as_u64();
    let check = |found: &[Value]| {
        let [objects @ .., counts] = found else { panic!("no counts") };
        assert!(counts["bytes"].as_u64() <= Some(SIZE), "{counts}");
        objects.iter().filter(|object| is_cut(object)).count()
    };
    let live = check(&listed(&[&["--admin", &admin], &all[..]].concat()));
    assert!(live > 0, "the store has lost parts of objects");
    running.signal("TERM");
    running.wait();
    check(&listed(&[&[folder.path().to_str().expect("UTF-8")], &all[..]].concat()));
}

#[test]
fn times_are_right_after_crashes() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let path = folder.path().to_str().expect("UTF-8");
    (0..2).for_each(|_| Foxy::start(folder.path(), &[]).kill());
    let running = Foxy::start(folder.path(), &[]);
    let admin = running.admin.to_string();
    let begun = clock::wall().0;
    running.get(&origin.url("a"));
    let found = |arguments: &[&str]| Some(listed(arguments)).filter(|found| found.len() == 2);
    let live = until("the object on disk", || found(&["--admin", &admin]));
    running.kill();
    let at_rest = found(&[path]).expect("the object");
    for object in [&live[0], &at_rest[0]] {
        let received = object["received_ms"].as_u64().expect("a time");
        // The saved readings of the clocks may differ by a second.
        let span = begun - 1000..=clock::wall().0 + 1000;
        assert!(span.contains(&received), "{received} is not in {span:?}");
    }
}
