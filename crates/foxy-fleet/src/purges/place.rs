//! The file with a member's position in the purge log. The file has two slots. Each write replaces
//! the older slot, so a crash leaves the newer slot whole. A write waits for the disk only once,
//! because it changes neither the file's size nor its name.

use super::runner::PlaceFile;
use super::saved::Saved;
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
/// saved state.
type Slot = Option<(u64, Saved)>;

impl PlaceFile for StoredPlace {
    fn read(&self) -> Option<Saved> {
        let file = File::open(self.0.as_ref()?.join(NAME)).ok()?;
        let slots = [read_slot(&file, 0), read_slot(&file, 1)];
        slots.into_iter().flatten().max_by_key(|(number, _)| *number).map(|(_, saved)| saved)
    }

    fn write(&self, saved: &Saved) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(folder.join(NAME))?;
        let numbers = [0, 1].map(|slot| read_slot(&file, slot).map_or(0, |(number, _)| number));
        let older = u64::from(numbers[1] < numbers[0]);
        let text = text(numbers[0].max(numbers[1]) + 1, saved);
        let is_new = file.metadata()?.len() < SLOT * SLOTS;
        if is_new {
            file.write_all_at(&[0; (SLOT * SLOTS) as usize], 0)?;
        }
        file.write_all_at(text.as_bytes(), older * SLOT)?;
        file.sync_data()?;
        if is_new { File::open(folder)?.sync_all() } else { Ok(()) }
    }
}

fn text(number: u64, saved: &Saved) -> String {
    let rest = format!("{number} {}", saved.text());
    format!("{:016x} {rest}", xxh3_64(rest.as_bytes()))
}

/// Reads a slot of the file. Returns `None` if the slot was never written, or only in part.
fn read_slot(file: &File, slot: u64) -> Slot {
    let mut bytes = [0; SLOT as usize];
    file.read_exact_at(&mut bytes, slot * SLOT).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let (hash, rest) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    (u64::from_str_radix(hash, 16).ok()? == xxh3_64(rest.as_bytes())).then_some(())?;
    let (number, saved) = rest.split_once(' ')?;
    Some((number.parse().ok()?, Saved::parse(saved)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purges::chain::Chain;

    #[test]
    fn the_newest_whole_place_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = StoredPlace(Some(folder.path().to_owned()));
        assert_eq!(place.read(), None);
        let at = |position| Saved {
            chain: Chain::at(1, position, 3),
            proved: Some(4),
            missed: None,
            witnesses: vec![],
        };
        for position in 1..=5 {
            place.write(&at(position)).expect("written");
            assert_eq!(place.read(), Some(at(position)));
        }
        let open = || OpenOptions::new().write(true).open(folder.path().join(NAME)).expect("open");
        open().write_all_at(b"7", 20).expect("the newest place is damaged");
        assert_eq!(place.read(), Some(at(4)));
        place.write(&at(6)).expect("written");
        assert_eq!(place.read(), Some(at(6)));
        open().set_len(SLOT).expect("cut");
        place.write(&at(7)).expect("written");
        assert_eq!(place.read(), Some(at(7)));
        open().set_len(9).expect("cut");
        assert_eq!(place.read(), None);
        place.write(&at(8)).expect("written");
        assert_eq!(place.read(), Some(at(8)));
    }
}
