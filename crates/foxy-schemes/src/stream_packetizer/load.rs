//! Reads the newest checkpoint, a copy of the index, while the store is opened.

use super::StreamPacketizer;
use super::pending::Pending;
use crate::checkpoint::{CheckpointHead, Listed, decode_page};
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::Outbox;
use foxy_store::layout::PAGE;

/// State that only the opening of the store needs.
#[derive(Default)]
pub struct Loading {
    /// Number of attempts to read the forget journal.
    pub journal_tries: u32,
    heads_wanted: u32,
    best: Option<(usize, CheckpointHead)>,
    listed: Vec<Listed>,
    all_pages_sound: bool,
    /// Whether the checkpoint lists every record on disk, so that no scan is needed.
    pub complete: bool,
}

const PAGES_AT_ONCE: u32 = 256;

impl StreamPacketizer {
    pub(super) fn read_checkpoint_heads(&mut self, out: &mut Outbox) {
        self.loading.heads_wanted = 2;
        for area in 0..2 {
            let offset = self.layout.checkpoints[area].offset();
            self.file.read(offset, PAGE, Pending::CheckpointHead(area), out);
        }
    }

    pub(super) fn checkpoint_head_read(
        &mut self,
        area: usize,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let room = self.layout.checkpoints[area].pages - 1;
        let head = result
            .ok()
            .and_then(|buffer| CheckpointHead::decode(buffer.as_ref(), self.file.secret()));
        if let Some(head) = head.filter(|head| head.pages <= room) {
            self.durable = self.durable.max(head.durable);
            let better = self.loading.best.is_none_or(|(_, best)| best.number < head.number);
            if better {
                self.loading.best = Some((area, head));
            }
        }
        self.loading.heads_wanted -= 1;
        if self.loading.heads_wanted == 0 {
            self.loading.all_pages_sound = true;
            self.read_checkpoint_from(0, out);
        }
    }

    fn read_checkpoint_from(&mut self, from: u32, out: &mut Outbox) {
        match self.loading.best {
            Some((area, head)) if from < head.pages => {
                let count = (head.pages - from).min(PAGES_AT_ONCE);
                let offset =
                    self.layout.checkpoints[area].offset() + u64::from(1 + from) * PAGE as u64;
                self.file.read(offset, count as usize * PAGE, Pending::CheckpointPages(from), out);
            }
            _ => self.checkpoint_loaded(out),
        }
    }

    pub(super) fn checkpoint_pages_read(
        &mut self,
        from: u32,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let Some((_, head)) = self.loading.best else { return };
        let count = (head.pages - from).min(PAGES_AT_ONCE);
        let mut sound = 0;
        if let Ok(buffer) = result {
            for (place, page) in (from..).zip(buffer.as_ref().chunks_exact(PAGE)) {
                if let Some(listed) = decode_page(page, head.number, place, self.file.secret()) {
                    self.loading.listed.extend(listed);
                    sound += 1;
                }
            }
        }
        self.loading.all_pages_sound &= sound == count;
        self.read_checkpoint_from(from + count, out);
    }

    /// Finishes the reading of the checkpoint. The checkpoint counts as complete only if the last
    /// close wrote it, all of its pages are valid, and the file has its full size.
    fn checkpoint_loaded(&mut self, out: &mut Outbox) {
        let loading = std::mem::take(&mut self.loading);
        let mut listed = loading.listed;
        let whole_file = self.pages.retired() == 0;
        if let Some((_, head)) = loading.best {
            self.checkpoint_number = head.number;
            self.loading.complete = head.complete
                && head.opens == self.file.superblock().opens
                && loading.all_pages_sound
                && whole_file;
        }
        if !self.loading.complete {
            listed.sort_unstable_by_key(|entry| entry.sequence);
        }
        for entry in listed {
            self.adopt_listed(entry);
        }
        self.observer.statistics.recovered_from_checkpoint.add(u64::from(self.index.live()));
        self.switch(out);
    }
}
