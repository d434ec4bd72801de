//! Tests the placement of small and large records, the removal of parts (the files of small
//! records), and the accounting of space.

use super::*;
use foxy_base::Random;

fn placed(layout: &mut Mapped, slots: u32) -> Piece {
    match layout.place(slots) {
        Placement::At(pieces) => pieces[0],
        other => panic!("{other:?}"),
    }
}

/// Places records of these sizes, given in slots (512 bytes each). Checks that they start at the
/// slots in `expected`.
fn check(aligned: bool, records: &[u32], expected: &[u32]) {
    let mut layout = Mapped::new(16 * 32, aligned);
    let firsts: Vec<u32> = records.iter().map(|&slots| placed(&mut layout, slots).first).collect();
    assert_eq!(firsts, expected, "aligned {aligned}, records {records:?}");
}

#[test]
fn small_records_follow_each_other_and_keep_to_a_page_when_aligned() {
    check(false, &[10, 10, 6, 6], &[0, 10, 20, 26]);
    check(true, &[10, 10, 6, 6], &[0, 16, 26, 10]);
    check(true, &[16, 16, 1], &[0, 16, 0]);
}

#[test]
fn a_large_record_has_a_file_in_the_folders_that_goes_with_it() {
    let mut layout = Mapped::new(1000, false);
    let (small, large) =
        (placed(&mut layout, MAX_SMALL_SLOTS), placed(&mut layout, MAX_SMALL_SLOTS + 1));
    assert_eq!(layout.kind(large.file), FileKind::Single);
    assert_eq!([small, large].map(|piece| layout.folder_number(piece.file)), [None, Some(2)]);
    layout.free(&[large]);
    assert_eq!(layout.take_abandoned(), [large.file]);
}

#[test]
fn a_part_that_holds_little_makes_way_for_a_large_record() {
    let mut layout = Mapped::new(160, false);
    let small: Vec<Piece> = (0..40).map(|_| placed(&mut layout, 4)).collect();
    assert_eq!(layout.place(4), Placement::Full);
    assert_eq!(layout.place(20), Placement::Full);
    let first: Vec<Piece> =
        small.iter().copied().filter(|piece| piece.file == small[0].file).collect();
    let second: Vec<Piece> =
        small.iter().copied().filter(|piece| piece.file == small[4].file).collect();
    layout.free(&first[..3]);
    layout.free(&second[..2]);
    for part in [first[3].file, second[3].file] {
        assert_eq!(
            layout.place(20),
            Placement::AfterClearing(Piece { file: part, first: 0, slots: layout.part_slots })
        );
    }
    assert_eq!(layout.place(20), Placement::AfterRemoving);
    layout.free(&first[3..]);
    layout.free(&second[2..3]);
    layout.free(&second[3..]);
    for file in layout.take_abandoned() {
        layout.removed(file);
    }
    let large = placed(&mut layout, 20);
    assert_eq!(layout.kind(large.file), FileKind::Single);
}

#[test]
fn room_is_accounted_for_and_survives_adoption() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut layout = Mapped::new(2000, seed % 2 == 0);
        let mut records: Vec<Vec<Piece>> = Vec::new();
        for _ in 0..1000 {
            let most = [20, 100][usize::from(random.chance(0.2))];
            match layout.place(1 + u32::try_from(random.below(most)).expect("small")) {
                Placement::At(pieces) => records.push(pieces),
                Placement::AfterClearing(part) => {
                    let (inside, rest) = records
                        .into_iter()
                        .partition(|pieces: &Vec<Piece>| pieces[0].file == part.file);
                    records = rest;
                    inside.iter().for_each(|pieces| layout.free(pieces));
                    assert!(layout.cleared(true));
                }
                _ => {
                    let place = usize::try_from(random.below(records.len() as u64)).expect("small");
                    layout.free(&records.swap_remove(place));
                }
            }
            for file in layout.take_abandoned() {
                layout.removed(file);
            }
        }
        let used: u32 = records.iter().flatten().map(|piece| piece.slots).sum();
        assert!(used <= layout.budget.taken() && layout.budget.taken() <= 2000, "seed {seed}");
        let mut again = Mapped::new(2000, seed % 2 == 0);
        for pieces in &records {
            assert!(again.adopt(pieces), "seed {seed}: {pieces:?}");
            assert!(!again.adopt(pieces), "seed {seed}: twice");
        }
        assert!(again.budget.taken() <= layout.budget.taken(), "seed {seed}");
        for pieces in records {
            again.free(&pieces);
        }
        for file in again.take_abandoned() {
            again.removed(file);
        }
        assert!(again.parts.iter().all(|part| part.slots.is_empty()), "seed {seed}");
        let parts = u32::try_from(again.parts.len()).expect("few");
        assert_eq!(again.budget.taken(), parts * again.part_slots, "seed {seed}");
    }
}
