//! Tests `foxy fsck` and `foxy store inspect` with stores that are intact, killed, damaged or in
//! use, and with files that are not stores.

use crate::support::commands::{command, ended};
use foxy_base::Instant;
use foxy_device::threads::DirectIo;
use foxy_device::{Blocking, Root, RootError};
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::superblock::Superblock;
use foxy_store::{Answer, Key, Observer, PlacementHint, Record, StepDriver, StoreSettings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Creates a store with twenty small and five larger records on disk. If `closed` is false, the
/// store is left as after a kill.
pub fn store(scheme: SchemeName, closed: bool) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let settings =
        SchemeSettings::from(StoreSettings { seed: 5, ..StoreSettings::with_size(1 << 20) });
    let root = Root::open(folder.path()).expect("a new folder");
    let observer = Observer::default();
    let device = Blocking::new(&root, DirectIo::Off);
    let made = scheme.make(&settings, observer.clone());
    let mut driver = StepDriver::start(made, device, observer, Instant::ZERO);
    driver.run_until_idle();
    for number in 0..25_u8 {
        let body = vec![number; if number < 20 { 300 } else { 9_000 }];
        let record = Record { head: vec![b'h'; 40].into(), body: body.into() };
        assert_eq!(driver.put(Key([number; 16]), record, PlacementHint::default()), Answer::Stored);
    }
    let later = driver.now() + Duration::from_secs(2);
    driver.run_until(later);
    driver.run_until_idle();
    if closed {
        assert_eq!(driver.close(), Answer::Closed);
    }
    let path = folder.path().to_owned();
    (folder, path)
}

pub fn foxy(arguments: &[&str], path: &Path) -> (Option<i32>, String, String) {
    ended(command(arguments).arg(path))
}

pub fn json(arguments: &[&str], path: &Path) -> (Option<i32>, Value) {
    let (code, out, _) = foxy(&[arguments, &["--json"]].concat(), path);
    let mut whole: Value = serde_json::from_str(&out).expect("JSON");
    (code, whole["stores"][0].take())
}

fn flip(file: &Path, at: u64) {
    let mut bytes = std::fs::read(file).expect("readable");
    bytes[usize::try_from(at).expect("small")] ^= 1;
    std::fs::write(file, bytes).expect("writable");
}

#[test]
fn a_sound_store_is_said_to_be_so_and_a_killed_one_too() {
    for closed in [true, false] {
        let (_folder, path) = store(SchemeName::Webcosm, closed);
        let file = path.join("webcosm.foxy");
        let before = std::fs::read(&file).expect("readable");
        for named in [&path, &file] {
            let (code, out, err) = foxy(&["fsck"], named);
            assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
            assert!(out.contains("25 records, ") && out.contains("no damage"), "{out}");
            assert_eq!(out.contains("left by a kill"), !closed, "{out}");
        }
        assert_eq!(std::fs::read(&file).expect("readable"), before, "nothing is written");
    }
}

#[test]
fn damage_is_named_with_its_place_and_what_it_costs() {
    let (_folder, path) = store(SchemeName::Webcosm, true);
    let file = path.join("webcosm.foxy");
    let (code, inspected) = json(&["store", "inspect", "--segment", "0"], &path);
    assert_eq!(code, Some(0), "{inspected}");
    let listed = inspected["listed"].as_array().expect("a list").clone();
    assert_eq!(listed.len(), 25);
    let large = listed.iter().find(|record| record["found"]["body"] == 9_000).expect("a large one");
    let at = large["at"].as_u64().expect("a place");
    flip(&file, 20);
    flip(&file, at + 80);
    let (code, out, err) = foxy(&["fsck"], &path);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("webcosm.foxy: 2 findings of damage"), "{err}");
    assert!(out.contains("this copy of the superblock is damaged"), "{out}");
    let (code, checked) = json(&["fsck"], &path);
    assert_eq!((code, &checked["damage"]), (Some(1), &Value::from(2)));
    let found = &checked["findings"];
    assert_eq!(found[0]["reason"], "superblock-damaged");
    assert_eq!((found[0]["at"].as_u64(), found[0]["segment"].as_u64()), (Some(0), None));
}

#[test]
fn the_map_agrees_with_inspect_segment_by_segment() {
    for closed in [true, false] {
        let (folder, path) = store(SchemeName::Webcosm, closed);
        let (_, inspected) = json(&["store", "inspect"], &path);
        let (code, map) = json(&["store", "map"], &path);
        assert_eq!(code, Some(0), "{map}");
        let (segments, cells) = (inspected["segments"].as_array(), map["cells"].as_array());
        let pairs: Vec<_> =
            segments.into_iter().flatten().zip(cells.into_iter().flatten()).collect();
        assert_eq!(Some(pairs.len()), segments.map(Vec::len));
        for (segment, cell) in pairs {
            let state = &map["states"][cell[1].as_u64().map_or(9, |it| it as usize)];
            assert_eq!(state == "free", segment["state"] == "free", "{segment} {cell}");
            let facts = [("segment", 0), ("number", 3), ("live_records", 6)];
            let agrees = |(name, at): (&str, usize)| segment[name] == cell[at];
            assert!(facts.into_iter().all(agrees), "{segment} {cell}");
        }
        let (_, text, _) = foxy(&["store", "map"], &path);
        assert!(text.contains("main log\n") && text.contains("holes from"), "{text}");
        let page = folder.path().join("map.html");
        let named = page.to_str().expect("a name");
        let (code, said, _) = foxy(&["store", "map", "--html", named], &path);
        assert_eq!((code, said), (Some(0), format!("wrote {named}\n")));
        assert!(std::fs::read_to_string(page).expect("a page").contains("application/json"));
    }
}

#[test]
fn a_path_that_is_no_stores_is_answered_in_one_line_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let stranger = folder.path().join("a.txt");
    std::fs::write(&stranger, "hello").expect("written");
    let foreign = tempfile::tempdir().expect("a folder");
    std::fs::write(foreign.path().join("webcosm.foxy"), vec![7; 9_000]).expect("written");
    let missing = folder.path().join("missing");
    for command in [&["fsck"][..], &["store", "inspect"]] {
        for path in [folder.path(), &stranger, &missing, foreign.path()] {
            let (code, out, err) = foxy(command, path);
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
            assert!(
                err.starts_with("foxy: store ") && err.contains(&*path.to_string_lossy()),
                "{err}"
            );
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 1);
}

/// Locks a folder. Retries, because a child process that another test starts may briefly inherit
/// the lock.
fn locked(path: &Path) -> Root {
    loop {
        match Root::open(path) {
            Ok(root) => return root,
            Err(error) => assert!(matches!(error, RootError::InUse(_)), "{error}"),
        }
    }
}

#[test]
fn a_store_in_use_is_left_alone() {
    let (_folder, path) = store(SchemeName::Webcosm, true);
    let _in_use = locked(&path);
    for command in [&["fsck"][..], &["store", "inspect"]] {
        let (code, out, err) = foxy(command, &path);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1));
        assert!(err.contains("in use by a running foxy"), "{err}");
    }
}

#[test]
fn of_other_schemes_the_beginning_is_looked_at_and_that_is_said() {
    for scheme in [SchemeName::StreamPacketizer, SchemeName::Coss, SchemeName::Ufs] {
        let (_folder, path) = store(scheme, true);
        let (code, out, err) = foxy(&["fsck"], &path);
        assert_eq!(code, Some(0), "{out}{err}");
        assert!(
            out.contains(scheme.row().text) && out.contains("only when they are read"),
            "{out}"
        );
        let (code, out, _) = foxy(&["store", "inspect"], &path);
        assert!(code == Some(0) && out.contains("superblock"), "{out}");
        flip(&path.join(scheme.row().control.expect("one")), 30);
        let (code, _, err) = foxy(&["fsck"], &path);
        assert!(code == Some(1) && err.contains("copy 0 of the superblock is damaged"), "{err}");
    }
}

#[test]
fn a_store_is_shown_part_by_part() {
    let (_folder, path) = store(SchemeName::Webcosm, true);
    let (code, out, _) = foxy(&["store", "inspect"], &path);
    assert_eq!(code, Some(0), "{out}");
    for part in ["superblock", "journal 1", "log probation", "sealed", "packed", "3 pages"] {
        assert!(out.contains(part), "no {part} in {out}");
    }
    assert!(out.contains("25 records are on disk; 25 of them are live"), "{out}");
    let (code, out, _) = foxy(&["store", "inspect", "--segment", "0"], &path);
    let shown = out.lines().find(|line| line.contains(&"03".repeat(16))).expect("the record");
    assert!(code == Some(0) && shown.contains("packed") && shown.ends_with("40   300"), "{shown}");
    let (code, _, err) = foxy(&["store", "inspect", "--segment", "99"], &path);
    assert!(code == Some(2) && err.contains("there is no segment 99"), "{err}");
    let (_, shown) = json(&["store", "inspect"], &path);
    assert_eq!(
        (&shown["records"], &shown["schemes"][0]),
        (&Value::from(25), &Value::from("webcosm"))
    );
    assert_eq!(shown["segments"].as_array().map(Vec::len), Some(7));
}

/// Runs `fsck` and `serve` on the store in a folder. Returns the exit code and error of each.
fn both(path: &Path, scheme: SchemeName) -> [(Option<i32>, String); 2] {
    let (code, _, err) = foxy(&["fsck"], path);
    let serve =
        crate::support::refused_plain(path, &["--scheme", scheme.row().text, "--size", "64M"]);
    [(code, err), serve]
}

#[test]
fn what_serve_refuses_is_damage_or_no_store_to_fsck_in_the_same_words() {
    for scheme in
        [SchemeName::Webcosm, SchemeName::StreamPacketizer, SchemeName::Coss, SchemeName::Ufs]
    {
        let (_folder, path) = store(scheme, true);
        let file = path.join(scheme.row().control.expect("one"));
        let sound = std::fs::read(&file).expect("readable");
        let preallocated = sound.len() == 1 << 20;
        let forged = |size: u64| {
            let mut bytes = sound.clone();
            let page =
                Superblock { size, generation: 99, requested: 64 << 20, ..Superblock::default() }
                    .encode();
            bytes[..4096].copy_from_slice(&page);
            bytes
        };
        let mut headless = sound.clone();
        headless[..8192].fill(0);
        headless.resize(sound.len().max(9000), 7);
        let mut cases = vec![
            (headless, 2, "the file is not a foxy store, and foxy does not change it"),
            (vec![7; 1], 2, "the file is not a foxy store, and foxy does not change it"),
            (sound[..5000].to_vec(), 1, "restore the complete file"),
        ];
        if preallocated {
            for size in [0, 4097, 1 << 60] {
                cases.push((forged(size), 1, "bytes, which no store can have"));
            }
        }
        for (bytes, code, said) in cases {
            std::fs::write(&file, &bytes).expect("written");
            let [fsck, serve] = both(&path, scheme);
            assert_eq!((fsck.0, serve.0), (Some(code), Some(2)), "{scheme}: {fsck:?} {serve:?}");
            assert!(fsck.1.contains(said), "{scheme}: {fsck:?}");
            assert_eq!(fsck.1, serve.1, "{scheme}");
            assert_eq!(std::fs::read(&file).expect("there"), bytes, "{scheme}: it is left alone");
        }
    }
}

#[test]
fn an_empty_file_is_a_store_never_begun_to_both() {
    for scheme in [SchemeName::Webcosm, SchemeName::StreamPacketizer, SchemeName::Coss] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(scheme.row().control.expect("one")), "")
            .expect("written");
        let (code, out, err) = foxy(&["fsck"], folder.path());
        assert!(code == Some(0) && out.contains("no foxy has used it yet"), "{scheme}: {out}{err}");
        let foxy = crate::support::Foxy::start(folder.path(), &["--scheme", scheme.row().text]);
        assert!(!foxy.welcome.contains("starts empty"), "{}", foxy.welcome);
    }
}

#[test]
fn a_cut_store_that_goes_on_with_the_rest_is_damage_and_says_so() {
    let (_folder, path) = store(SchemeName::StreamPacketizer, true);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(path.join("stream-packetizer.foxy"))
        .expect("there");
    file.set_len(600_000).expect("cut");
    let (code, _, err) = foxy(&["fsck"], &path);
    assert!(code == Some(1) && err.contains("448576 bytes are missing at its end"), "{err}");
}
