//! Tests which content survives a power failure. With many seeds, every permitted result must
//! occur, and no other.

use super::*;

/// For each of a hundred seeds, builds the files and simulates a power failure. Then `look`
/// examines the files. Returns the different results of `look`.
fn fates<T: Ord>(build: impl Fn(&mut Files), look: impl Fn(&Files) -> T) -> BTreeSet<T> {
    let fate = |seed| {
        let mut files = Files::default();
        build(&mut files);
        files.power_fails(&mut Random::new(seed));
        look(&files)
    };
    (0..100).map(fate).collect()
}

fn content(files: &Files, path: &str) -> Option<Vec<u8>> {
    let inode = files.find(path)?;
    let mut bytes = vec![0; usize::try_from(files.size(inode)).ok()?];
    files.read(inode, 0, &mut bytes);
    Some(bytes)
}

fn synced(files: &mut Files, path: &str, bytes: &[u8]) -> u64 {
    let inode = files.create(path, 0);
    let write = files.write(inode, 0, bytes);
    files.complete(inode, write);
    let writes = files.completed_writes(inode);
    files.make_durable(inode, &writes);
    inode
}

#[test]
fn what_was_synced_survives() {
    let build = |files: &mut Files| {
        synced(files, "a", b"durable");
    };
    let seen = fates(build, |files| content(files, "a"));
    assert_eq!(seen, BTreeSet::from([Some(b"durable".to_vec())]));
}

#[test]
fn an_unsynced_write_is_kept_or_lost_and_tears_between_sectors_only() {
    let build = |files: &mut Files| {
        let inode = synced(files, "a", &[b'o'; 1024]);
        files.write(inode, 0, &[b'n'; 1024]);
    };
    let sectors = |files: &Files| {
        let bytes = content(files, "a").unwrap_or_default();
        for sector in bytes.chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is never torn");
        }
        (bytes[0], bytes[SECTOR])
    };
    let all = BTreeSet::from([(b'o', b'o'), (b'o', b'n'), (b'n', b'o'), (b'n', b'n')]);
    assert_eq!(fates(build, sectors), all);
}

#[test]
fn a_sync_answers_only_for_writes_completed_before_it() {
    let build = |files: &mut Files| {
        let inode = synced(files, "a", b"old");
        let write = files.write(inode, 0, b"new");
        let writes = files.completed_writes(inode);
        files.complete(inode, write);
        files.make_durable(inode, &writes);
    };
    let seen = fates(build, |files| content(files, "a"));
    assert!(seen.contains(&Some(b"old".to_vec())), "{seen:?}");
}

#[test]
fn a_lost_write_does_not_land_on_a_newer_durable_one() {
    let build = |files: &mut Files| {
        let inode = synced(files, "a", b"old...");
        let lost = files.write(inode, 0, b"lost..");
        files.complete(inode, lost);
        files.fail_sync(inode, &[lost]);
        let kept = files.write(inode, 0, b"kept");
        files.complete(inode, kept);
        files.make_durable(inode, &[kept]);
    };
    let seen = fates(build, |files| content(files, "a"));
    assert!(seen.iter().flatten().all(|bytes| bytes.starts_with(b"kept")), "{seen:?}");
}

#[test]
fn after_a_failed_sync_no_later_one_helps() {
    let build = |files: &mut Files| {
        let inode = synced(files, "a", b"old");
        let write = files.write(inode, 0, b"new");
        files.complete(inode, write);
        files.fail_sync(inode, &[write]);
        files.make_durable(inode, &[write]);
    };
    let seen = fates(build, |files| content(files, "a"));
    assert!(seen.contains(&Some(b"old".to_vec())), "{seen:?}");
}

#[test]
fn a_removed_file_may_come_back_once_and_a_new_one_may_vanish() {
    let build = |files: &mut Files| {
        synced(files, "a", b"old");
        files.unlink("a");
        files.create("b", 0);
    };
    let seen = fates(build, |files| (files.find("a").is_some(), files.find("b").is_some()));
    assert_eq!(seen.len(), 4);
    let twice = fates(build, |files| {
        let first = files.find("a").is_some();
        let mut again =
            Files { names: files.names.clone(), inodes: files.inodes.clone(), ..Files::default() };
        again.power_fails(&mut Random::new(3));
        (first, again.find("a").is_some())
    });
    assert_eq!(twice, BTreeSet::from([(false, false), (true, true)]));
}

#[test]
fn bytes_are_those_of_linked_files() {
    let mut files = Files::default();
    let inode = synced(&mut files, "a", &[1; 100]);
    files.create("b", 50);
    assert_eq!(files.bytes(), 150);
    files.unlink("a");
    files.write(inode, 100, &[1; 100]);
    assert_eq!(files.bytes(), 50);
}

#[test]
fn a_directory_lists_what_lies_directly_in_it() {
    let mut files = Files::default();
    files.make_directory("00");
    files.make_directory("00/01");
    files.create("00/01/file", 5);
    let names = |directory| {
        files.list(directory).into_iter().map(|e| (e.name, e.is_directory)).collect::<Vec<_>>()
    };
    assert_eq!(names(""), [("00".to_owned(), true)]);
    assert_eq!(names("00"), [("01".to_owned(), true)]);
    assert_eq!(names("00/01"), [("file".to_owned(), false)]);
}
