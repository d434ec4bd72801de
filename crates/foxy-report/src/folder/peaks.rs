//! Judges the peaks of Squid's storage schemes, as `foxy peak` measured them, against Table D-6 of
//! *Squid: The Definitive Guide* (paper 000 in docs/figures.md). The names of the files say what
//! was measured, such as `aufs-noatime-2` for the second run of aufs without access times.

use super::{RecordFile, without_run};
use crate::figure::{Condition, FigureRow, Place};
use crate::record::{Measure, Record};
use crate::statistics::mean;

const FIGURE: &str = "000-d6";
/// The ratios of peaks. Each entry names the file of the numerator and the file of the denominator,
/// without the number of the run. The third text is the ratio's row in the table of quotes.
const RATIOS: [(&str, &str, &str); 6] = [
    ("aufs", "ufs", "three disks: aufs over ufs"),
    ("aufs-noatime", "ufs", "three disks: aufs noatime over ufs"),
    ("aufs-noatime", "aufs", "three disks: aufs noatime over atime"),
    ("diskd-noatime", "aufs-noatime", "three disks, noatime: diskd over aufs"),
    ("aufs-2", "aufs-1", "two disks over one"),
    ("aufs", "aufs-1", "three disks over one"),
];
/// Share by which the mean response time may lie outside the response times that the search allows.
const TOLERANCE: f64 = 0.05;

/// Returns a row for each ratio that the files have, with its verdict. `second` has the files of
/// the same runs at another scale.
pub fn rows(files: &[RecordFile], second: &[RecordFile]) -> Vec<FigureRow> {
    let others = unsettled(second);
    let mut rows = unsettled(files);
    for row in &mut rows {
        row.at_second_scale(others.iter().find(|other| other.row == row.row));
        row.settle();
    }
    rows
}

fn unsettled(files: &[RecordFile]) -> Vec<FigureRow> {
    let row = |&(above, below, name): &(&str, &str, &str)| {
        let (above, below) = (Peaks::of(files, above)?, Peaks::of(files, below)?);
        let ratios: Vec<f64> =
            above.rates.iter().zip(&below.rates).map(|(above, below)| above / below).collect();
        let row = FigureRow::of(FIGURE, name, "times", &ratios)
            .from_place(Place::Measured)
            .at_scale(above.scale)
            .judged()
            .gain()
            .under(Condition::Fills { reached: above.fills.min(below.fills) })
            .under(above.window)
            .under(below.window)
            .under(Condition::TwoScales { other: None });
        Some(row)
    };
    RATIOS.iter().filter_map(row).collect()
}

/// The peaks of all runs of a proxy.
struct Peaks {
    rates: Vec<f64>,
    /// The smallest number of times that any of the runs filled the cache.
    fills: f64,
    window: Condition,
    scale: f64,
}

impl Peaks {
    fn of(files: &[RecordFile], name: &str) -> Option<Self> {
        let runs: Vec<&RecordFile> = files
            .iter()
            .filter(|file| file.is_peak() && without_run(file.stem()) == name)
            .collect();
        let values = |measure: &str| -> Vec<f64> {
            runs.iter().filter_map(|file| value(file.records(), measure)).collect()
        };
        let rates = values("peak_requests_per_second");
        let seconds = |measure: &str| mean(&values(measure)) / 1e6;
        let scale = runs.first()?.records().iter().find_map(|record| match record {
            Record::Setup(setup) => Some(setup.scale),
            _ => None,
        });
        (!rates.is_empty()).then(|| Self {
            rates,
            fills: values("fill").into_iter().fold(f64::INFINITY, f64::min),
            window: Condition::ResponseTime {
                seconds: seconds("peak_response_us"),
                low: seconds("window_low_us") / (1.0 + TOLERANCE),
                high: seconds("window_high_us") * (1.0 + TOLERANCE),
            },
            scale: scale.unwrap_or(1.0),
        })
    }
}

fn value(records: &[Record], name: &str) -> Option<f64> {
    records.iter().find_map(|record| match record {
        Record::Measure(Measure { name: of, value, .. }) if of == name => Some(*value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Verdict;

    fn file(stem: &str, rate: f64, response: f64, scale: f64) -> RecordFile {
        let measures = [
            ("window_low_us", 281_000.0),
            ("window_high_us", 329_000.0),
            ("fill", 2.0),
            ("peak_requests_per_second", rate),
            ("peak_response_us", response),
        ];
        let run = r#"{"kind":"setup","program":"foxy","version":"","command":"foxy peak","#;
        let setup = format!(r#"{run}"seed":1,"scale":{scale},"started":1}}"#);
        let lines = measures.map(|(name, value)| {
            format!(r#"{{"kind":"measure","name":"{name}","subject":"squid","value":{value}}}"#)
        });
        RecordFile::read(stem, &format!("{setup}\n{}", lines.join("\n")))
    }

    fn runs(aufs: f64, response: f64, scale: f64) -> Vec<RecordFile> {
        let of = |name: &str, rate: f64, response: f64| {
            (1..=3).map(|run| file(&format!("{name}-{run}"), rate, response, scale)).collect()
        };
        let both: [Vec<RecordFile>; 2] = [of("aufs", aufs, response), of("ufs", 50.0, 300_000.0)];
        both.concat()
    }

    #[test]
    fn a_ratio_needs_its_window_and_the_same_verdict_at_two_scales() {
        let verdict = |first: &[RecordFile], second: &[RecordFile]| {
            let rows = rows(first, second);
            assert_eq!((rows.len(), rows[0].seeds), (1, 3));
            rows[0].verdict
        };
        let (good, low) = (runs(100.0, 300_000.0, 0.2), runs(100.0, 300_000.0, 0.1));
        assert_eq!(verdict(&good, &low), Verdict::Reproduced);
        assert_eq!(verdict(&good, &[]), Verdict::NoVerdict);
        assert_eq!(verdict(&good, &runs(900.0, 300_000.0, 0.1)), Verdict::NoVerdict);
        assert_eq!(verdict(&runs(100.0, 400_000.0, 0.2), &low), Verdict::NoVerdict);
    }
}
