//! The view of the store's layout, for maps.

use super::{FILE_NAME, StreamPacketizer};
use crate::index::{Entry, EntryState};
use foxy_store::layout::SLOT;
use foxy_store::map::{
    FilePart, OpenPart, RecordArray, RecordReader, RecordSize, SharedFile, Survey,
};
use foxy_store::record;

const FILE: u64 = 0;

impl StreamPacketizer {
    fn part(&self, entry: &Entry) -> FilePart {
        let start = self.layout.data.offset() + u64::from(entry.first_slot) * SLOT as u64;
        FilePart { file: FILE, start, bytes: u64::from(entry.slots) * SLOT as u64 }
    }
}

impl RecordArray for StreamPacketizer {
    fn survey(&self) -> Survey {
        let data = self.layout.data;
        let part = FilePart { file: FILE, start: data.offset(), bytes: data.bytes() as u64 };
        let head = self.layout.data_offset(self.pages.cursor());
        let file = SharedFile::new(part, FILE_NAME.into(), Some(head));
        Survey::of_files(&["one file, written cyclically"], vec![file], 0)
    }

    fn places(&self) -> usize {
        self.index.slab().len()
    }

    fn record(&self, place: usize) -> Option<RecordSize> {
        let entry = self.index.slab().get(place).filter(|it| it.state == EntryState::Live)?;
        let Entry { key, sequence, .. } = *entry;
        Some(RecordSize { key, sequence, bytes: self.part(entry).bytes })
    }

    fn piece(&self, place: usize, number: usize) -> Option<FilePart> {
        self.index.slab().get(place).filter(|_| number == 0).map(|entry| self.part(entry))
    }

    fn reader(&self, place: usize) -> Option<RecordReader> {
        let Entry { key, sequence, .. } = *self.index.slab().get(place)?;
        let id = u32::try_from(place).ok()?;
        if let Some(record) = self.buffered.get(&id).cloned() {
            return Some(RecordReader::new(Vec::new(), move |_| Some((key, record))));
        }
        let FilePart { start: offset, bytes, .. } = self.piece(place, 0)?;
        let part = OpenPart { file: self.file.id(), offset, length: usize::try_from(bytes).ok()? };
        let secret = *self.file.secret();
        Some(RecordReader::new(vec![part], move |buffer| {
            let record = record::decode(buffer, 0, key, sequence, &secret);
            record.ok().map(|record| (key, record))
        }))
    }
}
