//! Tests that journals are read correctly, whether they are intact, cut off, damaged, or mixed from
//! two journals.

use super::*;
use crate::cache::purge::rule::Named;

const SERIES: Series = Series { era: 77, set: 5, place: 6 };

fn rules(count: u64) -> Vec<Rule> {
    let names = [
        (Named::Url, "http://a.test/x"),
        (Named::Tag, "red"),
        (Named::Prefix, "http://a.test/"),
        (Named::Site, "http://a.test"),
    ];
    (1..=count)
        .map(|moment| {
            let (named, name) = names[usize::try_from(moment % 4).expect("small")];
            let scope = match moment % 5 {
                0 => Scope::All,
                _ => named.scopes(name).expect("a name")[0],
            };
            let strength = if moment % 3 == 0 { Strength::Hard } else { Strength::Soft };
            Rule { order: Order { scope, strength, at: WallTime(moment * 9) }, moment }
        })
        .collect()
}

/// Creates a journal with an empty first block and one block for each half of the rules.
fn journal(rules: &[Rule]) -> Vec<u8> {
    let mut out = Vec::new();
    let next = append(&mut out, 0, SERIES, 0, &[]);
    let (first, second) = rules.split_at(rules.len() / 2);
    let next = append(&mut out, next, SERIES, first.len() as u64, first);
    append(&mut out, next, SERIES, rules.len() as u64, second);
    out
}

#[test]
fn what_was_written_is_read_back() {
    for count in [0, 1, 2, 20, 400] {
        let rules = rules(count);
        assert_eq!(read(&journal(&rules)), Ok(Journal { series: SERIES, latest: count, rules }));
    }
}

#[test]
fn one_damaged_copy_of_each_block_costs_nothing() {
    let rules = rules(300);
    let mut bytes = journal(&rules);
    for (block, at) in (0..bytes.len() / BLOCK_BYTES).zip([7, 4100, 40, 8191, 30, 2000]) {
        bytes[block * BLOCK_BYTES + at] ^= 0x10;
    }
    assert_eq!(read(&bytes).map(|journal| journal.rules), Ok(rules));
}

#[test]
fn a_tail_torn_anywhere_loses_only_the_block_that_was_being_written() {
    let rules = rules(8);
    let bytes = journal(&rules);
    let whole = bytes.len() - BLOCK_BYTES;
    for length in whole..bytes.len() {
        let expected = if length < whole + PAGE_BYTES { &rules[..4] } else { &rules[..] };
        let found = read(&bytes[..length]).expect("reliable");
        assert_eq!((found.rules.as_slice(), found.series), (expected, SERIES), "cut at {length}");
    }
    let mut zeros = bytes[..whole].to_vec();
    zeros.resize(bytes.len(), 0);
    assert_eq!(read(&zeros).map(|journal| journal.latest), Ok(4));
}

#[test]
fn damage_before_the_tail_is_a_doubt_about_everything() {
    let mut bytes = journal(&rules(8));
    bytes[BLOCK_BYTES + 50] ^= 1;
    bytes[BLOCK_BYTES + PAGE_BYTES + 60] ^= 1;
    assert_eq!(read(&bytes), Err(Unreliable::Damaged));
    let mut headless = journal(&rules(8));
    headless[..BLOCK_BYTES].fill(0);
    assert_eq!(read(&headless), Err(Unreliable::NoBeginning));
    assert_eq!(read(b""), Err(Unreliable::NoBeginning));
    assert_eq!(read(&vec![0x5a; 3 * BLOCK_BYTES]), Err(Unreliable::NoBeginning));
    let mut earlier = journal(&rules(8));
    earlier.chunks_mut(PAGE_BYTES).for_each(|page| page[15] = b'1');
    assert_eq!(read(&earlier), Err(Unreliable::OtherVersion));
}

#[test]
fn blocks_of_two_journals_do_not_make_one() {
    let others =
        [Series { era: 9, ..SERIES }, Series { set: 9, ..SERIES }, Series { place: 9, ..SERIES }];
    for other in others {
        let mut bytes = Vec::new();
        let next = append(&mut bytes, 0, SERIES, 0, &[]);
        append(&mut bytes, next, other, 1, &rules(1));
        assert_eq!(read(&bytes), Err(Unreliable::Damaged));
    }
}

#[test]
fn a_rule_of_an_unknown_kind_is_not_passed_over() {
    let mut bytes = journal(&rules(2));
    for copy in [0, PAGE_BYTES] {
        let page = &mut bytes[BLOCK_BYTES + copy..BLOCK_BYTES + copy + PAGE_BYTES];
        page[HEADER_BYTES] = 99;
        let sum = checksum(page);
        page[..8].copy_from_slice(&sum.to_le_bytes());
    }
    assert_eq!(read(&bytes), Err(Unreliable::Unknown));
}
