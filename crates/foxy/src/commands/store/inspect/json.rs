//! Prints the contents of a store as JSON, for programs. All sizes are in bytes.

use super::text::name;
use super::{Inspected, class_name, hex};
use crate::commands::fsck;
use foxy_store::record::FORMAT_VERSION;
use foxy_store::superblock::CopyState;
use foxy_store::webcosm::check::{LogName, RecordReport, Report, SegmentReport};
use serde_json::{Value, json};

pub fn of(inspected: &[Inspected<'_>]) -> Value {
    json!({ "stores": inspected.iter().map(store).collect::<Vec<_>>() })
}

fn store(inspected: &Inspected<'_>) -> Value {
    let schemes: Vec<_> = inspected.file.schemes().iter().map(ToString::to_string).collect();
    let mut value = json!({
        "file": inspected.file.path.display().to_string(),
        "schemes": schemes,
        "format_version": FORMAT_VERSION,
        "superblocks": inspected.copies.iter().map(copy).collect::<Vec<_>>(),
    });
    let more = match (&inspected.report, &inspected.placed) {
        (Some(report), _) => webcosm(report, inspected.listed),
        (None, Some(placed)) => placed.as_json(inspected.listed),
        (None, None) => Value::Null,
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn copy(copy: &CopyState) -> Value {
    match copy {
        CopyState::Sound(copy) => json!({
            "state": "sound",
            "generation": copy.generation,
            "life": copy.opens,
            "requested": copy.requested,
            "size": copy.size,
            "journal_half": copy.journal_half,
            "journal_generation": copy.journal_generation,
        }),
        CopyState::OtherVersion(version) => json!({ "state": "other-version", "version": version }),
        CopyState::Blank => json!({ "state": "blank" }),
        CopyState::Damaged => json!({ "state": "damaged" }),
    }
}

fn webcosm(report: &Report, listed: Option<u32>) -> Value {
    let geometry = &report.geometry;
    let logs = LogName::ALL.map(|log| {
        let ring = geometry.rings[log as usize];
        json!({
            "name": name(log),
            "first_segment": ring.first,
            "segments": ring.segments,
            "tail": report.journal.tails[log as usize],
            "durable_end": report.journal.durable_ends[log as usize],
        })
    });
    let journal =
        geometry.journal.map(|half| json!({ "at": half.offset(), "bytes": half.bytes() }));
    let used = report.classes.iter().enumerate().filter(|(_, count)| count.records > 0);
    let sizes = used.map(|(class, count)| {
        json!({ "reads": class_name(class), "records": count.records, "bytes": count.bytes })
    });
    let mut value = json!({
        "geometry": {
            "segment_bytes": geometry.segment_bytes(),
            "first_segment_at": geometry.start,
            "granule": geometry.granule,
            "journal": journal,
            "logs": logs,
        },
        "journal": {
            "blocks": report.journal.blocks,
            "room": report.journal.room,
            "facts": report.journal.tombstones,
        },
        "segments": report.segments.iter().map(segment).collect::<Vec<_>>(),
        "sizes": sizes.collect::<Vec<_>>(),
        "records": report.live_records(),
        "bytes": report.live_bytes(),
        "findings": report.findings.kept.iter().map(fsck::finding).collect::<Vec<_>>(),
    });
    if listed.is_some() {
        value["listed"] = report.listed.iter().map(record).collect();
    }
    value
}

fn segment(segment: &SegmentReport) -> Value {
    json!({
        "segment": segment.slot,
        "at": segment.at,
        "log": name(segment.log),
        "number": segment.sequence,
        "state": segment.state.name(),
        "life": segment.incarnation,
        "summary_pages": segment.summary_pages,
        "records": segment.records,
        "bytes": segment.bytes,
        "live_records": segment.live_records,
        "live_bytes": segment.live_bytes,
        "facts": segment.tombstones,
    })
}

fn record(record: &RecordReport) -> Value {
    let found = record
        .found
        .map(|(key, head, body)| json!({ "key": hex(&key.0), "head": head, "body": body }));
    json!({
        "at": record.at,
        "tag": format!("{:010x}", record.tag),
        "reads": class_name(usize::from(record.class)),
        "standing": record.standing.name(),
        "found": found,
    })
}
