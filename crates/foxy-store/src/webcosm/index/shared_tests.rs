//! Tests the results of lookups while records are added, replaced and removed.

use super::*;
use crate::contract::{Look, ReadNow, Record};
use crate::layout::PAGE;
use crate::webcosm::index::Extent;
use foxy_device::IoBuffer;

const KEY: Key = Key([3; 16]);
const LIFE: u64 = 4;

/// Returns an index that lookups can use, the tag (shortened key) of the test's record, and the
/// record's index entry.
fn index() -> (SharedIndex, Tag, IndexEntry) {
    let geometry = Geometry::of(32 << 20);
    let mut index = SharedIndex::new(geometry);
    index.begin_anew(geometry);
    let readable = Readable { salt: 7, secret: Secret::new(7), file: FileId(2) };
    index.set_slot(1, SlotContent { sequence: 1, incarnation: LIFE });
    index.set_complete(Some(readable));
    index.let_lookups_count(true);
    let tag = index.tag(KEY.hash(readable.salt));
    (
        index,
        tag,
        IndexEntry {
            place: geometry.place(1, 5 * PAGE as u64 + 64),
            extent: Extent::Pages(1),
            uses: 0,
        },
    )
}

fn record() -> Record {
    Record { head: vec![1; 20].into(), body: vec![2; 300].into() }
}

/// Returns the page that contains the test's record, as it is stored on disk.
fn page(index: &SharedIndex, known: IndexEntry) -> IoBuffer {
    let mut buffer = IoBuffer::zeroed(PAGE);
    let stamp = index.location(known).position.stamp(LIFE);
    crate::record::encode(&mut buffer.as_mut()[64..], KEY, stamp, &record(), &Secret::new(7));
    buffer
}

fn unread(_: FileId, _: u64, _: usize) -> Option<IoBuffer> {
    panic!("nothing is to be read")
}

#[test]
fn lookups_answer_absent_only_without_entry_and_buffered_record() {
    let (index, tag, known) = index();
    let lookup = index.lookup();
    assert_eq!(lookup.look(KEY, &mut unread), Look::Absent);
    index.buffer(tag);
    assert_eq!(lookup.look(KEY, &mut unread), Look::Unsure);
    index.insert(tag, known);
    assert_eq!(lookup.look(KEY, &mut |_, _, _| None), Look::Unsure);
    assert!(index.remove_at(tag, known.place));
    assert_eq!(lookup.look(KEY, &mut unread), Look::Absent);
    index.buffer(tag);
    index.unbuffer(tag);
    assert_eq!(lookup.look(KEY, &mut unread), Look::Absent);
    index.set_complete(None);
    assert_eq!(lookup.look(KEY, &mut unread), Look::Unsure);
}

#[test]
fn lookups_return_a_readable_record_and_count_its_use() {
    let (index, tag, known) = index();
    index.insert(tag, known);
    let mut asked = None;
    let found = index.lookup().look(KEY, &mut |file, offset, length| {
        asked = Some((file, offset, length));
        Some(page(&index, known))
    });
    assert_eq!(found, Look::Found(record()));
    assert_eq!(asked, Some((FileId(2), index.location(known).offset, PAGE)));
    assert_eq!(index.get(tag).map(|known| known.uses), Some(1));
    assert_eq!((index.take_found(), index.take_found()), (320, 0));
}

#[test]
fn lookups_drop_a_record_that_changed_during_the_read() {
    let changes: [fn(&SharedIndex, Tag, IndexEntry); 5] = [
        |index, tag, known| assert!(index.remove_at(tag, known.place)),
        |index, tag, known| index.insert(tag, IndexEntry { place: known.place + 1, ..known }),
        |index, tag, _| index.buffer(tag),
        |index, _, _| index.set_complete(None),
        |index, _, _| index.set_slot(1, SlotContent { sequence: 2, incarnation: LIFE }),
    ];
    for change in changes {
        let (index, tag, known) = index();
        index.insert(tag, known);
        let found = index.lookup().look(KEY, &mut |_, _, _| {
            let page = page(&index, known);
            change(&index, tag, known);
            Some(page)
        });
        assert_eq!((found, index.take_found()), (Look::Unsure, 0));
    }
}

#[test]
fn lookups_leave_damaged_old_large_and_uncounted_records_to_the_thread() {
    let (index, tag, known) = index();
    index.insert(tag, known);
    let whole = page(&index, known);
    let look = |read: &mut ReadNow<'_>| index.lookup().look(KEY, read);
    let mut damaged = IoBuffer::copy_of(whole.as_ref());
    damaged.as_mut()[200] ^= 1;
    let mut damaged = Some(damaged);
    assert_eq!(look(&mut |_, _, _| damaged.take()), Look::Unsure);
    index.set_slot(1, SlotContent { sequence: 1, incarnation: LIFE + 1 });
    assert_eq!(look(&mut |_, _, _| Some(IoBuffer::copy_of(whole.as_ref()))), Look::Unsure);
    index.set_slot(1, SlotContent { sequence: 1, incarnation: LIFE });
    index.let_lookups_count(false);
    assert_eq!(look(&mut unread), Look::Unsure);
    index.let_lookups_count(true);
    let most = u32::try_from(MAX_LOOKUP_BYTES / PAGE).expect("a few");
    index.insert(tag, IndexEntry { extent: Extent::Pages(most + 1), ..known });
    assert_eq!(look(&mut unread), Look::Unsure);
}
