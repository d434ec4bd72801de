//! Stores the use counters of records (how often each was requested) on disk, after the segments.
//! While gets change counters, a serving store writes the counters in rounds of small steps. An
//! opening reads them. The counters are only a hint: a torn, old or lost page of counters is
//! ignored. So the writes need no sync and no order.

use crate::layout::PAGE;
use crate::webcosm::context::Context;
use crate::webcosm::format::use_pages::{UsePages, decode};
use crate::webcosm::index::Tag;
use crate::webcosm::pending::Pending;
use crate::webcosm::phase::Phase;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use std::time::Duration;

/// Largest number of pages of use counters that one step reads or writes.
const PAGES_AT_ONCE: u32 = 64;

/// Largest number of index entries that one step of a round visits. Visiting this many entries
/// takes a fraction of a millisecond.
const ENTRIES_AT_ONCE: usize = 64 << 10;

/// Pause between two steps of a round (a pass that writes the use counters once).
const PAUSE: Duration = Duration::from_millis(100);

/// The stage of the work on the use counters on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsesStage {
    /// The counters on disk are not read yet, so they must not be overwritten.
    Unread,
    Idle,
    /// A round is in progress. It continues at this tag (shortened key) in the index and at this
    /// page on disk.
    Round(Tag, u32),
}

/// The progress of reading and writing the use counters on disk.
#[derive(Debug)]
pub struct Uses {
    stage: UsesStage,
    is_moving: bool,
    /// Whether `get` requests have changed use counters since the last round (pass that writes the
    /// counters) started.
    has_changed: bool,
    /// Use counters below this number are not written, so that the larger counters fit in the space
    /// on disk.
    least: u8,
    next: Instant,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            stage: UsesStage::Unread,
            is_moving: false,
            has_changed: false,
            least: 1,
            next: Instant::ZERO,
        }
    }
}

impl Uses {
    const fn wants_round(&self) -> bool {
        match self.stage {
            UsesStage::Unread => false,
            UsesStage::Idle => self.has_changed,
            UsesStage::Round(..) => true,
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        (self.wants_round() && !self.is_moving).then_some(self.next)
    }

    /// Returns whether a closing store still has use counters to write.
    pub const fn is_busy(&self) -> bool {
        self.is_moving || self.wants_round()
    }

    /// Notes that a get changed a use counter in the index.
    pub fn touched(&mut self, cx: &Context) {
        self.has_changed = true;
        cx.index.let_lookups_count(true);
    }

    /// Stops reading use counters from disk. The counters that were not read stay on disk.
    pub const fn stop_reading(&mut self) {
        if matches!(self.stage, UsesStage::Unread) {
            self.is_moving = false;
        }
    }

    /// Starts the regular writing of use counters, after all counters were read from disk. Before
    /// each round, the store waits for the time in the setting `checkpoint_interval`.
    pub fn begin(&mut self, cx: &Context) {
        self.stage = UsesStage::Idle;
        self.next = cx.now + cx.settings.checkpoint_interval;
    }

    /// Continues to read use counters from disk, at page `page` of the area that contains them.
    pub fn read(&mut self, cx: &mut Context, page: u32) {
        let region = cx.geometry.uses();
        let count = region.pages.saturating_sub(page).min(PAGES_AT_ONCE);
        if count == 0 {
            self.is_moving = false;
            return self.begin(cx);
        }
        self.is_moving = true;
        let offset = region.offset() + u64::from(page) * PAGE as u64;
        cx.read(offset, count as usize * PAGE, Pending::ReadUses(page));
    }

    pub fn read_done(&mut self, cx: &mut Context, page: u32, result: Result<IoBuffer, IoError>) {
        if !cx.phase().serves() {
            return;
        }
        let buffer = result.unwrap_or_else(|_| IoBuffer::zeroed(0));
        for page in buffer.as_ref().chunks_exact(PAGE) {
            let Some(entries) = decode(page, cx.secret()) else { continue };
            if entries.is_empty() {
                self.is_moving = false;
                return self.begin(cx);
            }
            entries.into_iter().for_each(|(tag, uses)| cx.index.add_uses(tag, uses));
        }
        self.read(cx, page + PAGES_AT_ONCE);
    }

    /// Takes the next step of writing use counters if it is due. A closing store does not pause
    /// between steps.
    pub fn pump(&mut self, cx: &mut Context) {
        let is_early = self.next > cx.now && cx.phase() != Phase::Closing;
        if self.is_moving || !self.wants_round() || is_early {
            return;
        }
        let region = cx.geometry.uses();
        let (tag, page) = match self.stage {
            UsesStage::Round(tag, page) => (tag, page),
            _ => {
                self.has_changed = false;
                cx.index.let_lookups_count(false);
                (Tag(0), 0)
            }
        };
        if region.pages == 0 {
            return self.begin(cx);
        }
        let room = (region.pages - page).saturating_sub(1).min(PAGES_AT_ONCE);
        let mut pages = UsePages::new(room as usize);
        let next = cx.index.used_from(tag, self.least, ENTRIES_AT_ONCE, |tag, uses| {
            pages.add(tag, uses, cx.secret())
        });
        let is_full = room < PAGES_AT_ONCE && pages.is_full();
        let mut bytes = pages.finish(cx.secret());
        let written = page + (bytes.len() / PAGE) as u32;
        let pause = match next.filter(|_| !is_full) {
            Some(tag) => {
                self.stage = UsesStage::Round(tag, written);
                PAUSE
            }
            None => {
                bytes.extend_from_slice(&UsePages::new(1).end(cx.secret()));
                self.least = least_after(self.least, is_full, written, region.pages);
                self.stage = UsesStage::Idle;
                cx.settings.checkpoint_interval
            }
        };
        self.next = cx.now + pause;
        if !bytes.is_empty() {
            self.is_moving = true;
            let offset = region.offset() + u64::from(page) * PAGE as u64;
            cx.write(offset, IoBuffer::copy_of(&bytes), Pending::WriteUses);
        }
    }

    /// Processes the result of writing use counters. After a failed write, a new round writes the
    /// counters again, except in a closing store.
    pub fn written(&mut self, cx: &Context, result: Result<(), IoError>) {
        self.is_moving = false;
        if result.is_err() {
            self.has_changed = cx.phase() != Phase::Closing;
            self.begin(cx);
        }
    }
}

/// Returns the smallest use counter that the next round writes. The number rises if some counters
/// did not fit, and falls if much space was left.
fn least_after(least: u8, is_full: bool, written: u32, pages: u32) -> u8 {
    if is_full {
        (least + 1).min(crate::worth::MAX_USES)
    } else if written < pages / 4 {
        least.saturating_sub(1).max(1)
    } else {
        least
    }
}

#[cfg(test)]
mod tests {
    use super::least_after;

    #[test]
    fn fewer_uses_are_written_when_they_do_not_fit_and_more_when_there_is_room() {
        assert_eq!((least_after(1, true, 9, 10), least_after(3, true, 9, 10)), (2, 3));
        assert_eq!((least_after(3, false, 1, 10), least_after(1, false, 0, 10)), (2, 1));
    }
}
