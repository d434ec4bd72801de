//! Prints the contents of a store as tables, for people.

use super::{Inspected, class_name, hex};
use crate::commands::fsck;
use foxy_base::ByteSize;
use foxy_report::Table;
use foxy_store::record::FORMAT_VERSION;
use foxy_store::superblock::CopyState;
use foxy_store::webcosm::check::{LogName, Report, SegmentReport, SegmentState};

pub fn of(inspected: &Inspected<'_>) -> String {
    let schemes: Vec<_> = inspected.file.schemes().iter().map(ToString::to_string).collect();
    let mut parts = vec![
        format!(
            "{}: {}, {}, format version {FORMAT_VERSION}\n",
            inspected.file.path.display(),
            schemes.join(" or "),
            ByteSize(inspected.superblock.size)
        ),
        superblocks(inspected),
    ];
    match (&inspected.report, inspected.listed) {
        (Some(report), Some(slot)) => parts.extend([segments(report, Some(slot)), records(report)]),
        (Some(report), None) => {
            parts.extend([
                division(report),
                journal(report),
                segments(report, None),
                sizes(report),
                sums(report),
            ]);
        }
        (None, _) => match &inspected.placed {
            Some(placed) => parts.extend(placed.text(inspected)),
            None => parts.push(format!("{}\n", inspected.file.without_layout())),
        },
    }
    if let Some(report) =
        inspected.report.as_ref().filter(|report| !report.findings.kept.is_empty())
    {
        parts.push(fsck::table(&report.findings));
    }
    parts.join("\n")
}

fn superblocks(inspected: &Inspected<'_>) -> String {
    let mut table = Table::new(&[
        "superblock",
        "state",
        "generation",
        "life",
        "asked for",
        "size",
        "journal half",
    ]);
    for (number, copy) in inspected.copies.iter().enumerate() {
        let mut cells = vec![number.to_string()];
        match copy {
            CopyState::Sound(copy) => cells.extend([
                if *copy == inspected.superblock { "counts" } else { "older" }.into(),
                copy.generation.to_string(),
                copy.opens.to_string(),
                copy.requested.to_string(),
                copy.size.to_string(),
                copy.journal_half.to_string(),
            ]),
            CopyState::OtherVersion(version) => cells.push(format!("version {version}")),
            CopyState::Blank => cells.push("blank".into()),
            CopyState::Damaged => cells.push("damaged".into()),
        }
        table.row(&cells);
    }
    table.render()
}

fn division(report: &Report) -> String {
    let geometry = &report.geometry;
    let mut table = Table::new(&["part", "byte", "bytes", "segments"]);
    for (number, half) in geometry.journal.iter().enumerate() {
        table.row(&[
            format!("journal {number}"),
            half.offset().to_string(),
            half.bytes().to_string(),
        ]);
    }
    for log in LogName::ALL {
        let ring = geometry.rings[log as usize];
        let bytes = u64::from(ring.segments) * geometry.segment_bytes();
        table.row(&[
            format!("log {}", name(log)),
            geometry.offset(ring.first, 0).to_string(),
            bytes.to_string(),
            ring.segments.to_string(),
        ]);
    }
    format!("{}a segment has {} bytes\n", table.render(), geometry.segment_bytes())
}

fn journal(report: &Report) -> String {
    let journal = &report.journal;
    let mut table = Table::new(&["journal", ""]);
    let mut row = |name: &str, value: u64| table.row(&[name.into(), value.to_string()]);
    row("blocks written", journal.blocks);
    row("blocks in all", journal.room);
    row("facts", journal.tombstones);
    for log in LogName::ALL {
        let (tail, end) = (journal.tails[log as usize], journal.durable_ends[log as usize]);
        row(&format!("first segment of {}", name(log)), tail.into());
        row(&format!("first of {} whose summary may not be durable", name(log)), end.into());
    }
    table.render()
}

pub const fn name(log: LogName) -> &'static str {
    match log {
        LogName::Main => "main",
        LogName::Probation => "probation",
    }
}

/// Lists the segments of the log file in the order in which foxy wrote them, then the number of
/// free segments. `only` selects one segment.
fn segments(report: &Report, only: Option<u32>) -> String {
    let heads = [
        "segment",
        "byte",
        "log",
        "number",
        "state",
        "life",
        "records",
        "bytes",
        "live",
        "live bytes",
        "facts",
    ];
    let mut table = Table::new(&heads);
    let wanted = |segment: &&SegmentReport| match only {
        Some(slot) => segment.slot == slot,
        None => segment.state != SegmentState::Free,
    };
    let mut chosen: Vec<_> = report.segments.iter().filter(wanted).collect();
    chosen.sort_by_key(|segment| (segment.log, segment.sequence));
    for segment in chosen {
        table.row(&[
            segment.slot.to_string(),
            segment.at.to_string(),
            name(segment.log).into(),
            segment.sequence.map_or_else(String::new, |sequence| sequence.to_string()),
            segment.state.name().into(),
            segment.incarnation.to_string(),
            segment.records.to_string(),
            segment.bytes.to_string(),
            segment.live_records.to_string(),
            segment.live_bytes.to_string(),
            segment.tombstones.to_string(),
        ]);
    }
    let free = report.segments.iter().filter(|segment| segment.state == SegmentState::Free).count();
    let rest = if only.is_none() { format!("{free} segments are free\n") } else { String::new() };
    format!("{}{rest}", table.render())
}

fn sizes(report: &Report) -> String {
    let mut table = Table::new(&["a get reads", "records", "bytes"]);
    for (class, count) in report.classes.iter().enumerate().filter(|(_, count)| count.records > 0) {
        table.row(&[class_name(class), count.records.to_string(), count.bytes.to_string()]);
    }
    table.render()
}

fn sums(report: &Report) -> String {
    let all: u64 = report.segments.iter().map(|segment| segment.records).sum();
    format!(
        "{all} records are on disk; {} of them are live (not replaced or removed), {} bytes; live \
         records may be purged, and foxy never serves a purged record\n",
        report.live_records(),
        report.live_bytes()
    )
}

fn records(report: &Report) -> String {
    let mut table = Table::new(&["byte", "tag", "a get reads", "standing", "key", "head", "body"]);
    for record in &report.listed {
        let mut cells = vec![
            record.at.to_string(),
            format!("{:010x}", record.tag),
            class_name(usize::from(record.class)),
            record.standing.name().into(),
        ];
        match record.found {
            Some((key, head, body)) => {
                cells.extend([hex(&key.0), head.to_string(), body.to_string()])
            }
            None => cells.push("damaged".into()),
        }
        table.row(&cells);
    }
    table.render()
}
