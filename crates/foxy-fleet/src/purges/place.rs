//! The file with a member's position in the purge log. The file has two slots. Each write replaces
//! the older slot, so a crash leaves the newer slot whole. A write waits for the disk only once,
//! because it changes neither the file's size nor its name.

use super::runner::PlaceFile;
use super::saved::{Binding, BoundPlace, Mismatch, Saved};
use foxy_base::Random;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64;

/// Name of the file with the member's position. It is in the folder of the first store.
pub const NAME: &str = "foxy.fleet";
/// Size of a slot in bytes. Each slot has a page of its own, because a disk that breaks off a write
/// may destroy adjacent bytes.
const SLOT: u64 = 4096;
const SLOTS: u64 = 2;

/// The folder of the file with a member's position in the purge log. A node without a store has no
/// file: after a restart it has no stored responses that a purge could affect.
pub struct StoredPlace(pub Option<PathBuf>);

/// The content of a slot: the slot's number, which increases with each write, and the member's
/// saved state with its binding.
type Slot = Option<(u64, BoundPlace)>;

/// The state from which a node continues at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The number of the last purge. The node's list of purges continues after this number.
    pub latest: u64,
    /// The reason why the node forgets its state, if a file was there.
    pub forgotten: Option<Mismatch>,
}

impl StoredPlace {
    /// Compares the file with `now`, this node and its list of purges. If the file does not fit,
    /// replaces it by a file without a state. The caller must then let the list continue after the
    /// returned number, which depends on `random`. Until the list does so, the file still does not
    /// fit.
    ///
    /// # Errors
    /// Returns an error if the file does not fit and cannot be replaced.
    pub fn check(&self, now: Binding, random: &mut Random) -> io::Result<Continuation> {
        let found = self.newest().map(|place| place.binding);
        let mismatch = found.map(|binding| binding.mismatch(&now));
        if mismatch == Some(None) {
            return Ok(Continuation { latest: now.latest, forgotten: None });
        }
        let binding = now.renewed(found.as_ref(), random.next_u64());
        // Both slots, so that a damaged slot does not bring the forgotten state back.
        for _ in 0..SLOTS {
            self.write(&BoundPlace { saved: None, binding })?;
        }
        Ok(Continuation { latest: binding.latest, forgotten: mismatch.flatten() })
    }

    fn newest(&self) -> Option<BoundPlace> {
        let file = File::open(self.0.as_ref()?.join(NAME)).ok()?;
        let slots = [read_slot(&file, 0), read_slot(&file, 1)];
        slots.into_iter().flatten().max_by_key(|(number, _)| *number).map(|(_, place)| place)
    }
}

impl PlaceFile for StoredPlace {
    fn read(&self) -> Option<Saved> {
        self.newest()?.saved
    }

    fn write(&self, place: &BoundPlace) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(folder.join(NAME))?;
        let numbers = [0, 1].map(|slot| read_slot(&file, slot).map_or(0, |(number, _)| number));
        let older = u64::from(numbers[1] < numbers[0]);
        let text = text(numbers[0].max(numbers[1]) + 1, &place.text());
        let is_new = file.metadata()?.len() < SLOT * SLOTS;
        if is_new {
            file.write_all_at(&[0; (SLOT * SLOTS) as usize], 0)?;
        }
        file.write_all_at(text.as_bytes(), older * SLOT)?;
        file.sync_data()?;
        if is_new { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

fn text(number: u64, place: &str) -> String {
    let rest = format!("{number} {place}");
    format!("{:016x} {rest}", xxh3_64(rest.as_bytes()))
}

/// Reads a slot of the file. Returns `None` if the slot was never written, or only in part.
fn read_slot(file: &File, slot: u64) -> Slot {
    let mut bytes = [0; SLOT as usize];
    file.read_exact_at(&mut bytes, slot * SLOT).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let (hash, rest) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    (u64::from_str_radix(hash, 16).ok()? == xxh3_64(rest.as_bytes())).then_some(())?;
    let (number, place) = rest.split_once(' ')?;
    Some((number.parse().ok()?, BoundPlace::parse(place)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purges::chain::Chain;

    const BINDING: Binding = Binding { node: 1, era: 2, latest: 3 };

    fn at(position: u64) -> BoundPlace {
        let chain = Chain::at(1, position, 3);
        let saved = Saved { chain, proved: Some(4), missed: None, witnesses: vec![] };
        BoundPlace { saved: Some(saved), binding: BINDING }
    }

    #[test]
    fn a_file_that_does_not_fit_loses_its_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = StoredPlace(Some(folder.path().to_owned()));
        let mut random = Random::new(1);
        let mut check = |now| place.check(now, &mut random).expect("checked");
        let new = check(BINDING);
        assert!(new.latest > BINDING.latest && new.forgotten.is_none(), "{new:?}");
        for (now, forgotten) in [
            (BINDING, None),
            (Binding { latest: 4, ..BINDING }, None),
            (Binding { latest: 2, ..BINDING }, Some(Mismatch::OlderList)),
            (Binding { node: 9, ..BINDING }, Some(Mismatch::OtherNode)),
            (Binding { era: 9, ..BINDING }, Some(Mismatch::OtherList)),
        ] {
            place.write(&at(1)).expect("written");
            let first = check(now);
            assert_eq!((first.forgotten, place.read().is_some()), (forgotten, forgotten.is_none()));
            assert_eq!(first.latest > now.latest, forgotten.is_some());
            // A crash: the list was not written, but the file was.
            let second = check(now);
            assert_eq!(second.latest > first.latest, forgotten.is_some());
            let continued = Binding { latest: second.latest, ..now };
            assert_eq!(check(continued).latest, second.latest);
        }
    }

    #[test]
    fn an_old_list_without_a_file_never_gives_the_numbers_of_lost_purges_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = StoredPlace(Some(folder.path().to_owned()));
        let mut random = Random::new(1);
        let first = place.check(BINDING, &mut random).expect("checked");
        std::fs::remove_file(folder.path().join(NAME)).expect("a file");
        // An earlier copy of the list is back: the copy from before the first start.
        let again = place.check(BINDING, &mut random).expect("checked");
        assert!(first.latest.abs_diff(again.latest) > 1 << 32, "{first:?} {again:?}");
    }

    #[test]
    fn the_newest_whole_place_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = StoredPlace(Some(folder.path().to_owned()));
        assert_eq!(place.read(), None);
        for position in 1..=5 {
            place.write(&at(position)).expect("written");
            assert_eq!(place.newest(), Some(at(position)));
        }
        let open = || OpenOptions::new().write(true).open(folder.path().join(NAME)).expect("open");
        open().write_all_at(b"7", 0).expect("the newest place is damaged");
        assert_eq!(place.newest(), Some(at(4)));
        place.write(&at(6)).expect("written");
        assert_eq!(place.newest(), Some(at(6)));
        open().set_len(SLOT).expect("cut");
        place.write(&at(7)).expect("written");
        assert_eq!(place.newest(), Some(at(7)));
        open().set_len(9).expect("cut");
        assert_eq!(place.read(), None);
        place.write(&at(8)).expect("written");
        assert_eq!(place.newest(), Some(at(8)));
    }
}
