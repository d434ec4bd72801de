//! Puts, and the batches in which records reach the disk.

pub(crate) mod deferred;
pub(crate) mod in_flight;
pub(crate) mod log;
pub(crate) mod pack;
pub(crate) mod seal;
pub(crate) mod write_budget;
pub(crate) mod write_buffer;

use crate::contract::{Answer, Key, Outbox, PlacementHint, Record, RefusedReason, Ticket};
use crate::layout::PAGE;
use crate::record::{self, HEADER};
use crate::settings::RECORD_BODY_LIMIT;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Position, Segment};
use crate::webcosm::format::packed;
use crate::webcosm::format::summary::{Listed, pages_for};
use crate::webcosm::index::{Extent, Known, MOST_PAGES, Tag};
use crate::webcosm::io::Pending;
use crate::webcosm::reclaim::copy::Copy;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::tombstones::Wanted;
use crate::webcosm::write::in_flight::{Batch, Item, Origin};
use crate::webcosm::write::pack::{Measured, Plan};
use crate::webcosm::write::write_buffer::Staged;
use crate::worth::Distance;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError, IoId};

/// The share of a whole batch, as a divisor, that may be left for the next one.
const PATIENCE: usize = 4;

/// A segment that is being written.
#[derive(Debug)]
pub struct OpenSegment {
    /// Which it is.
    pub segment: Segment,
    /// Its first page that is not taken.
    pub page: u32,
    /// The records in it, in the order of writing.
    pub records: Vec<Listed>,
}

/// How many of the first records take no more than so many bytes, one behind the other.
fn fitting(records: &[Measured], granule: usize, room: usize) -> usize {
    let taken = records.iter().scan(0, |end, record| {
        *end += record.alone(granule);
        Some(*end)
    });
    taken.take_while(|&end| end <= room).count()
}

impl Webcosm {
    /// Stores at once (`Some`), or later through the journal (`None`).
    pub(crate) fn put(
        &mut self,
        ticket: Ticket,
        key: Key,
        record: Record,
        hint: PlacementHint,
        now: Instant,
    ) -> Result<Option<Answer>, RefusedReason> {
        if !self.life.phase().serves() {
            return Err(self.life.unable().1);
        }
        let whole = hint.size.max(record.len() as u64);
        let pages = (HEADER + record.len()).div_ceil(PAGE);
        let alone = self.geometry.segment_pages - pages_for(1, 1);
        let most = alone.min(MOST_PAGES - 1) as usize;
        let limit = self.settings.object_limit.min(self.geometry.largest_object());
        if !record.is_within_limits() || whole > limit || pages > most {
            return Err(RefusedReason::TooLarge);
        }
        if self.is_crowded() || !self.may_wait(record.len()) {
            return Err(RefusedReason::Busy);
        }
        let tag = self.tag(key);
        let waits = self.is_staged(key) && !self.forgetting.awaits(tag);
        if !waits && self.may_have_older(key, tag) {
            self.enqueue(Wanted { ticket, key, tag, record: Some(record), whole })?;
            return Ok(None);
        }
        self.stage((key, tag), record, whole, now);
        Ok(Some(Answer::Stored))
    }

    /// Lets a record of an object of `whole` bytes wait for the log that it belongs to: the main
    /// one as long as that has not been full; or holds it back. Nothing older of its key may be
    /// readable after a crash any more.
    pub(crate) fn stage(
        &mut self,
        (key, tag): (Key, Tag),
        record: Record,
        whole: u64,
        now: Instant,
    ) {
        self.unstage(key);
        let distance = Distance::between((record.len() + HEADER) as u64, self.mean());
        let proven = self.ghost.take(tag);
        let full = self.logs[0].next >= self.logs[0].segments();
        let must_prove = full && distance.is_large() && !proven && self.fits_probation(whole);
        let log = if must_prove { LogName::Probation } else { LogName::Main };
        let is_held = full && !proven && self.is_to_be_held(distance, record.len(), now);
        let staged = Staged { key, record, uses: distance.first_uses() };
        self.index.stage(tag);
        if is_held {
            self.hold(staged, now);
        } else {
            self.logs[log as usize].stage.insert(staged, now);
        }
    }

    /// Whether all parts of an object of so many bytes lie in the probation log at once, beside as
    /// much of others. Those of a larger one would displace each other.
    fn fits_probation(&self, whole: u64) -> bool {
        let room = self.geometry.object_room(LogName::Probation) / 2;
        whole <= room.max(RECORD_BODY_LIMIT as u64)
    }

    /// Writes what is due, as far as there is room.
    pub(crate) fn pump_writes(&mut self, now: Instant, out: &mut Outbox) {
        for log in LogName::ALL {
            while self.flying.has_room() && self.is_due(log, now) {
                if !self.ensure_open(log) {
                    if log == LogName::Main {
                        self.copies.clear();
                    }
                    break;
                }
                let items = self.next_items(log);
                if !items.is_empty() && !self.write_batch(log, items, now, out) {
                    self.seal(log, out);
                }
            }
        }
        if self.forgetting.crowded {
            self.seal_facts(out);
        }
    }

    /// Ends segments so that the journal's facts come into summaries.
    pub(crate) fn seal_facts(&mut self, out: &mut Outbox) {
        for log in LogName::ALL {
            if self.forgetting.unsealed(log) > 0 && self.ensure_open(log) {
                self.seal(log, out);
            }
        }
    }

    fn is_due(&self, log: LogName, now: Instant) -> bool {
        let stage = &self.logs[log as usize].stage;
        let copies = if log == LogName::Main { self.copies.bytes() } else { 0 };
        let full = stage.bytes() + copies >= self.settings.page_buffer;
        let old = stage.oldest().is_some_and(|since| since + self.settings.flush_after <= now);
        let closing = self.life.phase() == Phase::Closing && !stage.is_empty();
        full || old || closing || log == LogName::Main && self.copies.wanted()
    }

    /// Begins a segment where none is open, in the slot of one that was given up; `false` when
    /// there is none.
    fn ensure_open(&mut self, name: LogName) -> bool {
        self.skip_retired(name);
        let log = &mut self.logs[name as usize];
        if log.open.is_some() || !log.has_room() {
            return log.open.is_some();
        }
        let segment = log.segment(log.next);
        log.next += 1;
        log.open = Some(OpenSegment { segment, page: 0, records: Vec::new() });
        self.take_slot(segment, self.file.superblock().opens);
        true
    }

    /// What is next in turn: copies that are still wanted, then what waits.
    fn next_items(&mut self, log: LogName) -> Vec<Item> {
        let most = self.settings.page_buffer;
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < most && log == LogName::Main {
            let Some(Copy { staged, tag, place }) = self.copies.next() else { break };
            let still = self.index.get(tag).is_some_and(|known| known.place == place);
            if still && !self.forgetting.awaits(tag) {
                bytes += staged.record.len();
                items.push(Item { staged, tag, origin: Origin::Copied(place) });
            }
        }
        let staged = self.logs[log as usize].stage.take(most.saturating_sub(bytes));
        items.extend(staged.into_iter().map(|(staged, since)| {
            let tag = self.tag(staged.key);
            Item { staged, tag, origin: Origin::Put(since) }
        }));
        items
    }

    fn give_back(&mut self, log: LogName, items: Vec<Item>) {
        for Item { staged, tag, origin } in items.into_iter().rev() {
            match origin {
                Origin::Copied(place) => self.copies.give_back(Copy { staged, tag, place }),
                Origin::Put(since) => self.logs[log as usize].stage.give_back(staged, since),
            }
        }
    }

    /// Pages that a batch of so many records may have in the open segment.
    fn room_for(&self, log: LogName, records: usize) -> u32 {
        let Some(open) = &self.logs[log as usize].open else { return 0 };
        let facts = self.forgetting.unsealed(log).min(1);
        let summary = pages_for(open.records.len() + records, facts);
        self.geometry.segment_pages.saturating_sub(open.page + summary)
    }

    /// What laying a record out asks of it. One that came lately may wait for others that fill a
    /// page with it.
    fn measure(&self, item: &Item, now: Instant) -> Measured {
        let record = &item.staged.record;
        let may_wait = match item.origin {
            Origin::Copied(_) => false,
            Origin::Put(since) => {
                self.life.phase().serves() && since + self.settings.flush_after > now
            }
        };
        Measured { length: record.len(), cost: packed::cost(record), may_wait }
    }

    /// Writes as many of the records as fit the open segment; `false` when not even one does. The
    /// others wait again, and of a whole batch also some that fill their pages badly.
    fn write_batch(
        &mut self,
        log: LogName,
        mut items: Vec<Item>,
        now: Instant,
        out: &mut Outbox,
    ) -> bool {
        let granule = usize::try_from(self.geometry.granule).expect("granules are small");
        let length =
            |items: &[Item]| items.iter().map(|item| item.staged.record.len()).sum::<usize>();
        let is_whole = length(&items) >= self.settings.page_buffer;
        while !items.is_empty() {
            let measured: Vec<_> = items.iter().map(|item| self.measure(item, now)).collect();
            let patience = if is_whole { length(&items) / PATIENCE } else { 0 };
            let room = self.room_for(log, items.len());
            if let Some(plan) = pack::plan(&measured, granule, patience).within(room, &measured) {
                self.fly(log, items, &plan, out);
                return true;
            }
            let most = fitting(&measured, granule, room as usize * PAGE).min(items.len() - 1);
            let rest = items.split_off(most);
            self.give_back(log, rest);
        }
        false
    }

    fn fly(&mut self, log: LogName, items: Vec<Item>, plan: &Plan, out: &mut Outbox) {
        let mut open = self.logs[log as usize].open.take().expect("there is room in it");
        let (segment, first) = (open.segment, open.page);
        let slot = self.geometry.slot(segment);
        let mut buffer = self.flying.buffer(plan.pages() as usize * PAGE);
        let stamp = |page| Position::new(segment, page).stamp(self.file.superblock().opens);
        let bytes = buffer.as_mut();
        let mut learn = |number: usize, start: usize, extent: Extent| {
            let byte = u64::from(first) * PAGE as u64 + start as u64;
            let Item { tag, staged, .. } = &items[number];
            let place = self.geometry.place(slot, byte);
            self.index.insert(*tag, Known { place, extent, uses: staged.uses });
            open.records.push(Listed {
                tag: *tag,
                step: (byte / 64) as u32,
                class: extent.class(),
            });
        };
        let mut end = 0;
        for &(number, start) in &plan.runs {
            let Staged { key, record, .. } = &items[number].staged;
            let page = start / PAGE;
            bytes[end..start].fill(0);
            record::encode(
                &mut bytes[start..],
                *key,
                stamp(first + page as u32),
                record,
                self.file.secret(),
            );
            end = start + HEADER + record.len();
            learn(number, start, Extent::Pages((end.div_ceil(PAGE) - page) as u32));
        }
        let packed = plan.run_pages as usize * PAGE;
        bytes[end..packed].fill(0);
        for (number, members) in plan.packed.iter().enumerate() {
            let start = packed + number * PAGE;
            let records = members
                .iter()
                .map(|&member| (items[member].staged.key, &items[member].staged.record));
            let page = &mut bytes[start..start + PAGE];
            packed::encode(page, stamp(first + (start / PAGE) as u32), records, self.file.secret());
            members.iter().for_each(|&member| learn(member, start, Extent::Packed));
        }
        open.page += plan.pages();
        self.logs[log as usize].open = Some(open);
        let is_left = |number: &usize| plan.left.binary_search(number).is_ok();
        let (left, items): (Vec<_>, Vec<_>) =
            items.into_iter().enumerate().partition(|(number, _)| is_left(number));
        self.give_back(log, left.into_iter().map(|(_, item)| item).collect());
        let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
        let keys = items.iter().map(|item| item.staged.key).collect();
        let written = items.iter().map(|item| item.staged.record.len()).sum();
        let offset = self.geometry.offset(slot, first);
        let pending = Pending::Batch(Batch { segment, keys, bytes: written });
        let io = self.file.write(offset, buffer, pending, out);
        self.flying.begin(io, segment, items, written);
    }

    /// A batch is written. If that failed its records stay known, since they may lie on disk all
    /// the same; nothing more is written to their segment.
    pub(crate) fn batch_done(
        &mut self,
        io: IoId,
        batch: &Batch,
        (result, buffer): (Result<(), IoError>, Option<IoBuffer>),
        out: &mut Outbox,
    ) {
        self.flying.end(io, batch, buffer);
        self.judge_slot(batch.segment, result);
        let log = batch.segment.log;
        let open = self.logs[log as usize].open.as_ref().map(|open| open.segment);
        if result.is_err() && open == Some(batch.segment) {
            self.seal(log, out);
        }
    }
}
