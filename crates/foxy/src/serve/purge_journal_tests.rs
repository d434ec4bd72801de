//! Lists of purges on real folders: what comes back, what is doubted, and disks that do not take them.

use super::*;
use foxy_base::WallTime;
use foxy_proxy::purge::{Named, Scope, Strength};
use std::sync::mpsc::channel;
use tempfile::TempDir;

fn folders(count: usize) -> (Vec<TempDir>, Vec<PathBuf>) {
    let folders: Vec<_> = (0..count).map(|_| tempfile::tempdir().expect("a folder")).collect();
    let paths = folders.iter().map(|folder| folder.path().to_owned()).collect();
    (folders, paths)
}

fn opened(paths: &[PathBuf], era: u64) -> Purges {
    open(paths, era).unwrap_or_else(|failure| panic!("{failure}"))
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
    let second = opened(&paths, 6);
    assert_eq!((second.book.era(), second.book.latest()), (5, 3));
    assert_eq!(scopes(&second), [url(1), url(2), url(3)]);
    assert_eq!(purge(&second, &[url(4)]), Ok(4));
    assert_eq!(scopes(&opened(&paths, 7)), [url(1), url(2), url(3), url(4)]);
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
fn any_sound_copy_is_enough_and_all_are_made_the_same() {
    let (_kept, paths) = folders(3);
    purge(&opened(&paths[..2], 5), &[url(1)]).expect("kept");
    purge(&opened(&paths[1..2], 6), &[url(2)]).expect("kept in one");
    fs::write(paths[2].join(NAME), "not a list").expect("written");
    for folders in [&paths[..], &paths[2..], &paths[..1]] {
        let purges = opened(folders, 9);
        assert_eq!((purges.book.era(), scopes(&purges)), (5, vec![url(1), url(2)]));
    }
}

#[test]
fn a_list_of_another_series_is_not_mixed_in() {
    let (_kept, paths) = folders(2);
    purge(&opened(&paths[..1], 5), &[url(1)]).expect("kept");
    purge(&opened(&paths[1..], 6), &[url(2)]).expect("kept");
    let both = opened(&paths, 7);
    assert_eq!((both.book.era(), scopes(&both)), (5, vec![url(1)]));
}

#[test]
fn what_no_disk_takes_is_refused_and_changes_nothing_until_one_does() {
    let (kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    purge(&purges, &[url(1)]).expect("kept");
    let hidden = kept[0].path().with_extension("away");
    fs::rename(&paths[0], &hidden).expect("moved");
    // The file is open still; only a list that must be written anew is refused.
    for number in 2..=400 {
        if purge(&purges, &[url(number)]).is_err() {
            assert_eq!(scopes(&purges).len(), number - 1, "a refused purge is not in force");
            break;
        }
    }
    assert_eq!(purge(&purges, &[url(900)]), Err(NotPurged::NotDurable));
    fs::rename(&hidden, &paths[0]).expect("moved back");
    purge(&purges, &[url(901)]).expect("kept");
    let all = scopes(&purges);
    assert_eq!(all.last(), Some(&url(901)));
    assert_eq!(scopes(&opened(&paths, 6)), all);
}

#[test]
fn the_list_stays_small_however_often_one_thing_is_purged() {
    let (_kept, paths) = folders(1);
    let purges = opened(&paths, 5);
    for _ in 0..300 {
        purge(&purges, &[url(1)]).expect("kept");
    }
    let length = fs::metadata(paths[0].join(NAME)).expect("a file").len();
    assert!(length <= GROWTH + 4 * journal::BLOCK_BYTES as u64, "{length}");
    assert_eq!(purges.book.latest(), 300);
    assert_eq!(opened(&paths, 6).book.latest(), 300);
}
