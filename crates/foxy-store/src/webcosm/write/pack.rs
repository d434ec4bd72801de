//! Plans where the records of a batch are placed: large records follow each other, and small
//! records share pages. This module copies no bytes.

use crate::layout::PAGE;
use crate::record::HEADER;
use crate::webcosm::format::packed::ROOM;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A shared page with at least this many used bytes counts as full. Records in a page with fewer
/// used bytes may wait for the next batch.
const FULL_BYTES: usize = ROOM / 10 * 9;

/// At most 1/`MAX_EXTRA_PAGES_SHARE` of the pages in a batch are extra pages. Extra pages are used
/// so that a record smaller than a page has its own page, instead of crossing into a second page.
const MAX_EXTRA_PAGES_SHARE: usize = 8;

/// The sizes of one record, from which the layout of a batch is planned.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Number of bytes in head and body of the record.
    pub length: usize,
    /// Number of bytes that the record needs in a page that it shares with other records.
    pub cost: usize,
    /// Whether the record may be left for the next batch to fill pages better.
    pub may_wait: bool,
}

impl Measured {
    /// Returns the bytes that the record needs outside of shared pages, rounded up to whole
    /// granules.
    const fn alone(&self, granule: usize) -> usize {
        (HEADER + self.length).next_multiple_of(granule)
    }
}

/// Returns how many of the first `records` fit in `room` bytes, one after another.
pub fn fitting(records: &[Measured], granule: usize, room: usize) -> usize {
    let taken = records.iter().scan(0, |end, record| {
        *end += record.alone(granule);
        Some(*end)
    });
    taken.take_while(|&end| end <= room).count()
}

/// The planned layout of a batch. A record is identified by its index in the batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The records that follow each other outside of shared pages. Each element is a record's index
    /// and its byte offset in the batch.
    pub runs: Vec<(usize, usize)>,
    /// Number of pages at the start of the batch for the records in `runs`.
    pub run_pages: u32,
    /// The shared pages, which follow the pages of `runs`. Each element lists the records of one
    /// page.
    pub packed: Vec<Vec<usize>>,
    /// Records that are left for the next batch, in their original order.
    pub left: Vec<usize>,
}

impl Plan {
    pub fn pages(&self) -> u32 {
        self.run_pages + u32::try_from(self.packed.len()).expect("batches are limited")
    }

    /// Shortens the plan to `room` pages. Keeps all records in `runs` and the fullest shared pages.
    /// Returns `None` if `runs` does not fit or no page remains.
    pub fn within(mut self, room: u32, records: &[Measured]) -> Option<Self> {
        let rest = room.checked_sub(self.run_pages)? as usize;
        if self.packed.len() > rest {
            self.packed.sort_by_cached_key(|page| Reverse(used(records, page)));
            self.left.extend(self.packed.drain(rest..).flatten());
            self.left.sort_unstable();
        }
        (self.pages() > 0).then_some(self)
    }
}

/// Returns the number of used bytes in a page that the listed records share.
fn used(records: &[Measured], page: &[usize]) -> usize {
    page.iter().map(|&number| records[number].cost).sum()
}

/// Plans the layout of a batch. Records that fit in a page share pages. The records of the emptiest
/// pages are left for the next batch, up to `patience` bytes in total.
///
/// A small record alone in its page may leave more than a fifth of the page unused. If there are
/// few such records, each keeps its page, so that a get reads only one page. Otherwise these
/// records are placed after the large records, where records follow each other and cross pages. The
/// last of these records are also left for the next batch if this leaves less unused space in the
/// last page.
pub fn plan(records: &[Measured], granule: usize, patience: usize) -> Plan {
    let (small, mut alone): (Vec<_>, Vec<_>) =
        (0..records.len()).partition(|&number| records[number].cost <= ROOM);
    let mut pages = share(records, small);
    let mut left = leave(records, &mut pages, patience);
    let taken = |number: usize| records[number].alone(granule);
    let (mut packed, lonely): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| {
        page.len() > 1 || !(ROOM / 2..ROOM / 5 * 4).contains(&records[page[0]].cost)
    });
    let bytes: usize = alone.iter().map(|&number| taken(number)).sum();
    let more: usize = lonely.iter().flatten().map(|&number| taken(number)).sum();
    let (paged, run) = (lonely.len() + bytes.div_ceil(PAGE), (bytes + more).div_ceil(PAGE));
    if paged.saturating_sub(run) * MAX_EXTRA_PAGES_SHARE > packed.len() + paged {
        alone.extend(lonely.into_iter().flatten());
        alone.sort_unstable();
    } else {
        packed.extend(lonely);
    }
    let mut at = 0;
    let mut runs = Vec::with_capacity(alone.len());
    for number in alone {
        runs.push((number, at));
        at += taken(number);
    }
    let patience = patience.saturating_sub(left.iter().map(|&number| records[number].cost).sum());
    let (kept, at) = cut(records, &runs, at, patience);
    left.extend(runs.drain(kept..).map(|(number, _)| number));
    left.sort_unstable();
    Plan {
        runs,
        run_pages: u32::try_from(at.div_ceil(PAGE)).expect("batches are limited"),
        packed,
        left,
    }
}

/// Decides how many of the records in `runs` to keep, so that the smallest share of their pages is
/// unused. Returns their number and the byte offset where they end. Only records that may wait are
/// dropped, with at most `patience` bytes in total.
fn cut(
    records: &[Measured],
    runs: &[(usize, usize)],
    end: usize,
    patience: usize,
) -> (usize, usize) {
    let lost = |end: usize| end.next_multiple_of(PAGE) - end;
    let (mut best, mut bytes) = ((runs.len(), end), 0);
    for (kept, &(number, at)) in runs.iter().enumerate().skip(1).rev() {
        bytes += records[number].cost;
        if bytes > patience || !records[number].may_wait {
            break;
        }
        // Compares two fractions (unused bytes divided by used bytes) without a division.
        if lost(at) * best.1 < lost(best.1) * at {
            best = (kept, at);
        }
    }
    best
}

/// Distributes small records over shared pages. The largest record comes first, and each goes into
/// the fullest page that has enough space.
fn share(records: &[Measured], mut small: Vec<usize>) -> Vec<Vec<usize>> {
    small.sort_by_key(|&number| (Reverse(records[number].cost), number));
    let mut pages: Vec<Vec<usize>> = Vec::new();
    let mut free = BTreeSet::new();
    for number in small {
        let cost = records[number].cost;
        let fullest = free.range((cost, 0)..).next().copied();
        let (room, page) = fullest.unwrap_or((ROOM, pages.len()));
        match fullest {
            Some(entry) => drop(free.remove(&entry)),
            None => pages.push(Vec::new()),
        }
        pages[page].push(number);
        free.insert((room - cost, page));
    }
    pages
}

/// Removes the emptiest shared pages from the plan, with at most `patience` used bytes in total.
/// Removes a page only if all of its records may wait. Returns the removed records.
fn leave(records: &[Measured], pages: &mut Vec<Vec<usize>>, patience: usize) -> Vec<usize> {
    if patience == 0 {
        return Vec::new();
    }
    pages.sort_by_cached_key(|page| used(records, page));
    let (mut left, mut bytes) = (Vec::new(), 0);
    pages.retain(|page| {
        let used = used(records, page);
        let stays = used >= FULL_BYTES
            || bytes + used > patience
            || page.iter().any(|&number| !records[number].may_wait);
        if !stays {
            bytes += used;
            left.extend_from_slice(page);
        }
        stays
    });
    left.sort_unstable();
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn measured(lengths: &[usize]) -> Vec<Measured> {
        let measured = |&length: &usize| Measured { length, cost: length + 20, may_wait: true };
        lengths.iter().map(measured).collect()
    }

    fn planned(lengths: &[usize]) -> (Plan, usize) {
        (plan(&measured(lengths), 64, 0), lengths.iter().sum())
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
            (plan.pages() as f64 * PAGE as f64 / bytes as f64, plan.runs.len())
        };
        let (below, crossing) = share(400, 4000);
        assert!(
            below < 1.065 && crossing == 0,
            "below a page, each in one, none left: {below} {crossing}"
        );
        assert!(share(30, 64_000).0 < 1.03, "larger ones");
        for length in [250, 2_100, 2_900, 4_000] {
            let (plan, bytes) = planned(&vec![length; 256 * 1024 / length]);
            let share = plan.pages() as f64 * PAGE as f64 / bytes as f64;
            assert!(share < 1.11, "{length}: {share}");
        }
    }

    #[test]
    fn badly_filled_pages_are_left_for_the_next_batch() {
        let mut random = Random::new(7);
        let (mut waiting, mut bytes, mut pages) = (Vec::new(), 0, 0);
        for _ in 0..200 {
            let mut lengths: Vec<usize> = std::mem::take(&mut waiting);
            while lengths.iter().sum::<usize>() < 256 << 10 {
                lengths.push(100 + random.below(3_900) as usize);
            }
            let plan = plan(&measured(&lengths), 64, 64 << 10);
            assert!(plan.left.is_sorted() && plan.runs.is_empty(), "{:?}", plan.runs);
            waiting.extend(plan.left.iter().map(|&number| lengths[number]));
            assert!(waiting.iter().map(|length| length + 20).sum::<usize>() <= 64 << 10);
            bytes += lengths.iter().sum::<usize>() - waiting.iter().sum::<usize>();
            pages += plan.pages() as usize;
        }
        let space = pages as f64 * PAGE as f64 / bytes as f64;
        assert!(space < 1.045, "{space}");
    }

    #[test]
    fn the_end_of_a_run_is_left_when_the_rest_fills_its_pages_better() {
        let row = |count| measured(&vec![8_440; count]);
        let plan_of = |records: &[Measured], patience| {
            let plan = plan(records, 64, patience);
            (plan.runs.len(), plan.run_pages, plan.left)
        };
        let whole = row(31);
        assert_eq!(plan_of(&whole, 0), (31, 65, vec![]));
        assert_eq!(plan_of(&whole, 64 << 10), (25, 52, vec![25, 26, 27, 28, 29, 30]));
        assert_eq!(plan_of(&whole, 5 * 8_460), (31, 65, vec![]));
        let mut one_stays = row(31);
        one_stays[27].may_wait = false;
        assert_eq!(plan_of(&one_stays, 64 << 10), (31, 65, vec![]));
        assert_eq!(plan_of(&row(1), 64 << 10), (1, 3, vec![]));
    }

    #[test]
    fn records_that_may_not_wait_are_not_left() {
        let mut records = measured(&[2_500, 900, 3_990, 2_600]);
        assert_eq!(plan(&records, 64, 64 << 10).left, [0, 1, 3]);
        assert_eq!(plan(&records, 64, 3_000).left, [0]);
        records[1].may_wait = false;
        assert_eq!(plan(&records, 64, 64 << 10).left, [0]);
        let within = |room| plan(&records, 64, 0).within(room, &records);
        assert_eq!(within(2).map(|plan| (plan.pages(), plan.left)), Some((2, vec![0])));
        assert_eq!((within(9).map(|plan| plan.pages()), within(0)), (Some(3), None));
    }

    #[test]
    fn an_empty_batch_takes_nothing() {
        assert_eq!(planned(&[]).0, Plan::default());
    }
}
