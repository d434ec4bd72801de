//! The map of a store as text: a character for each segment.

use super::StoreMap;
use foxy_base::ByteSize;
use foxy_report::Table;
use foxy_store::map::{RecordCount, SegmentPlace, SegmentUse, Survey};

/// Number of segments on a line.
const COLUMNS: usize = 64;

pub fn of(map: &StoreMap<'_>) -> String {
    format!("{}\n{}", map.file.path.display(), survey(&map.survey))
}

fn survey(survey: &Survey) -> String {
    let count = |state| survey.segments.iter().filter(|it| it.state == state).count();
    let live: u64 = survey.segments.iter().map(|segment| segment.live_bytes).sum();
    let mut text = format!(
        "{} segments of {}; {} are free; {} are live\n",
        survey.segments.len(),
        ByteSize(survey.segment_bytes),
        count(SegmentUse::Free),
        ByteSize(live),
    );
    let (states, kind) = if survey.is_log() {
        ("u: unsealed; x: lost or discarded", " log")
    } else {
        ("w: the next record goes here", "")
    };
    text.push_str(&format!("0 to 9: tenths of the segment that are live; .: free; {states}\n"));
    if survey.apart.records > 0 {
        let RecordCount { records, bytes } = survey.apart;
        text.push_str(&format!("{records} records have files of their own: {}\n", ByteSize(bytes)));
    }
    for (log, name) in (0_u8..).zip(survey.areas) {
        text.push_str(&format!("\n{name}{kind}\n"));
        let of_log: Vec<_> = survey.segments.iter().filter(|it| it.log == log).collect();
        for line in of_log.chunks(COLUMNS) {
            let marks: String = line.iter().map(|it| mark(it, survey.is_log())).collect();
            text.push_str(&format!("{:>7} {marks}\n", line[0].slot));
        }
    }
    text.push('\n');
    text + &holes(survey)
}

fn mark(segment: &SegmentPlace, is_log: bool) -> char {
    match segment.state {
        SegmentUse::Free => '.',
        SegmentUse::Open => {
            if is_log {
                'u'
            } else {
                'w'
            }
        }
        SegmentUse::Leaving => 'x',
        SegmentUse::Used | SegmentUse::Sealing | SegmentUse::Sealed | SegmentUse::Copying => {
            let tenths = segment.live_bytes * 10 / segment.bytes.max(1);
            char::from(b'0' + tenths.min(9) as u8)
        }
    }
}

fn holes(survey: &Survey) -> String {
    let mut table = Table::new(&["holes from", "below", "holes", "bytes"]);
    let used = survey.holes.iter().enumerate().filter(|(_, count)| count.holes > 0);
    for (group, count) in used {
        table.row(&[
            ByteSize(survey.least_hole << group).to_string(),
            ByteSize(survey.least_hole << (group + 1)).to_string(),
            count.holes.to_string(),
            ByteSize(count.bytes).to_string(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::map::HoleCount;

    #[test]
    fn each_segment_has_a_character_that_tells_state_and_live_share() {
        let place = |slot, log, state, live_bytes| SegmentPlace {
            slot,
            log,
            state,
            live_bytes,
            bytes: 1 << 20,
            ..SegmentPlace::default()
        };
        let mut map = Survey::empty();
        map.segment_bytes = 1 << 20;
        map.segments = vec![
            place(0, 0, SegmentUse::Sealed, 1 << 20),
            place(1, 0, SegmentUse::Sealed, 1 << 19),
            place(2, 0, SegmentUse::Free, 0),
            place(3, 1, SegmentUse::Open, 4096),
            place(4, 1, SegmentUse::Leaving, 0),
        ];
        map.areas = &["main", "probation"];
        map.holes = vec![HoleCount { holes: 3, bytes: 3 * 4096 }];
        let text = survey(&map);
        for part in [
            "5 segments of 1 MiB; 1 are free",
            "main log\n      0 95.\n",
            "probation log\n      3 ux\n",
            "4 KiB",
            "12 KiB",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }
}
