//! The layout of the storage scheme BUDDY. A file consists of places of one size, and a record
//! takes the first free place of its size. A record above the threshold has its own file. Only an
//! empty file is removed and frees its space. So in a full store, a record may take a larger place
//! than it needs.

use super::budget::Budget;
use super::{FileKind, Layout, LayoutFile, Piece, Placement};
use std::collections::{BTreeMap, BTreeSet};

/// Number of low bits of a file number that say how many slots a place of the file has. These bits
/// are 0 for a file with a single record.
const SIZE_BITS: u32 = 16;

#[derive(Debug)]
struct Class {
    file: u64,
    places: u32,
    free: BTreeSet<u32>,
}

impl Class {
    fn is_empty(&self) -> bool {
        self.free.len() == self.places as usize
    }
}

#[derive(Debug)]
pub struct Classes {
    threshold: u32,
    budget: Budget,
    next_serial: u64,
    /// The files with places of equal size, by the number of slots per place.
    classes: BTreeMap<u32, Class>,
}

const fn size_of(file: u64) -> u32 {
    (file & ((1 << SIZE_BITS) - 1)) as u32
}

impl Classes {
    pub fn new(slots: u32, threshold: u32) -> Self {
        Self {
            threshold: threshold.clamp(1, (1 << SIZE_BITS) - 1),
            budget: Budget::new(slots),
            next_serial: 0,
            classes: BTreeMap::new(),
        }
    }

    fn new_file(&mut self, size: u32) -> u64 {
        self.next_serial += 1;
        (self.next_serial << SIZE_BITS) + u64::from(size)
    }

    /// Abandons empty files until the removal of all abandoned files will leave `slots` slots (512
    /// bytes each) free.
    fn make_room(&mut self, slots: u32) {
        while !self.budget.will_have_room(slots)
            && let Some(size) =
                self.classes.iter().find(|(_, class)| class.is_empty()).map(|(&size, _)| size)
            && let Some(class) = self.classes.remove(&size)
        {
            self.budget.abandon(class.file, class.places * size);
        }
    }

    fn take_from(&mut self, size: u32, slots: u32) -> Option<Piece> {
        let class = self.classes.get_mut(&size)?;
        let place = class.free.pop_first()?;
        Some(Piece { file: class.file, first: place * size, slots })
    }

    fn place_alone(&mut self, slots: u32) -> Option<Piece> {
        self.make_room(slots);
        self.budget.has_room(slots).then(|| {
            let file = self.new_file(0);
            self.budget.add_single(file, slots)
        })
    }

    fn place_among(&mut self, slots: u32) -> Option<Piece> {
        if let Some(piece) = self.take_from(slots, slots) {
            return Some(piece);
        }
        self.make_room(slots);
        if self.budget.has_room(slots) {
            if !self.classes.contains_key(&slots) {
                let file = self.new_file(slots);
                self.classes.insert(slots, Class { file, places: 0, free: BTreeSet::new() });
            }
            self.budget.take(slots);
            let class = self.classes.get_mut(&slots)?;
            class.free.insert(class.places);
            class.places += 1;
            return self.take_from(slots, slots);
        }
        let larger = self.classes.range(slots..).find(|(_, class)| !class.free.is_empty());
        let size = *larger?.0;
        self.take_from(size, slots)
    }

    fn adopt_among(&mut self, Piece { file, first, slots }: Piece) -> bool {
        let size = size_of(file);
        let place = first / size;
        let class = self.classes.entry(size).or_insert_with(|| Class {
            file,
            places: 0,
            free: BTreeSet::new(),
        });
        if class.file != file || slots > size || !first.is_multiple_of(size) {
            return false;
        }
        if place < class.places {
            return class.free.remove(&place);
        }
        let more = u64::from(place + 1 - class.places) * u64::from(size);
        let sound = more <= u64::from(self.budget.free());
        if sound {
            self.budget.take((place + 1 - class.places) * size);
            class.free.extend(class.places..place);
            class.places = place + 1;
        }
        sound
    }
}

impl Layout for Classes {
    fn place(&mut self, slots: u32) -> Placement {
        let piece =
            if slots > self.threshold { self.place_alone(slots) } else { self.place_among(slots) };
        match piece {
            Some(piece) => Placement::At(vec![piece]),
            None if self.budget.will_have_room(slots) => Placement::AfterRemoving,
            None => Placement::Full,
        }
    }

    fn removed(&mut self, file: u64) {
        self.budget.removed(file);
    }

    fn free(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            if !self.budget.free_single(piece.file) {
                let size = size_of(piece.file);
                let class = self.classes.get_mut(&size).filter(|class| class.file == piece.file);
                let class = class.expect("a file with a record is kept");
                assert!(class.free.insert(piece.first / size), "a place is given back once");
            }
        }
    }

    fn take_abandoned(&mut self) -> Vec<u64> {
        self.budget.take_abandoned()
    }

    fn adopt(&mut self, pieces: &[Piece]) -> bool {
        let [piece] = *pieces else { return false };
        self.next_serial = self.next_serial.max(piece.file >> SIZE_BITS);
        if size_of(piece.file) == 0 {
            self.budget.adopt_single(piece)
        } else {
            self.adopt_among(piece)
        }
    }

    fn found(&mut self, file: u64, slots: u64) {
        let size = size_of(file);
        let Some(class) = self.classes.get_mut(&size).filter(|class| class.file == file) else {
            return;
        };
        let room = self.budget.free() / size;
        let more = slots.div_ceil(u64::from(size)).saturating_sub(u64::from(class.places));
        let more = u32::try_from(more).unwrap_or(u32::MAX).min(room);
        self.budget.take(more * size);
        class.free.extend(class.places..class.places + more);
        class.places += more;
    }

    fn kind(&self, file: u64) -> FileKind {
        if size_of(file) == 0 { FileKind::Single } else { FileKind::Shared(0) }
    }

    fn files(&self) -> Vec<LayoutFile> {
        let file = |(size, class): (&u32, &Class)| LayoutFile {
            file: class.file,
            slots: class.places * size,
            head: None,
        };
        self.classes.iter().map(file).collect()
    }

    fn unallocated(&self) -> u32 {
        self.budget.free()
    }

    fn capacity(&self) -> u64 {
        u64::from(self.budget.slots())
    }

    fn memory(&self) -> usize {
        self.classes.values().map(|class| class.free.len() * 8 + 64).sum::<usize>()
            + self.budget.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn placed(layout: &mut Classes, slots: u32) -> Piece {
        match layout.place(slots) {
            Placement::At(pieces) => pieces[0],
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_record_takes_the_first_free_place_among_its_size() {
        let mut layout = Classes::new(1000, 50);
        let records = [7, 7, 9, 7].map(|slots| placed(&mut layout, slots));
        assert_eq!(records.map(|piece| piece.first), [0, 7, 0, 14]);
        assert_ne!(records[0].file, records[2].file);
        layout.free(&[records[1]]);
        assert_eq!(layout.take_abandoned(), Vec::<u64>::new());
        assert_eq!(placed(&mut layout, 7), records[1]);
    }

    #[test]
    fn a_record_above_the_threshold_has_a_file_that_goes_with_it() {
        let mut layout = Classes::new(1000, 50);
        let record = placed(&mut layout, 51);
        assert_eq!(layout.kind(record.file), FileKind::Single);
        layout.free(&[record]);
        assert_eq!(layout.take_abandoned(), [record.file]);
        assert_eq!(layout.take_abandoned(), Vec::<u64>::new());
    }

    #[test]
    fn a_full_store_uses_larger_places_and_gives_up_empty_files() {
        let mut layout = Classes::new(100, 50);
        let records: Vec<_> = (0..10).map(|_| placed(&mut layout, 10)).collect();
        assert_eq!(layout.place(5), Placement::Full);
        layout.free(&records[..1]);
        assert_eq!(placed(&mut layout, 5), Piece { slots: 5, ..records[0] });
        layout.free(&records[..1]);
        assert_eq!(layout.place(20), Placement::Full);
        layout.free(&records[1..]);
        assert_eq!(layout.place(20), Placement::AfterRemoving);
        assert_eq!(layout.take_abandoned(), [records[0].file]);
        layout.removed(records[0].file);
        assert_ne!(placed(&mut layout, 20).file, records[0].file);
    }

    #[test]
    fn a_file_found_longer_than_its_records_takes_the_room_it_has() {
        let mut layout = Classes::new(100, 50);
        let records: Vec<_> = (0..9).map(|_| placed(&mut layout, 10)).collect();
        let mut again = Classes::new(100, 50);
        assert!(again.adopt(&records[..1]));
        again.found(records[0].file, 85);
        assert_eq!(again.budget.taken(), 90);
        assert_eq!(again.place(20), Placement::Full);
        assert_eq!(placed(&mut again, 10), records[1]);
        again.found(records[0].file, u64::MAX);
        assert_eq!(again.budget.taken(), 100, "no more than there is, whatever the disk says");
    }

    #[test]
    fn room_is_accounted_for_and_survives_adoption() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut layout = Classes::new(2000, 30);
            let mut records = Vec::new();
            for _ in 0..1000 {
                match layout.place(1 + u32::try_from(random.below(40)).expect("small")) {
                    Placement::At(pieces) => records.push(pieces[0]),
                    _ => {
                        let place =
                            usize::try_from(random.below(records.len() as u64)).expect("small");
                        layout.free(&[records.swap_remove(place)]);
                        for file in layout.take_abandoned() {
                            layout.removed(file);
                        }
                    }
                }
            }
            let used: u32 = records.iter().map(|piece| piece.slots).sum();
            assert!(used <= layout.budget.taken() && layout.budget.taken() <= 2000, "seed {seed}");
            let mut again = Classes::new(2000, 30);
            for piece in &records {
                assert!(again.adopt(&[*piece]), "seed {seed}: {piece:?}");
                assert!(!again.adopt(&[*piece]), "seed {seed}: twice");
            }
            assert!(again.budget.taken() <= layout.budget.taken(), "seed {seed}");
            for piece in records {
                again.free(&[piece]);
            }
            for file in again.take_abandoned() {
                again.removed(file);
            }
            assert!(again.classes.values().all(Class::is_empty), "seed {seed}");
            let places: u32 = again.classes.iter().map(|(size, class)| size * class.places).sum();
            assert_eq!(again.budget.taken(), places, "seed {seed}");
        }
    }
}
