//! How a batch of records is laid out before it is written: large ones one after the other, small ones together in pages
//! so that little of a page is left over. It moves no bytes.

use super::packed::ROOM;
use crate::layout::PAGE;
use crate::record::HEADER;
use std::collections::BTreeSet;

/// Where the records of a batch go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Records on their own: which, and at which byte of the batch.
    pub runs: Vec<(usize, usize)>,
    /// Pages that these take, from the first of the batch.
    pub run_pages: u32,
    /// The pages after those, and which records are in each.
    pub packed: Vec<Vec<usize>>,
}

impl Plan {
    /// Pages of the whole batch.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.run_pages + u32::try_from(self.packed.len()).expect("batches are limited")
    }
}

/// Lays records out: of each, its length and what it costs in a page with others. Records that fit a page share pages,
/// each into the fullest it still fits, the largest first; one that would leave more than a fifth of a page unused
/// goes on its own instead.
#[must_use]
pub fn plan(records: &[(usize, usize)], granule: usize) -> Plan {
    let small = |&number: &usize| records[number].1 <= ROOM;
    let (mut shared, mut alone): (Vec<usize>, Vec<usize>) = (0..records.len()).partition(small);
    shared.sort_by_key(|&number| (std::cmp::Reverse(records[number].1), number));
    let mut pages: Vec<Vec<usize>> = Vec::new();
    let mut free = BTreeSet::new();
    for number in shared {
        let cost = records[number].1;
        let fullest = free.range((cost, 0)..).next().copied();
        let (room, page) = fullest.unwrap_or((ROOM, pages.len()));
        match fullest {
            Some(entry) => drop(free.remove(&entry)),
            None => pages.push(Vec::new()),
        }
        pages[page].push(number);
        free.insert((room - cost, page));
    }
    let (packed, lonely): (Vec<_>, Vec<_>) = pages
        .into_iter()
        .partition(|page| page.len() > 1 || !(ROOM / 2..ROOM / 5 * 4).contains(&records[page[0]].1));
    alone.extend(lonely.into_iter().flatten());
    alone.sort_unstable();
    let mut at = 0;
    let runs: Vec<_> = alone
        .into_iter()
        .map(|number| {
            let start = at;
            at = (start + HEADER + records[number].0).next_multiple_of(granule);
            (number, start)
        })
        .collect();
    let run_pages = u32::try_from(at.div_ceil(PAGE)).expect("batches are limited");
    Plan { runs, run_pages, packed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn planned(lengths: &[usize]) -> (Plan, usize) {
        let records: Vec<_> = lengths.iter().map(|&length| (length, length + 20)).collect();
        (plan(&records, 64), lengths.iter().sum())
    }

    #[test]
    fn every_record_has_one_place_and_nothing_overlaps() {
        let mut random = Random::new(5);
        let lengths: Vec<_> = (0..300).map(|_| random.below(12_000) as usize).collect();
        let (plan, _) = planned(&lengths);
        let mut seen: Vec<_> = plan.packed.iter().flatten().copied().collect();
        for page in &plan.packed {
            assert!(page.iter().map(|&number| lengths[number] + 20).sum::<usize>() <= ROOM);
        }
        let mut end = 0;
        for &(number, start) in &plan.runs {
            assert!(start >= end && start % 64 == 0);
            end = start + HEADER + lengths[number];
            seen.push(number);
        }
        assert!(end <= plan.run_pages as usize * PAGE);
        seen.sort_unstable();
        assert_eq!(seen, (0..300).collect::<Vec<_>>());
    }

    #[test]
    fn little_space_is_lost_whatever_the_sizes() {
        let mut random = Random::new(6);
        let mut share = |count: usize, most: u64| {
            let lengths: Vec<_> = (0..count).map(|_| 1 + random.below(most) as usize).collect();
            let (plan, bytes) = planned(&lengths);
            plan.pages() as f64 * PAGE as f64 / bytes as f64
        };
        assert!(share(400, 4000) < 1.06, "web objects below a page");
        assert!(share(30, 64_000) < 1.03, "larger ones");
        for length in [250, 2_100, 2_900, 4_000] {
            let (plan, bytes) = planned(&vec![length; 256 * 1024 / length]);
            let share = plan.pages() as f64 * PAGE as f64 / bytes as f64;
            assert!(share < 1.11, "{length}: {share}");
        }
    }

    #[test]
    fn an_empty_batch_takes_nothing() {
        assert_eq!(planned(&[]).0, Plan::default());
    }
}
