//! Counts the live records on each page of the record area, which is the part of the store's file
//! with records. Also finds the next free run (contiguous pages without a live record). The search
//! is cyclic: after the last page it continues at the first page.

use foxy_store::layout::PAGE;

/// The number of live records on each page, one byte per page.
#[derive(Debug)]
pub struct Pages {
    uses: Vec<u8>,
    retired: u32,
    cursor: u32,
}

const RETIRED: u8 = u8::MAX;

/// Maximum number of pages that one search for a free run visits, so that a put takes a bounded
/// time.
const MAX_SEARCHED_PAGES: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u32,
    pub pages: u32,
}

impl Run {
    pub const fn end(self) -> u32 {
        self.first + self.pages
    }

    pub const fn bytes(self) -> usize {
        self.pages as usize * PAGE
    }

    pub const fn overlaps(self, other: Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

impl Pages {
    pub fn new(count: u32) -> Self {
        Self { uses: vec![0; count as usize], retired: 0, cursor: 0 }
    }

    pub fn count(&self) -> u32 {
        u32::try_from(self.uses.len()).expect("made from a u32")
    }

    /// Returns the number of permanently unusable pages.
    pub const fn retired(&self) -> u32 {
        self.retired
    }

    pub fn is_retired(&self, page: u32) -> bool {
        self.uses[page as usize] == RETIRED
    }

    /// Counts one more live record on each page of `run` (adjacent pages).
    pub fn occupy(&mut self, run: Run) {
        for uses in &mut self.uses[run.first as usize..run.end() as usize] {
            if *uses != RETIRED {
                *uses += 1;
            }
        }
    }

    /// Counts one live record less on each page of `run` (adjacent pages).
    pub fn release(&mut self, run: Run) {
        for uses in &mut self.uses[run.first as usize..run.end() as usize] {
            if *uses != RETIRED {
                *uses -= 1;
            }
        }
    }

    /// Marks the pages of `run` (adjacent pages) as permanently unusable, because a write to them
    /// failed.
    pub fn retire(&mut self, run: Run) {
        for uses in &mut self.uses[run.first as usize..run.end() as usize] {
            self.retired += u32::from(*uses != RETIRED);
            *uses = RETIRED;
        }
    }

    /// Returns the page at which the next search for free pages starts.
    pub const fn cursor(&self) -> u32 {
        self.cursor
    }

    pub fn move_cursor(&mut self, page: u32) {
        self.cursor = if page >= self.count() { 0 } else { page };
    }

    /// Returns the next run of `least` to `most` adjacent free pages. The run contains no page of
    /// `busy`, the runs whose writes are in flight. The search starts at the cursor, where the last
    /// run ended. Returns `None` after [`MAX_SEARCHED_PAGES`] pages without such a run.
    pub fn next_free(&self, least: u32, most: u32, busy: &[Run]) -> Option<Run> {
        let count = self.count();
        let mut at = self.cursor;
        let mut seen = 0;
        while seen < MAX_SEARCHED_PAGES.min(self.uses.len()) {
            let Some(skip) = memchr::memchr(0, &self.uses[at as usize..]) else {
                seen += (count - at) as usize;
                at = 0;
                continue;
            };
            let first = at + u32::try_from(skip).expect("within the pages");
            let limit = first.saturating_add(most).min(count);
            let length = self.uses[first as usize..limit as usize]
                .iter()
                .take_while(|&&uses| uses == 0)
                .count();
            let run = Run { first, pages: u32::try_from(length).expect("at most `most`") };
            let run = Self::cut(run, busy);
            if run.pages >= least {
                return Some(run);
            }
            let blocked =
                busy.iter().find(|other| other.first <= run.end() && run.end() < other.end());
            let next = blocked.map_or(run.end(), |other| other.end()).max(first + 1);
            seen += (next - at) as usize;
            at = if next >= count { 0 } else { next };
        }
        None
    }

    /// Shortens `run` (adjacent pages) so that it ends before its first page in `busy`, the pages
    /// whose writes are in flight.
    fn cut(run: Run, busy: &[Run]) -> Run {
        let end = busy
            .iter()
            .filter(|other| other.overlaps(run))
            .map(|other| other.first.max(run.first))
            .min();
        Run { first: run.first, pages: end.unwrap_or(run.end()) - run.first }
    }

    /// Returns the next `length` adjacent usable pages that are not in `busy`. The search starts at
    /// the cursor. These pages may contain live records, which the caller then evicts.
    pub fn next_usable(&self, length: u32, busy: &[Run]) -> Option<Run> {
        let count = self.count();
        let (mut first, mut seen) = (self.cursor, 0);
        while length > 0 && length <= count && seen <= u64::from(count) + u64::from(length) {
            let run = Run { first, pages: length };
            let next = if run.end() > count {
                count
            } else if let Some(other) = busy.iter().find(|other| other.overlaps(run)) {
                other.end()
            } else if let Some(bad) =
                memchr::memrchr(RETIRED, &self.uses[first as usize..run.end() as usize])
            {
                first + u32::try_from(bad).expect("within the run") + 1
            } else {
                return Some(run);
            };
            seen += u64::from(next.max(first + 1) - first);
            first = if next >= count { 0 } else { next };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn run(first: u32, pages: u32) -> Run {
        Run { first, pages }
    }

    #[test]
    fn the_search_wraps_around_from_the_cursor_and_skips_used_pages() {
        let mut pages = Pages::new(10);
        pages.occupy(run(2, 2));
        assert_eq!(pages.next_free(1, 8, &[]), Some(run(0, 2)));
        assert_eq!(pages.next_free(3, 8, &[]), Some(run(4, 6)));
        assert_eq!(pages.next_free(3, 4, &[]), Some(run(4, 4)));
        pages.move_cursor(8);
        assert_eq!(pages.next_free(1, 8, &[]), Some(run(8, 2)));
        assert_eq!(pages.next_free(3, 8, &[]), Some(run(4, 6)));
        assert_eq!(pages.next_free(7, 8, &[]), None);
        pages.move_cursor(10);
        assert_eq!(pages.cursor, 0);
    }

    #[test]
    fn busy_and_retired_pages_are_never_given() {
        let mut pages = Pages::new(10);
        assert_eq!(pages.next_free(3, 8, &[run(2, 3)]), Some(run(5, 5)));
        assert_eq!(pages.next_usable(3, &[run(2, 3)]), Some(run(5, 3)));
        pages.retire(run(6, 1));
        assert_eq!((pages.next_usable(4, &[run(2, 3)]), pages.retired()), (None, 1));
        assert_eq!(pages.next_usable(3, &[run(2, 3)]), Some(run(7, 3)));
    }

    #[test]
    fn every_run_given_is_free_and_searches_end() {
        let mut random = Random::new(5);
        for round in 0..2000 {
            let mut pages = Pages::new(40);
            for _ in 0..random.below(20) {
                let from = u32::try_from(random.below(40)).expect("small");
                pages.occupy(run(from, 2.min(40 - from)));
            }
            let busy = [run(u32::try_from(random.below(38)).expect("small"), 2)];
            pages.move_cursor(u32::try_from(random.below(40)).expect("small"));
            let least = 1 + u32::try_from(random.below(6)).expect("small");
            let free =
                |page: u32| pages.uses[page as usize] == 0 && !busy[0].overlaps(run(page, 1));
            let fits = |first: u32| first + least <= 40 && (first..first + least).all(free);
            let exists = (0..40).any(fits);
            match pages.next_free(least, 8, &busy) {
                Some(found) => {
                    assert!((found.first..found.end()).all(free), "round {round}: {found:?}");
                    assert!(found.pages >= least && found.pages <= 8, "round {round}");
                }
                None => assert!(!exists || pages.cursor > 0, "round {round}: least {least}"),
            }
        }
    }
}
