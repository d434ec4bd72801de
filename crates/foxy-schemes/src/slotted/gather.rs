//! The packetizer collects contiguous records and writes them as whole granules. A granule is a
//! page or a stripe of the file. If collecting is disabled, each record is a separate write.

use super::entries::EntryId;
use super::layout::Piece;
use foxy_base::Instant;
use foxy_store::layout::SLOT;

/// One write of contiguous bytes to a file.
#[derive(Debug)]
pub struct Batch {
    pub file: u64,
    /// Number of the batch's first slot (512 bytes) in the file.
    pub first: u32,
    pub bytes: Vec<u8>,
    /// The records that have bytes in this batch.
    pub records: Vec<EntryId>,
}

impl Batch {
    pub fn alone(piece: Piece, bytes: &[u8], record: EntryId) -> Self {
        Self { file: piece.file, first: piece.first, bytes: bytes.to_vec(), records: vec![record] }
    }
}

#[derive(Debug)]
pub struct Gather {
    /// Number of slots (512 bytes each) in a granule, the page or stripe that is written as a
    /// whole; 0 disables collecting.
    granule: u32,
    pending: Option<Batch>,
    since: Instant,
}

impl Gather {
    pub const fn new(granule: u32) -> Self {
        Self { granule, pending: None, since: Instant::ZERO }
    }

    /// Adds a piece (adjacent slots of 512 bytes) of a record and appends full batches to `out`.
    /// Each batch lists every record that has bytes in it. Returns how many batches, finished or
    /// still collecting, list the record because of this call.
    pub fn add(
        &mut self,
        piece: Piece,
        bytes: &[u8],
        record: EntryId,
        now: Instant,
        out: &mut Vec<Batch>,
    ) -> u32 {
        let slots = |bytes: &[u8]| u32::try_from(bytes.len() / SLOT).unwrap_or(u32::MAX);
        let follows = |batch: &Batch| {
            batch.file == piece.file && batch.first + slots(&batch.bytes) == piece.first
        };
        if !self.pending.as_ref().is_some_and(follows) {
            out.extend(self.pending.take());
        }
        let batch = self.pending.get_or_insert_with(|| {
            self.since = now;
            Batch { file: piece.file, first: piece.first, bytes: Vec::new(), records: Vec::new() }
        });
        batch.bytes.extend_from_slice(bytes);
        let mut listed = 0;
        if batch.records.last() != Some(&record) {
            batch.records.push(record);
            listed += 1;
        }
        if self.granule == 0 {
            out.extend(self.pending.take());
            return listed;
        }
        let end = batch.first + slots(&batch.bytes);
        let boundary = end - end % self.granule;
        if boundary > batch.first {
            let tail = batch.bytes.split_off((boundary - batch.first) as usize * SLOT);
            let full = self.pending.take();
            if !tail.is_empty() {
                listed += 1;
                self.since = now;
                self.pending = Some(Batch {
                    file: piece.file,
                    first: boundary,
                    bytes: tail,
                    records: vec![record],
                });
            }
            out.extend(full);
        }
        listed
    }

    pub fn flush(&mut self) -> Option<Batch> {
        self.pending.take()
    }

    /// Returns the arrival time of the oldest bytes that are collected but not written.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.pending.as_ref().map(|_| self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds pieces as records 0, 1, … and checks the resulting batches. A piece is `(first slot,
    /// number of slots)`. An expected batch is `(first slot, number of slots, numbers of the
    /// records)`.
    fn check(granule: u32, pieces: &[(u32, u32)], expected: &[(u32, u32, &[EntryId])]) {
        let mut gather = Gather::new(granule);
        let (mut out, mut listed) = (Vec::new(), 0);
        for (record, &(first, slots)) in (0..).zip(pieces) {
            let bytes = vec![u8::try_from(record).expect("few"); slots as usize * SLOT];
            listed += gather.add(
                Piece { file: 0, first, slots },
                &bytes,
                record,
                Instant::ZERO,
                &mut out,
            );
        }
        out.extend(gather.flush());
        assert_eq!(listed as usize, out.iter().map(|batch| batch.records.len()).sum::<usize>());
        assert_eq!(gather.waiting_since(), None);
        let found: Vec<_> = out
            .iter()
            .map(|batch| (batch.first, (batch.bytes.len() / SLOT) as u32, &batch.records[..]))
            .collect();
        assert_eq!(found, expected, "granule {granule}, pieces {pieces:?}");
    }

    #[test]
    fn without_a_granule_every_piece_leaves_at_once() {
        check(0, &[(0, 3), (3, 4)], &[(0, 3, &[0]), (3, 4, &[1])]);
    }

    #[test]
    fn pieces_that_follow_each_other_leave_in_whole_granules() {
        check(8, &[(0, 3), (3, 4), (7, 2)], &[(0, 8, &[0, 1, 2]), (8, 1, &[2])]);
        check(8, &[(0, 30)], &[(0, 24, &[0]), (24, 6, &[0])]);
        check(8, &[(0, 8), (8, 8)], &[(0, 8, &[0]), (8, 8, &[1])]);
    }

    #[test]
    fn a_distant_piece_releases_the_gathered_bytes() {
        check(8, &[(0, 3), (5, 1), (6, 2)], &[(0, 3, &[0]), (5, 3, &[1, 2])]);
    }
}
