//! Run records: one JSON object a line, `setup` first and `end` last. Keys keep their meaning; new
//! ones may be added.

use crate::figure::FigureRow;
use crate::{Latencies, Summary};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The machine a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model name.
    pub cpu: String,
    /// Cores that could be used.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: u64,
    /// Kernel name and release.
    pub kernel: String,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The program that ran.
    pub program: String,
    /// Its version.
    pub version: String,
    /// The command with its arguments.
    pub command: String,
    /// Where.
    pub machine: Machine,
    /// The seed of all its random choices.
    pub seed: u64,
    /// By what factor durations and sizes were scaled; 1 is full scale.
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// When it started, in seconds since the Unix epoch.
    pub started: u64,
}

/// One measured value with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured; names are listed in the documentation.
    pub name: String,
    /// The proxy, scheme or engine it was measured of.
    pub subject: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How many runs it comes from.
    pub repeats: u32,
    /// The workload it was measured under, where a record has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Which repeat it is the value of, counted from 1; none for what the repeats come to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

impl Measure {
    /// A value from a single run: its interval is the value itself.
    pub fn once(name: &str, subject: &str, value: f64, unit: &str) -> Self {
        Self {
            name: name.into(),
            subject: subject.into(),
            value,
            unit: unit.into(),
            low: value,
            high: value,
            repeats: 1,
            workload: None,
            repeat: None,
        }
    }

    /// The mean of repeats with its interval; zero when there are none.
    pub fn of(name: &str, subject: &str, values: &[f64], unit: &str) -> Self {
        let mut measure = Self::once(name, subject, 0.0, unit);
        if let Some(summary) = Summary::of(values) {
            let repeats = u32::try_from(summary.count).unwrap_or(u32::MAX);
            (measure.value, measure.low, measure.high, measure.repeats) =
                (summary.mean, summary.low, summary.high, repeats);
        }
        measure
    }
}

/// The requests of one class: hits, misses, a content type, an origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestClass {
    /// The class's name.
    pub class: String,
    /// The proxy, scheme or engine it was measured of.
    pub subject: String,
    /// How many requests.
    pub requests: u64,
    /// Their body bytes.
    pub bytes: u64,
    /// Mean latency in microseconds.
    pub latency_mean_us: f64,
    /// Median latency in microseconds.
    pub latency_p50_us: u64,
    /// The latency that 99 % stay under, in microseconds.
    pub latency_p99_us: u64,
}

impl RequestClass {
    /// A class whose requests took `latencies`.
    pub fn new(class: &str, subject: &str, bytes: u64, latencies: &Latencies) -> Self {
        Self {
            class: class.into(),
            subject: subject.into(),
            requests: latencies.count(),
            bytes,
            latency_mean_us: latencies.mean(),
            latency_p50_us: latencies.at(0.5),
            latency_p99_us: latencies.at(0.99),
        }
    }
}

/// One value over the time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// What was measured.
    pub name: String,
    /// Of whom.
    pub subject: String,
    /// The values' unit.
    pub unit: String,
    /// `[seconds since the start, value]`, in order of time.
    pub points: Vec<(f64, f64)>,
    /// The workload it was measured under, where a record has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

impl Timeline {
    /// A timeline of those points that are finite.
    pub fn new(name: &str, subject: &str, unit: &str, points: &[(f64, f64)]) -> Self {
        let finite =
            points.iter().copied().filter(|(time, value)| time.is_finite() && value.is_finite());
        Self {
            name: name.into(),
            subject: subject.into(),
            unit: unit.into(),
            points: finite.collect(),
            workload: None,
        }
    }
}

/// A proxy that was measured: enough to set it up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Its name, as the other records give it.
    pub subject: String,
    /// What it says its version is.
    pub version: String,
    /// The workload it was set up for.
    pub workload: String,
    /// The command that ran.
    pub command: String,
    /// The files it was given: name and text.
    pub files: Vec<(String, String)>,
    /// What a reader must know to judge its figures fairly.
    pub notes: Vec<String>,
}

/// One line of a run record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// First, once.
    Setup(Setup),
    /// A value.
    Measure(Measure),
    /// What a seed document says beside what was found here.
    FigureRow(FigureRow),
    /// The requests of one class.
    RequestClass(RequestClass),
    /// A value over time.
    Timeline(Timeline),
    /// A distribution of latencies, in microseconds.
    Histogram {
        /// What was measured.
        name: String,
        /// Of whom.
        subject: String,
        /// `[quantile, microseconds]`, rising.
        quantiles: Vec<(f64, u64)>,
        /// The workload it was measured under, where a record has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workload: Option<String>,
    },
    /// Whom something was measured of: what ran, and how it was set up.
    Subject(Subject),
    /// A run that came to nothing, and so has no values.
    FailedRun {
        /// The proxy, scheme or engine that was run.
        subject: String,
        /// Why, in a few words.
        reason: String,
    },
    /// Who was to be run and could not be begun with, such as a proxy that is not installed.
    LeftOut {
        /// The proxy, scheme or engine.
        subject: String,
        /// Why, in a few words.
        reason: String,
    },
    /// Last, once: whether every bar that was given held.
    End {
        /// True when none was missed.
        held: bool,
    },
}

/// Writes records, one a line.
///
/// # Errors
/// What the writer gives; a record that is not finite JSON is an `InvalidData` error.
pub fn write_records(out: &mut impl Write, records: &[Record]) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *out, record)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_timelines_read_back_and_carry_their_kind() {
        let mut latencies = Latencies::default();
        latencies.add(std::time::Duration::from_micros(40));
        let class = Record::RequestClass(RequestClass::new("hit", "foxy", 512, &latencies));
        let timeline = Record::Timeline(Timeline::new(
            "requests_per_second",
            "foxy",
            "1/s",
            &[(0.5, 10.0), (1.0, f64::NAN)],
        ));
        for (record, start) in [
            (
                class,
                r#"{"kind":"request-class","class":"hit","subject":"foxy","requests":1,"bytes":512"#,
            ),
            (
                timeline,
                r#"{"kind":"timeline","name":"requests_per_second","subject":"foxy","unit":"1/s","points":[[0.5,10.0]]}"#,
            ),
        ] {
            let text = serde_json::to_string(&record).expect("JSON");
            assert!(text.starts_with(start), "{text}");
            assert_eq!(serde_json::from_str::<Record>(&text).expect("a record"), record);
        }
    }

    #[test]
    fn records_are_lines_of_json_that_read_back() {
        let records = [
            Record::Measure(Measure::once("hit_ratio", "foxy", 0.5, "share")),
            Record::End { held: true },
        ];
        let mut out = Vec::new();
        write_records(&mut out, &records).expect("writing to memory");
        let text = String::from_utf8(out).expect("JSON is UTF-8");
        assert!(
            text.starts_with(
                r#"{"kind":"measure","name":"hit_ratio","subject":"foxy","value":0.5"#
            ),
            "{text}"
        );
        let back: Vec<Record> =
            text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
        assert_eq!(back, records);
    }
}
