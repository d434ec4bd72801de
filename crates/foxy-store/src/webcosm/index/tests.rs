//! Compares the index with a plain map: entries, counts and memory.

use super::*;
use foxy_base::Random;
use std::collections::BTreeMap;

fn known(place: u64, pages: u32) -> IndexEntry {
    IndexEntry { place, extent: Extent::Pages(pages), uses: 0 }
}

#[test]
fn it_agrees_with_a_plain_map_and_stays_within_ten_bytes_a_record() {
    let mut random = Random::new(1);
    let (mut index, mut map) = (Index::new(4), BTreeMap::new());
    for step in 0..60_000 {
        let tag = index.tag(random.next_u64());
        let entry = known(step, 1 + (step % 30) as u32);
        if step % 2 == 0 {
            index.insert(tag, entry);
            map.insert(tag, step);
        } else {
            index.insert_if_absent(tag, entry);
            map.entry(tag).or_insert(step);
        }
        index.insert_if_absent(tag, known(step + 1, 1));
        if step % 3 == 0 {
            let (&tag, &place) = map.iter().next().expect("something is in");
            assert!(!index.remove_at(tag, place + 1), "another record of the tag is left alone");
            assert!(index.remove_at(tag, place));
            map.remove(&tag);
        }
    }
    assert_eq!(index.len(), map.len() as u64);
    for (&tag, &place) in &map {
        assert_eq!(index.get(tag), Some(known(place, 1 + (place % 30) as u32)));
    }
    assert!(index.memory() < 10 * index.len(), "{} bytes for {}", index.memory(), index.len());
    let gone = map.values().filter(|&&place| place < 40_000).count() as u64;
    let (mut next, mut calls) = (Some(0), 0);
    while let Some(from) = next {
        next = index.remove_range(&(0..40_000), from, &mut 5_000);
        calls += 1;
    }
    assert!(calls > 3, "a part of the entries is looked at each time: {calls}");
    assert_eq!(index.len(), map.len() as u64 - gone);
}

#[test]
fn uses_are_counted_up_to_their_limit() {
    let mut index = Index::new(2);
    let tag = index.tag(77 << 40);
    index.touch(tag);
    assert_eq!(index.get(tag), None);
    index.insert(tag, known(5, 3));
    for expected in [1, 2, 3, 3] {
        index.touch(tag);
        assert_eq!(index.get(tag).map(|known| known.uses), Some(expected));
    }
    assert_eq!(
        index.get(tag).map(|known| (known.place, known.extent)),
        Some((5, Extent::Pages(3)))
    );
}

#[test]
fn a_class_never_stands_for_fewer_pages_than_it_was_made_from() {
    for pages in 1..=MAX_RECORD_PAGES {
        let read = Extent::of_class(Extent::Pages(pages).class()).pages();
        assert!((pages..pages + CLASS_STEP).contains(&read), "{pages} {read}");
    }
    assert_eq!(Extent::of_class(Extent::Packed.class()), Extent::Packed);
}
