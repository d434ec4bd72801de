//! The uses of records on disk, so that what was asked for often is still known to be after an
//! opening: what the file has left behind its segments, written in rounds of small steps while the
//! store serves. It is a hint: a page of it that is torn, old or lost says nothing, and no write
//! waits for another.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::webcosm::Webcosm;
use crate::webcosm::format::use_pages::{Pages, decode};
use crate::webcosm::index::Tag;
use crate::webcosm::io::Pending;
use crate::webcosm::recovery::phase::Phase;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use std::time::Duration;

/// Pages read or written at once.
const PAGES: u32 = 64;

/// Entries of the index looked at for one step: a fraction of a millisecond.
const LOOKED_AT: usize = 64 << 10;

/// Between two steps of a round.
const PAUSE: Duration = Duration::from_millis(100);

/// How far the knowledge of uses is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UsesStage {
    /// Not read yet; nothing is written over it.
    #[default]
    Unread,
    /// Nothing is under way.
    Idle,
    /// A round goes on at this tag and this page.
    Round(Tag, u32),
}

/// What is under way.
#[derive(Debug)]
pub struct Uses {
    stage: UsesStage,
    moving: bool,
    /// Uses were counted since the last round began.
    pub changed: bool,
    /// Only records with as many uses are written, so that they fit.
    least: u8,
    next: Instant,
}

impl Default for Uses {
    fn default() -> Self {
        Self {
            stage: UsesStage::Unread,
            moving: false,
            changed: false,
            least: 1,
            next: Instant::ZERO,
        }
    }
}

impl Uses {
    const fn wants_round(&self) -> bool {
        match self.stage {
            UsesStage::Unread => false,
            UsesStage::Idle => self.changed,
            UsesStage::Round(..) => true,
        }
    }

    /// When there is something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        (self.wants_round() && !self.moving).then_some(self.next)
    }

    /// Whether a closing store has uses to write.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.moving || self.wants_round()
    }

    /// No more is read; what was not read is not written over.
    pub const fn stop_reading(&mut self) {
        if matches!(self.stage, UsesStage::Unread) {
            self.moving = false;
        }
    }
}

impl Webcosm {
    /// What was written is known; the next round begins when its time has come.
    pub(crate) fn begin_uses(&mut self, now: Instant) {
        self.uses.stage = UsesStage::Idle;
        self.uses.next = now + self.settings.checkpoint_interval;
    }

    /// Reads on, from a page of the region.
    pub(crate) fn read_uses(&mut self, page: u32, now: Instant, out: &mut Outbox) {
        let region = self.geometry.uses();
        let count = region.pages.saturating_sub(page).min(PAGES);
        if count == 0 {
            self.uses.moving = false;
            return self.begin_uses(now);
        }
        self.uses.moving = true;
        let offset = region.offset() + u64::from(page) * PAGE as u64;
        self.file.read(offset, count as usize * PAGE, Pending::ReadUses(page), out);
    }

    pub(crate) fn uses_read(
        &mut self,
        page: u32,
        result: Result<IoBuffer, IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if !self.life.phase().serves() {
            return;
        }
        let buffer = result.unwrap_or_else(|_| IoBuffer::zeroed(0));
        for page in buffer.as_ref().chunks_exact(PAGE) {
            let Some(entries) = decode(page, self.file.secret()) else { continue };
            if entries.is_empty() {
                self.uses.moving = false;
                return self.begin_uses(now);
            }
            entries.into_iter().for_each(|(tag, uses)| self.index.add_uses(tag, uses));
        }
        self.read_uses(page + PAGES, now, out);
    }

    /// Takes the next step of a round that is due. A closing store does not pause between steps.
    pub(crate) fn pump_uses(&mut self, now: Instant, out: &mut Outbox) {
        let closing = self.life.phase() == Phase::Closing;
        if self.uses.moving || !self.uses.wants_round() || self.uses.next > now && !closing {
            return;
        }
        let region = self.geometry.uses();
        let (tag, page) = match self.uses.stage {
            UsesStage::Round(tag, page) => (tag, page),
            _ => {
                self.uses.changed = false;
                self.index.let_looks_count(false);
                (Tag(0), 0)
            }
        };
        if region.pages == 0 {
            return self.begin_uses(now);
        }
        let room = (region.pages - page).saturating_sub(1).min(PAGES);
        let mut pages = Pages::new(room as usize);
        let next = self.index.used_from(tag, self.uses.least, LOOKED_AT, |tag, uses| {
            pages.add(tag, uses, self.file.secret())
        });
        let full = room < PAGES && pages.is_full();
        let mut bytes = pages.finish(self.file.secret());
        let written = page + (bytes.len() / PAGE) as u32;
        self.uses.stage = match next.filter(|_| !full) {
            Some(tag) => UsesStage::Round(tag, written),
            None => {
                bytes.extend_from_slice(&Pages::new(1).end(self.file.secret()));
                self.uses.least = least_after(self.uses.least, full, written, region.pages);
                UsesStage::Idle
            }
        };
        let pause = if self.uses.stage == UsesStage::Idle {
            self.settings.checkpoint_interval
        } else {
            PAUSE
        };
        self.uses.next = now + pause;
        if !bytes.is_empty() {
            self.uses.moving = true;
            let offset = region.offset() + u64::from(page) * PAGE as u64;
            self.file.write(offset, IoBuffer::copy_of(&bytes), Pending::WriteUses, out);
        }
    }

    /// What could not be written is written in the next round; a store that closes does not try
    /// again.
    pub(crate) fn uses_written(&mut self, result: Result<(), IoError>, now: Instant) {
        self.uses.moving = false;
        if result.is_err() {
            self.uses.changed = self.life.phase() != Phase::Closing;
            self.begin_uses(now);
        }
    }
}

/// The least uses to be written in the next round: more when they did not all fit, fewer when there
/// was much room.
fn least_after(least: u8, full: bool, written: u32, pages: u32) -> u8 {
    if full {
        (least + 1).min(crate::worth::MOST_USES)
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
