//! Reads oracleGeneral, the binary trace format of libCacheSim: records of 24 bytes, little-endian,
//! without a header. A record has a time (u32, seconds), an object (u64), a size (u32, bytes) and
//! the index of the object's next request (i64). The format has no clients and no URLs.

use super::Builder;
use super::report::{ReadError, ReadReport, is_damage};
use super::skip::{Answer, Entry, Skip};
use std::io::Read;

const RECORD_BYTES: usize = 24;

/// Start of every object's URL. The object's number follows as the path.
const HOST: &str = "http://oracle-general.test/";

/// Upper bound of the index of a next request. No known trace has 2⁴⁰ requests, so a larger value
/// shows that the file has another format.
const MAX_NEXT: i64 = 1 << 40;

/// Number of records at the start of a file by which the reader recognises the format.
const GUESSED_RECORDS: usize = 64;

struct RawRecord {
    seconds: u32,
    object: u64,
    size: u32,
    next: i64,
}

impl RawRecord {
    fn of(bytes: [u8; RECORD_BYTES]) -> Self {
        let four = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        let eight = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Self { seconds: four(0), object: eight(4), size: four(12), next: eight(16).cast_signed() }
    }

    /// Returns whether `next`, the index of the object's next request, is possible in record
    /// `index`. It must be a later index, or the mark of an object's last request. Writers use -1
    /// or the largest number as this mark.
    fn is_plausible(&self, index: usize) -> bool {
        let after = i64::try_from(index).is_ok_and(|index| self.next > index);
        matches!(self.next, -1 | i64::MAX) || (after && self.next < MAX_NEXT)
    }
}

/// Returns whether `head`, the start of a file, consists of plausible records in order of time.
pub(super) fn is_likely(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<RECORD_BYTES>();
    let records: Vec<_> =
        records.iter().take(GUESSED_RECORDS).map(|&bytes| RawRecord::of(bytes)).collect();
    !records.is_empty()
        && records.is_sorted_by_key(|record| record.seconds)
        && records.iter().enumerate().all(|(index, record)| record.is_plausible(index))
}

/// Reads all records. A partial record at the end counts as damage.
pub(super) fn read(
    mut input: impl Read,
    builder: &mut Builder,
    report: &mut ReadReport,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ReadError> {
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    loop {
        bytes.clear();
        match input.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) if is_damage(&error, report.packed) => return report.damaged(&error),
            Err(error) => return Err(ReadError::Io(error)),
        }
        let Some(&record) = bytes.first_chunk() else {
            if !bytes.is_empty() {
                let text = || format!("{} bytes after the last record", bytes.len());
                report.count(Err(Skip::Damaged), text);
            }
            return Ok(());
        };
        let record = RawRecord::of(record);
        let entry = Entry {
            time: i64::from(record.seconds) * 1_000_000,
            client: "",
            url: &format!("{HOST}{}", record.object),
            answer: Answer::Whole(record.size.into()),
        };
        report.count(builder.add(entry), || format!("object {}", record.object));
        progress(report.lines);
    }
}
