//! Objects of several sizes there and back, and records that do not belong.

use super::*;
use foxy_base::Random;
use std::collections::HashMap;

const KEY: Key = Key([5; 16]);

fn bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Random::new(length as u64).fill(&mut bytes);
    bytes
}

fn store(content: &[u8], chunk: usize) -> (HashMap<Key, Record>, Object) {
    let mut records = HashMap::new();
    let mut writer = ObjectWriter::new(KEY, 42);
    for chunk in content.chunks(chunk) {
        writer.push(chunk, |key, record| assert!(records.insert(key, record).is_none()));
    }
    let (last, head) = writer.finish(b"metadata");
    records.extend(last);
    (records, Object::open(KEY, head).expect("just made"))
}

fn read(records: &HashMap<Key, Record>, object: &Object, range: Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in object.pieces(range) {
        match piece {
            Piece::Here(bytes) => out.extend_from_slice(&bytes),
            Piece::Part(part) => {
                out.extend_from_slice(&object.take(&part, &records[&part.key]).expect("that part"));
            }
        }
    }
    out
}

#[test]
fn objects_of_any_size_come_back_whole_and_in_ranges() {
    for length in [0, 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, 2 * PART_BYTES + 77] {
        let content = bytes(length);
        for chunk in [4096 + 1, 3 * PART_BYTES] {
            let (records, object) = store(&content, chunk);
            assert_eq!(object.head, "metadata");
            assert_eq!(records.len(), if length > PART_BYTES { length.div_ceil(PART_BYTES) } else { 0 });
            assert!(records.values().all(|record| record.body.len() <= PART_BYTES));
            assert_eq!(object.part_keys().count(), records.len());
            let end = length as u64;
            for range in [0..end, 1..end, end / 2..end / 2 + 5, 0..u64::MAX, end..end + 9] {
                let from = usize::try_from(range.start.min(end)).expect("small");
                let to = usize::try_from(range.end.clamp(range.start.min(end), end)).expect("small");
                assert_eq!(read(&records, &object, range.clone()), content[from..to], "{length} {range:?}");
            }
        }
    }
}

#[test]
fn new_metadata_keeps_the_content() {
    let content = bytes(PART_BYTES + 10);
    let (records, object) = store(&content, 9999);
    let renewed = Object::open(KEY, object.with_head(b"newer")).expect("an object");
    assert_eq!(renewed.head, "newer");
    assert_eq!(read(&records, &renewed, 0..u64::MAX), content);
}

#[test]
fn records_that_do_not_belong_are_refused() {
    let (records, object) = store(&bytes(2 * PART_BYTES), 9999);
    let pieces: Vec<_> = object.pieces(0..u64::MAX).collect();
    let [Piece::Part(first), Piece::Part(second)] = &pieces[..] else { panic!("{pieces:?}") };
    assert_eq!(object.take(first, &records[&second.key]), Err(PartsError::OtherPart));
    let mut short = records[&first.key].clone();
    short.body.truncate(3);
    assert_eq!(object.take(first, &short), Err(PartsError::PartLength));
    let open = |head: &[u8], body: &'static [u8]| {
        let record = Record { head: Bytes::copy_from_slice(head), body: Bytes::from_static(body) };
        Object::open(KEY, record).map(|object| object.total())
    };
    assert_eq!(open(b"", b""), Err(PartsError::NotAnObject));
    assert_eq!(open(&[1; 24], b""), Err(PartsError::NotAnObject));
    let (_, whole) = ObjectWriter::new(KEY, 1).finish(b"");
    assert_eq!(open(&whole.head, b""), Ok(0));
    assert_eq!(open(&whole.head, b"more"), Err(PartsError::NotAnObject));
}
