//! Tests the places that the layout assigns to files on a simulated disk. No fragment belongs to
//! two files, and the places follow the rules of FFS.

use super::layout::{DiskFull, Extents, Inode, Layout};
use super::profile::DiskProfile;
use foxy_base::Random;
use std::collections::BTreeMap;

const PAGE: u64 = 8192;
const PAGE_FRAGMENTS: u32 = 8;

/// Creates the empty layout of a disk with ten cylinder groups.
fn layout() -> Layout {
    Layout::new(&DiskProfile { cylinders: 160, ..DiskProfile::st15150w() })
}

/// Panics if two files share a fragment of the disk. Returns the number of fragments in use.
fn check_disjoint<'a>(files: impl Iterator<Item = &'a Extents>) -> u64 {
    let all: BTreeMap<u32, u32> =
        files.flat_map(Extents::all).map(|extent| (extent.start, extent.fragments)).collect();
    let ends = all.iter().map(|(start, fragments)| start + fragments);
    for (end, next) in ends.zip(all.keys().skip(1)) {
        assert!(end <= *next, "fragments up to {end} and from {next}");
    }
    all.values().map(|&fragments| u64::from(fragments)).sum()
}

#[test]
fn files_never_share_a_fragment() {
    let mut random = Random::new(11);
    let mut layout = layout();
    let mut files: Vec<(Inode, Extents, u64)> = Vec::new();
    let mut full = 0;
    for step in 0..6000u32 {
        let pick = usize::try_from(random.below(files.len() as u64)).expect("small");
        match random.below(6) {
            0 | 1 => {
                let inode = layout.take_inode(step % 10).expect("inodes are many");
                files.push((inode, Extents::default(), 0));
            }
            2 if files.len() > 700 => {
                let (inode, mut extents, _) = files.swap_remove(pick);
                layout.release(&mut extents);
                layout.give_inode(inode);
            }
            3 if !files.is_empty() => {
                let (_, extents, size) = &mut files[pick];
                layout.trim_tail(extents, *size);
            }
            _ if !files.is_empty() => {
                let (inode, extents, size) = &mut files[pick];
                let end = *size + random.below(300_000) + 1;
                match layout.grow(extents, inode.group, *size / PAGE, (end - 1) / PAGE) {
                    Ok(()) => *size = end,
                    Err(DiskFull) => full += 1,
                }
                let found =
                    (0..*size / PAGE).all(|page| extents.find(page, PAGE_FRAGMENTS).is_some());
                assert!(found, "every page below {size} has a place, step {step}");
            }
            _ => {}
        }
        if step % 100 == 0 {
            check_disjoint(files.iter().map(|(_, extents, _)| extents));
        }
    }
    assert!(full > 0, "the disk was full at some time");
    for (_, extents, _) in &mut files {
        layout.release(extents);
    }
    let mut whole = Extents::default();
    assert_eq!(layout.preallocate(&mut whole, 3, 130 << 20), Ok(()), "all fragments came back");
    assert_eq!(whole.all().len(), 10, "one run a group");
}

#[test]
fn directories_spread_and_their_files_stay_with_them() {
    let mut layout = layout();
    let groups: Vec<u32> =
        (0..10).map(|_| layout.take_directory_inode().expect("room").group).collect();
    assert_eq!(groups, (0..10).collect::<Vec<u32>>());
    let inode = layout.take_inode(7).expect("room");
    let mut extents = Extents::default();
    layout.grow(&mut extents, inode.group, 0, 2).expect("room");
    let distance = extents.all()[0]
        .start
        .abs_diff(u32::try_from(layout.inode_block(inode) / 2).expect("small"));
    assert_eq!((inode.group, extents.all().len()), (7, 1));
    assert!(distance < 1000, "{distance} fragments between inode and data");
}

#[test]
fn small_files_end_in_fragments_and_grow_to_whole_pages() {
    let mut layout = layout();
    let mut files: Vec<Extents> = Vec::new();
    for _ in 0..3 {
        let mut extents = Extents::default();
        layout.grow(&mut extents, 0, 0, 1).expect("room");
        layout.trim_tail(&mut extents, PAGE + 2500);
        assert_eq!(extents.find(1, PAGE_FRAGMENTS).map(|(_, fragments)| fragments), Some(3));
        files.push(extents);
    }
    for extents in &mut files {
        layout.grow(extents, 0, 1, 2).expect("room");
        let fragments =
            [1, 2].map(|page| extents.find(page, PAGE_FRAGMENTS).map(|(_, count)| count));
        assert_eq!(fragments, [Some(8), Some(8)]);
    }
    assert_eq!(check_disjoint(files.iter()), 3 * 24);
}
