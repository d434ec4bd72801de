//! Writes batches of records. Selects the records that are written together, arranges them in
//! pages, and writes the pages with one disk write.

use crate::completion::written;
use crate::contract::{Key, Record};
use crate::layout::PAGE;
use crate::record::{self, HEADER};
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Position};
use crate::webcosm::format::packed;
use crate::webcosm::format::summary::{Listed, pages_for};
use crate::webcosm::index::{Extent, IndexEntry, Tag};
use crate::webcosm::pending::{Batch, Pending};
use crate::webcosm::phase::Phase;
use crate::webcosm::reclaim::copies::{Copies, RecordCopy};
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use crate::webcosm::write::log::OpenSegment;
use crate::webcosm::write::pack::{self, Measured, Plan};
use crate::webcosm::write::write_buffer::BufferedRecord;
use foxy_base::Instant;
use foxy_device::IoDone;

/// If a batch is full, up to 1/`PATIENCE` of its bytes may wait for the next batch, where they fill
/// pages better.
const PATIENCE: usize = 4;

/// Where a record of a batch comes from: a copy of a stored record, or a put that arrived at this
/// time.
#[derive(Clone, Copy)]
enum Origin {
    /// The record is a copy of the record at this place, whose segment will be discarded.
    Copied(u64),
    Put(Instant),
}

struct BatchItem {
    record: BufferedRecord,
    tag: Tag,
    origin: Origin,
}

impl BatchItem {
    /// Returns the sizes of the record, from which the layout of the batch is planned. A record
    /// that arrived recently may wait for the next batch if this fills a page better.
    fn measure(&self, cx: &Context) -> Measured {
        let may_wait = match self.origin {
            Origin::Copied(_) => false,
            Origin::Put(since) => cx.phase().serves() && since + cx.settings.flush_after > cx.now,
        };
        let record = &self.record.record;
        Measured { length: record.len(), cost: packed::cost(record), may_wait }
    }
}

impl Writer {
    /// Writes all batches that are due. Stops when the open segments are full and no slot is free,
    /// or when too many batches are in flight.
    pub fn pump(&mut self, cx: &mut Context, tombstones: &mut Tombstones, copies: &mut Copies) {
        for log in LogName::ALL {
            while self.in_flight.has_room() && self.is_due(cx, copies, log) {
                if !self.ensure_open(cx, tombstones, log) {
                    if log == LogName::Main {
                        copies.clear();
                    }
                    break;
                }
                let items = self.next_items(cx, tombstones, copies, log);
                if items.is_empty() {
                    continue;
                }
                match self.fit(cx, tombstones, copies, log, items) {
                    Some((items, plan)) => self.write(cx, copies, log, items, &plan),
                    None => self.seal(cx, tombstones, log),
                }
            }
        }
        if tombstones.is_crowded() {
            self.seal_tombstones(cx, tombstones);
        }
    }

    fn is_due(&self, cx: &Context, copies: &Copies, log: LogName) -> bool {
        let buffer = &self.log(log).buffer;
        let copied = if log == LogName::Main { copies.bytes() } else { 0 };
        let is_full = buffer.bytes() + copied >= cx.settings.page_buffer;
        let is_old = buffer.oldest().is_some_and(|since| since + cx.settings.flush_after <= cx.now);
        let is_closing = cx.phase() == Phase::Closing && !buffer.is_empty();
        is_full || is_old || is_closing || log == LogName::Main && copies.are_ready()
    }

    /// Collects the records of the next batch: first copies from segments that will be discarded
    /// (unless outdated), then buffered records.
    fn next_items(
        &mut self,
        cx: &Context,
        tombstones: &Tombstones,
        copies: &mut Copies,
        log: LogName,
    ) -> Vec<BatchItem> {
        let most = cx.settings.page_buffer;
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < most && log == LogName::Main {
            let Some(RecordCopy { record, tag, place }) = copies.next() else { break };
            let is_current = cx.index.get(tag).is_some_and(|entry| entry.place == place);
            if is_current && !tombstones.awaits(tag) {
                bytes += record.record.len();
                items.push(BatchItem { record, tag, origin: Origin::Copied(place) });
            }
        }
        let buffered = self.log_mut(log).buffer.take(most.saturating_sub(bytes));
        items.extend(buffered.into_iter().map(|(record, since)| {
            let tag = cx.tag(record.key);
            BatchItem { record, tag, origin: Origin::Put(since) }
        }));
        items
    }

    fn give_back(&mut self, copies: &mut Copies, log: LogName, items: Vec<BatchItem>) {
        for BatchItem { record, tag, origin } in items.into_iter().rev() {
            match origin {
                Origin::Copied(place) => copies.give_back(RecordCopy { record, tag, place }),
                Origin::Put(since) => self.log_mut(log).buffer.give_back(record, since),
            }
        }
    }

    /// Returns how many pages of the open segment a batch of `records` records may use. The last
    /// pages of the segment are reserved for its summary.
    fn free_pages(
        &self,
        cx: &Context,
        tombstones: &Tombstones,
        log: LogName,
        records: usize,
    ) -> u32 {
        let Some(open) = &self.log(log).open else { return 0 };
        let summary = pages_for(open.records.len() + records, tombstones.unsealed(log).min(1));
        cx.geometry.segment_pages.saturating_sub(open.page + summary)
    }

    /// Plans a batch with as many of the records as fit in the open segment. Returns the other
    /// records to their queues. Returns `None` if no record fits.
    fn fit(
        &mut self,
        cx: &Context,
        tombstones: &Tombstones,
        copies: &mut Copies,
        log: LogName,
        mut items: Vec<BatchItem>,
    ) -> Option<(Vec<BatchItem>, Plan)> {
        let granule = usize::try_from(cx.geometry.granule).expect("granules are small");
        let bytes = |items: &[BatchItem]| -> usize {
            items.iter().map(|item| item.record.record.len()).sum()
        };
        let is_whole = bytes(&items) >= cx.settings.page_buffer;
        while !items.is_empty() {
            let measured: Vec<_> = items.iter().map(|item| item.measure(cx)).collect();
            let patience = if is_whole { bytes(&items) / PATIENCE } else { 0 };
            let room = self.free_pages(cx, tombstones, log, items.len());
            if let Some(plan) = pack::plan(&measured, granule, patience).within(room, &measured) {
                return Some((items, plan));
            }
            let most = pack::fitting(&measured, granule, room as usize * PAGE);
            let rest = items.split_off(most.min(items.len() - 1));
            self.give_back(copies, log, rest);
        }
        None
    }

    /// Writes a batch to the open segment and adds its records to the index. Records that the plan
    /// leaves for the next batch return to their queues.
    fn write(
        &mut self,
        cx: &mut Context,
        copies: &mut Copies,
        log: LogName,
        items: Vec<BatchItem>,
        plan: &Plan,
    ) {
        let mut open = self.log_mut(log).open.take().expect("there is room in it");
        let (segment, first) = (open.segment, open.page);
        let mut buffer = self.in_flight.buffer(plan.pages() as usize * PAGE);
        lay_out(cx, &items, plan, &mut open, buffer.as_mut());
        open.page += plan.pages();
        self.log_mut(log).open = Some(open);
        let is_left = |number: &usize| plan.left.binary_search(number).is_ok();
        let (left, items): (Vec<_>, Vec<_>) =
            items.into_iter().enumerate().partition(|(number, _)| is_left(number));
        self.give_back(copies, log, left.into_iter().map(|(_, item)| item).collect());
        let records: Vec<(Key, Record)> =
            items.into_iter().map(|(_, item)| (item.record.key, item.record.record)).collect();
        let keys = records.iter().map(|(key, _)| *key).collect();
        let bytes = records.iter().map(|(_, record)| record.len()).sum();
        let offset = cx.geometry.offset(cx.geometry.slot(segment), first);
        let pending = Pending::Batch(Batch { segment, keys, bytes });
        let io = cx.write(offset, buffer, pending);
        self.in_flight.begin(io, segment, records, bytes);
    }

    /// Processes the result of writing a batch. If the write failed, no further records are written
    /// to the segment. The records of the batch stay in the index, because they may be on disk.
    pub fn batch_done(
        &mut self,
        cx: &mut Context,
        tombstones: &mut Tombstones,
        batch: &Batch,
        done: IoDone,
    ) {
        let result = written(&done);
        self.in_flight.end(done.id, batch, done.buffer);
        self.bad_slots.record(&cx.geometry, batch.segment, result);
        let log = batch.segment.log;
        let open = self.log(log).open.as_ref().map(|open| open.segment);
        if result.is_err() && open == Some(batch.segment) {
            self.seal(cx, tombstones, log);
        }
    }
}

/// Encodes the records of a batch into `bytes` as planned, and adds them to the index.
fn lay_out(
    cx: &Context,
    items: &[BatchItem],
    plan: &Plan,
    open: &mut OpenSegment,
    bytes: &mut [u8],
) {
    let (segment, first) = (open.segment, open.page);
    let slot = cx.geometry.slot(segment);
    let incarnation = cx.incarnation();
    let stamp = |page: usize| Position::new(segment, first + page as u32).stamp(incarnation);
    let mut learn = |number: usize, start: usize, extent: Extent| {
        let byte = u64::from(first) * PAGE as u64 + start as u64;
        let BatchItem { tag, record, .. } = &items[number];
        let place = cx.geometry.place(slot, byte);
        cx.index.insert(*tag, IndexEntry { place, extent, uses: record.uses });
        open.records.push(Listed { tag: *tag, step: (byte / 64) as u32, class: extent.class() });
    };
    let mut end = 0;
    for &(number, start) in &plan.runs {
        let BufferedRecord { key, record, .. } = &items[number].record;
        let page = start / PAGE;
        bytes[end..start].fill(0);
        record::encode(&mut bytes[start..], *key, stamp(page), record, cx.secret());
        end = start + HEADER + record.len();
        learn(number, start, Extent::Pages((end.div_ceil(PAGE) - page) as u32));
    }
    let packed = plan.run_pages as usize * PAGE;
    bytes[end..packed].fill(0);
    for (number, members) in plan.packed.iter().enumerate() {
        let start = packed + number * PAGE;
        let records =
            members.iter().map(|&member| (items[member].record.key, &items[member].record.record));
        let page = &mut bytes[start..start + PAGE];
        packed::encode(page, stamp(start / PAGE), records, cx.secret());
        members.iter().for_each(|&member| learn(member, start, Extent::Packed));
    }
}
