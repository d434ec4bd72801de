//! The view of the layout of a slotted storage scheme, for maps.

use super::Slotted;
use super::layout::{LayoutFile, Piece};
use foxy_store::layout::SLOT;
use foxy_store::map::{
    FilePart, OpenPart, RecordArray, RecordReader, RecordSize, SharedFile, Survey,
};
use foxy_store::record;

const fn part(Piece { file, first, slots }: Piece) -> FilePart {
    FilePart { file, start: first as u64 * SLOT as u64, bytes: slots as u64 * SLOT as u64 }
}

impl RecordArray for Slotted {
    fn survey(&self) -> Survey {
        let shared = |LayoutFile { file, slots, head }: LayoutFile| {
            let head = head.map(|slot| u64::from(slot) * SLOT as u64);
            let name = self.path_of(file).as_str().into();
            SharedFile::new(part(Piece { file, first: 0, slots }), name, head)
        };
        let files = self.layout.files().into_iter().map(shared).collect();
        let unallocated = u64::from(self.layout.unallocated()) * SLOT as u64;
        Survey::of_files(self.plan.layout.area(), files, unallocated)
    }

    fn places(&self) -> usize {
        self.entries.places()
    }

    fn record(&self, place: usize) -> Option<RecordSize> {
        let entry = self.entries.get(u32::try_from(place).ok()?);
        let (key, sequence, slots) = (entry.key, entry.sequence, u64::from(entry.slots()));
        entry.live.then_some(RecordSize { key, sequence, bytes: slots * SLOT as u64 })
    }

    fn piece(&self, place: usize, number: usize) -> Option<FilePart> {
        let entry = self.entries.get(u32::try_from(place).ok()?);
        entry.pieces.get(number).copied().map(part)
    }

    fn reader(&self, place: usize) -> Option<RecordReader> {
        let entry = self.entries.get(u32::try_from(place).ok()?);
        let (key, sequence, secret) = (entry.key, entry.sequence, self.secret);
        if let Some(record) = entry.in_memory.clone() {
            return Some(RecordReader::new(Vec::new(), move |_| Some((key, record))));
        }
        let open = |piece: &Piece| {
            let FilePart { file, start: offset, bytes } = part(*piece);
            let file = self.files.open_id(file)?;
            Some(OpenPart { file, offset, length: usize::try_from(bytes).ok()? })
        };
        let parts = entry.pieces.iter().map(open).collect::<Option<_>>()?;
        Some(RecordReader::new(parts, move |buffer| {
            let record = record::decode(buffer, 0, key, sequence, &secret);
            record.ok().map(|record| (key, record))
        }))
    }
}
