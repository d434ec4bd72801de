//! Tests purge lists in real folders, with damaged lists and with disks that refuse writes.

use super::*;
use crate::serve::purge::list::ListFault;
use foxy_base::WallTime;
use foxy_proxy::cache::purge::journal::{self, place};
use foxy_proxy::cache::purge::{Named, Scope, Strength};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::channel;
use tempfile::TempDir;

fn folders(count: usize) -> (Vec<TempDir>, Vec<PathBuf>) {
    let folders: Vec<_> = (0..count).map(|_| tempfile::tempdir().expect("a folder")).collect();
    let paths = folders.iter().map(|folder| folder.path().to_owned()).collect();
    (folders, paths)
}

/// Describes the stores in these folders as stores that may contain records from before this start.
fn beside(paths: &[PathBuf]) -> Vec<BesideStore> {
    let beside = |(number, folder): (usize, &PathBuf)| BesideStore {
        folder: folder.clone(),
        place: SeriesPlace {
            complete: place(&format!("{number} of {}", paths.len())),
            reduced: place(&format!("{number} of {}, bereft", paths.len())),
        },
        beginning: Some(Beginning::Kept),
    };
    paths.iter().enumerate().map(beside).collect()
}

/// Opens the purge lists in these folders. A list that the test itself still has open counts as
/// open in another process.
fn tried(paths: &[PathBuf], era: u64) -> Result<(Purges, Lists), Failure> {
    open(&beside(paths), FreshNames { era, set: era }, |(_, latest)| Ok(latest))
}

fn opened(paths: &[PathBuf], era: u64) -> Purges {
    tried(paths, era).unwrap_or_else(|failure| panic!("{failure}")).0
}

/// Drops `before`, which closes its lists, then opens the lists again.
fn opened_after(before: Purges, paths: &[PathBuf], era: u64) -> Purges {
    drop(before);
    opened(paths, era)
}

fn purge(purges: &Purges, scopes: &[Scope]) -> Result<u64, NotPurged> {
    let order = |scope: &Scope| Order { scope: *scope, strength: Strength::Hard, at: WallTime(1) };
    let (sender, receiver) = channel();
    let reply = Box::new(move |answer| sender.send(answer).expect("somebody waits"));
    purges.keeper.purge(scopes.iter().map(order).collect(), reply);
    receiver.recv().expect("an answer")
}

fn url(number: usize) -> Scope {
    Named::Url.scopes(&format!("http://a.test/{number}")).expect("a URL")[0]
}

fn scopes(purges: &Purges) -> Vec<Scope> {
    let mut rules = purges.book.rules();
    rules.sort_by_key(|rule| rule.moment);
    rules.iter().map(|rule| rule.order.scope).collect()
}

#[test]
fn purges_come_back_with_their_series_and_numbers() {
    let (_kept, paths) = folders(1);
    let first = opened(&paths, 5);
    assert_eq!(purge(&first, &[url(1), url(2)]), Ok(2));
    assert_eq!(purge(&first, &[url(3)]), Ok(3));
    let second = opened_after(first, &paths, 6);
    assert_eq!((second.book.era(), second.book.latest()), (5, 3));
    assert_eq!(scopes(&second), [url(1), url(2), url(3)]);
    assert_eq!(purge(&second, &[url(4)]), Ok(4));
    let third = opened_after(second, &paths, 7);
    assert_eq!(scopes(&third), [url(1), url(2), url(3), url(4)]);
    let mode = fs::metadata(paths[0].join(NAME)).expect("a list").mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_torn_end_costs_nothing_and_other_damage_begins_a_new_series() {
    let (_kept, paths) = folders(1);
    purge(&opened(&paths, 5), &[url(1)]).expect("kept");
    let path = paths[0].join(NAME);
    let sound = fs::read(&path).expect("written");
    fs::write(&path, [&sound[..], &[7; 100]].concat()).expect("written");
    assert_eq!(scopes(&opened(&paths, 6)), [url(1)]);
    fs::write(&path, &sound[1..]).expect("written");
    let after = opened(&paths, 7);
    assert_eq!((after.book.era(), after.book.latest()), (7, 0));
}

#[test]
fn one_sound_copy_restores_all_others() {
    let (_kept, paths) = folders(3);
    let mut purges = opened(&paths, 5);
    for number in 0..paths.len() {
        purge(&purges, &[url(number)]).expect("kept");
        let damaged = &paths[number];
        drop(purges);
        fs::write(damaged.join(NAME), "not a list").expect("written");
        purges = opened(&paths, 9);
        let expected: Vec<_> = (0..=number).map(url).collect();
        assert_eq!((purges.book.era(), scopes(&purges)), (5, expected));
    }
}

#[test]
fn stores_that_were_used_with_others_begin_a_new_series() {
    let (_kept, paths) = folders(4);
    let used = |indices: &[usize], era| {
        let chosen: Vec<_> = indices.iter().map(|index| paths[*index].clone()).collect();
        let purges = opened(&chosen, era);
        purge(&purges, &[url(1)]).expect("kept");
        (purges.book.era(), scopes(&purges).len())
    };
    assert_eq!(used(&[0, 1], 5), (5, 1));
    assert_eq!(used(&[0, 1], 6), (5, 1), "the same goes on");
    assert_eq!(used(&[1, 0], 7), (7, 1), "in another order");
    assert_eq!(used(&[0], 8), (8, 1), "alone");
    assert_eq!(used(&[0], 9), (8, 1));
    assert_eq!(used(&[1, 0], 10), (10, 1), "together again");
    assert_eq!(used(&[1, 2], 11), (11, 1), "the only one with a list may have been out of use");
    assert_eq!(used(&[2, 1, 0], 12), (12, 1), "with one that was away");
    assert_eq!(
        used(&[2, 1, 3], 13),
        (12, 1),
        "a new disk in the place of one of three costs nothing"
    );
    assert_eq!(used(&[2, 1, 0], 14), (14, 1), "with the one that was replaced");
}

#[test]
fn a_purge_that_no_disk_takes_is_refused_and_changes_nothing() {
    let (kept, paths) = folders(1);
    let (purges, health) = tried(&paths, 5).unwrap_or_else(|failure| panic!("{failure}"));
    purge(&purges, &[url(1)]).expect("kept");
    assert_eq!(health.trouble(0), None);
    let hidden = kept[0].path().with_extension("away");
    fs::rename(&paths[0], &hidden).expect("moved");
    assert_eq!(purge(&purges, &[url(2)]), Err(NotPurged::NotDurable));
    assert_eq!(scopes(&purges), [url(1)], "a refused purge is not in force");
    assert!(
        health.trouble(0).expect("one").contains("cannot be written"),
        "{:?}",
        health.trouble(0)
    );
    // An unmounted disk leaves an empty folder, its mount point, at the path.
    fs::create_dir(&paths[0]).expect("made");
    assert_eq!(purge(&purges, &[url(2)]), Err(NotPurged::NotDurable));
    assert_eq!(
        fs::read_dir(&paths[0]).expect("there").count(),
        0,
        "nothing is written beside another store"
    );
    fs::remove_dir(&paths[0]).expect("empty");
    fs::rename(&hidden, &paths[0]).expect("moved back");
    purge(&purges, &[url(3)]).expect("kept");
    assert_eq!(health.trouble(0), None);
    assert_eq!(scopes(&opened_after(purges, &paths, 6)), [url(1), url(3)]);
}

#[test]
fn a_purge_is_kept_where_the_next_start_looks() {
    let (_kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    purge(&purges, &[url(1)]).expect("kept");
    let path = paths[0].join(NAME);
    let changes: [fn(&Path); 3] = [
        |list| fs::remove_file(list).expect("a list"),
        |list| fs::rename(list, list.with_extension("away")).expect("a list"),
        |list| {
            fs::remove_file(list).expect("a list");
            fs::write(list, "another").expect("written");
        },
    ];
    for (number, change) in (2..).zip(changes) {
        change(&path);
        purge(&purges, &[url(number)]).expect("kept");
        let found = list::read(&paths[0]);
        assert!(matches!(found, Err(WriteError::InUse)), "it is there and this one's: {found:?}");
    }
    assert_eq!(scopes(&opened_after(purges, &paths, 6)), [url(1), url(2), url(3), url(4)]);
}

#[test]
fn a_missing_list_is_written_anew_unasked() {
    let (_kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    purge(&purges, &[url(1)]).expect("kept");
    let path = paths[0].join(NAME);
    fs::remove_file(&path).expect("a list");
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(scopes(&opened_after(purges, &paths, 6)), [url(1)]);
}

#[test]
fn a_list_says_why_it_must_be_written_again() {
    let (_kept, paths) = folders(1);
    let path = paths[0].join(NAME);
    let series = Series { era: 1, set: 1, place: 1 };
    let mut list = PurgeList::new(paths[0].clone(), series);
    assert_eq!(list.fault(), ListFault::Missing);
    list.keep(Vec::new, 0, &[]).expect("kept");
    fs::write(&path, "").expect("shortened");
    assert_eq!(list.fault(), ListFault::Changed);
    // A failed write also leaves the list without its open file.
    list.begin(series);
    assert_eq!(list.fault(), ListFault::Incomplete);
    fs::remove_file(&path).expect("there");
    assert_eq!(list.fault(), ListFault::Missing);
}

#[test]
fn a_list_in_use_is_another_foxys() {
    let (_kept, paths) = folders(1);
    let first = opened(&paths, 5);
    let Err(Failure::Unusable(text)) = tried(&paths, 6).map(drop) else { panic!("it is in use") };
    assert!(text.contains("foxy.purges: in use by another foxy; stop the other foxy"), "{text}");
    opened_after(first, &paths, 7);
}

#[test]
fn the_list_stays_small_when_one_url_is_purged_often() {
    let (_kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    for _ in 0..300 {
        purge(&purges, &[url(1)]).expect("kept");
    }
    let length = fs::metadata(paths[0].join(NAME)).expect("a file").len();
    assert!(length <= list::MAX_GROWTH_BYTES + 4 * journal::BLOCK_BYTES as u64, "{length}");
    assert_eq!(purges.book.latest(), 300);
    assert_eq!(opened_after(purges, &paths, 6).book.latest(), 300);
}

/// Takes a store out of use. Returns whether the lists of all other stores record this durably.
fn took_out(lists: &Lists, store: usize) -> bool {
    let (sender, receiver) = channel();
    lists.take_out(vec![store], Box::new(move || sender.send(()).expect("somebody waits")));
    receiver.recv().is_ok()
}

#[test]
fn a_series_continues_after_a_store_was_out_only_when_it_is_empty() {
    let (_kept, paths) = folders(3);
    let (purges, lists) = tried(&paths, 5).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(purge(&purges, &[url(1)]), Ok(1));
    assert!(took_out(&lists, 1));
    let before = fs::read(paths[1].join(NAME)).expect("a list");
    assert_eq!(purge(&purges, &[url(2)]), Ok(2));
    assert_eq!(
        fs::read(paths[1].join(NAME)).expect("a list"),
        before,
        "nothing is written beside it any more"
    );
    drop(purges);
    let copies: Vec<_> =
        paths.iter().map(|path| fs::read(path.join(NAME)).expect("a list")).collect();
    let restore = || {
        paths
            .iter()
            .zip(&copies)
            .for_each(|(path, copy)| fs::write(path.join(NAME), copy).expect("written"))
    };
    let opened_with = |beginning, era| {
        let beside = beside(&paths).into_iter().enumerate().map(|(number, store)| match number {
            1 => BesideStore { beginning: Some(beginning), ..store },
            _ => store,
        });
        open(&beside.collect::<Vec<_>>(), FreshNames { era, set: era }, |(_, latest)| Ok(latest))
            .unwrap_or_else(|failure| panic!("{failure}"))
            .0
    };
    let emptied = opened_with(Beginning::New, 6);
    assert_eq!((emptied.book.era(), scopes(&emptied)), (5, vec![url(1), url(2)]));
    drop(emptied);
    restore();
    let back = opened_with(Beginning::Kept, 7);
    assert_eq!((back.book.era(), scopes(&back)), (7, vec![]));
    drop(back);
    restore();
    fs::remove_file(paths[1].join(NAME)).expect("there");
    assert_eq!(opened_with(Beginning::Kept, 8).book.era(), 8);
}

#[test]
fn a_list_can_continue_after_a_greater_number() {
    let (_kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    assert_eq!(purge(&purges, &[url(1)]), Ok(1));
    drop(purges);
    let continued = |list| {
        assert_eq!(list, (5, 1), "the random number and the latest purge of the list");
        Ok(100)
    };
    let opened_so = open(&beside(&paths), FreshNames { era: 6, set: 6 }, continued);
    let purges = opened_so.unwrap_or_else(|failure| panic!("{failure}")).0;
    let again = opened_after(purges, &paths, 7);
    assert_eq!((again.book.era(), again.book.latest()), (5, 100), "the number is durable");
    assert_eq!(purge(&again, &[url(2)]), Ok(101));
}

#[test]
fn a_store_stays_in_use_while_another_list_cannot_be_written() {
    let (_kept, paths) = folders(2);
    let (_purges, lists) = tried(&paths, 5).unwrap_or_else(|failure| panic!("{failure}"));
    fs::rename(&paths[0], paths[0].with_extension("away")).expect("moved");
    assert!(!took_out(&lists, 1));
    fs::rename(paths[0].with_extension("away"), &paths[0]).expect("moved");
    assert!(took_out(&lists, 1));
}
