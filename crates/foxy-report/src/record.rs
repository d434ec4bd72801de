//! Run records: one JSON object per line, from `setup` to `end`. Later versions may add keys, but
//! must not change the meaning of a key.

use crate::chart::Chart;
use crate::figure::{Condition, FigureRow, NoVerdictReason};
use crate::{Latencies, Summary};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The machine that ran the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Number of usable cores.
    pub cores: usize,
    /// Memory in bytes.
    pub memory: u64,
    /// Kernel name and release.
    pub kernel: String,
}

/// The measuring program, the machine and the parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Name of the measuring program, `foxy`.
    pub program: String,
    /// Version of the measuring program.
    pub version: String,
    /// Command with arguments.
    #[serde(default)]
    pub command: String,
    /// Machine of the run.
    #[serde(default)]
    pub machine: Machine,
    /// Seed of all random choices of the run.
    pub seed: u64,
    /// Factor for durations and sizes of the experiment; 1 is full scale.
    #[serde(default = "full")]
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Start time in seconds since the Unix epoch.
    pub started: u64,
}

const fn full() -> f64 {
    1.0
}

/// One measured value with its 95 % interval. Without an interval, `low` and `high` equal `value`
/// here, and are `null` in a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenMeasure", into = "WrittenMeasure")]
pub struct Measure {
    /// Name of the measure, such as `requests_per_second`.
    pub name: String,
    /// Name of the measured proxy, store scheme or engine.
    pub subject: String,
    /// Measured value, in `unit`.
    pub value: f64,
    /// Unit of the value.
    pub unit: String,
    /// Lower end of the 95 % interval, in `unit`.
    pub low: f64,
    /// Upper end of the 95 % interval, in `unit`.
    pub high: f64,
    /// Number of runs that the value is a mean of.
    pub repeats: u32,
    /// Workload, if the run has several workloads.
    pub workload: Option<String>,
    /// Number of the repeat, from 1; `None` for the summary of all repeats.
    pub repeat: Option<u32>,
}

/// A measure as a record has it. Scripts leave out the unit, and the interval of a single run.
#[derive(Serialize, Deserialize)]
struct WrittenMeasure {
    name: String,
    subject: String,
    value: f64,
    #[serde(default)]
    unit: String,
    low: Option<f64>,
    high: Option<f64>,
    #[serde(default)]
    repeats: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<u32>,
}

impl From<WrittenMeasure> for Measure {
    fn from(written: WrittenMeasure) -> Self {
        let WrittenMeasure { name, subject, value, unit, low, high, repeats, workload, repeat } =
            written;
        let (low, high) = (low.unwrap_or(value), high.unwrap_or(value));
        let measure = Self { name, subject, value, unit, low, high, repeats, workload, repeat };
        measure.bounded()
    }
}

impl From<Measure> for WrittenMeasure {
    fn from(measure: Measure) -> Self {
        let (low, high) = measure.interval().unzip();
        let Measure { name, subject, value, unit, repeats, workload, repeat, .. } = measure;
        Self { name, subject, value, unit, low, high, repeats, workload, repeat }
    }
}

impl Measure {
    /// Returns the ends of the interval, or `None` if the measure has no interval. Equal values in
    /// all repeats also have none.
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.low < self.high).then_some((self.low, self.high))
    }

    /// Returns whether a value of this measure can lie below 0, because it is a difference.
    fn is_signed(&self) -> bool {
        let name = &self.name;
        ["difference", "minus", "before"].iter().any(|word| name.contains(word))
            || name.starts_with("gap_to_")
    }

    /// Cuts the interval at 0 if no value of this measure can lie below 0.
    fn bounded(mut self) -> Self {
        if self.value >= 0.0 && !self.is_signed() {
            self.low = self.low.max(0.0);
        }
        self
    }

    /// Makes a measure of a single run, without an interval.
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

    /// Makes a measure of repeats: their mean with its interval. The value is 0 without repeats.
    pub fn of(name: &str, subject: &str, values: &[f64], unit: &str) -> Self {
        let mut measure = Self::once(name, subject, 0.0, unit);
        if let Some(summary) = Summary::of(values) {
            let repeats = u32::try_from(summary.count).unwrap_or(u32::MAX);
            (measure.value, measure.low, measure.high, measure.repeats) =
                (summary.mean, summary.low, summary.high, repeats);
        }
        measure.bounded()
    }
}

/// Number, size and latency of all requests of one class, such as hits, misses, a content type or
/// an origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestClass {
    /// Name of the class.
    pub class: String,
    /// Name of the measured proxy, store scheme or engine.
    pub subject: String,
    /// Number of requests.
    pub requests: u64,
    /// Body bytes of all responses.
    pub bytes: u64,
    /// Mean latency in microseconds.
    pub latency_mean_us: f64,
    /// Median latency in microseconds.
    pub latency_p50_us: u64,
    /// 99th percentile of latency in microseconds.
    pub latency_p99_us: u64,
}

impl RequestClass {
    /// Makes a class from its latencies.
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

/// A measure over the time of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Name of the measure.
    pub name: String,
    /// Name of the measured proxy, store scheme or engine.
    pub subject: String,
    /// Unit of the values.
    pub unit: String,
    /// Pairs `[seconds since the start, value]`, in order of time.
    pub points: Vec<(f64, f64)>,
    /// Workload, if the run has several workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

impl Timeline {
    /// Makes a timeline. Drops points that are not finite.
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

/// A measured proxy, with its command line and files, so that readers can repeat its setup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the proxy, as in other records.
    pub subject: String,
    /// Version that the proxy reports.
    pub version: String,
    /// Workload that this setup serves.
    pub workload: String,
    /// Command line of the proxy.
    pub command: String,
    /// Names and contents of the proxy's configuration files.
    pub files: Vec<(String, String)>,
    /// Remarks that help to judge the proxy's values fairly.
    pub notes: Vec<String>,
}

/// One line of a run record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// The setup of the run. It is the first record.
    Setup(Setup),
    /// A measured value.
    Measure(Measure),
    /// A value from a table or figure of a paper, beside the runs' value.
    FigureRow(FigureRow),
    /// A picture of a figure.
    Picture {
        /// Name of the figure, such as `001-fig10`.
        figure: String,
        /// The chart with its values.
        chart: Chart,
    },
    /// The requests of one class.
    RequestClass(RequestClass),
    /// A measure over time.
    Timeline(Timeline),
    /// A distribution of latencies, in microseconds.
    Histogram {
        /// Name of the measure.
        name: String,
        /// Name of the measured proxy, store scheme or engine.
        subject: String,
        /// Pairs `[quantile, microseconds]` in rising order.
        quantiles: Vec<(f64, u64)>,
        /// Workload, if the run has several workloads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workload: Option<String>,
    },
    /// The setup of a measured proxy, with its command line and files.
    Subject(Subject),
    /// A run that produced no values.
    FailedRun {
        /// Name of the proxy, store scheme or engine.
        subject: String,
        /// Reason why the run produced no values, in a few words.
        reason: String,
    },
    /// A subject (proxy, scheme or engine) whose result must not be compared, because a condition
    /// of the verdict (agreement with the paper) failed.
    NoVerdict {
        /// Name of the proxy, store scheme or engine.
        subject: String,
        /// The reasons why there is no verdict.
        reasons: Vec<NoVerdictReason>,
        /// The conditions that failed.
        conditions: Vec<Condition>,
    },
    /// A subject (proxy, scheme or engine) that could not be started, such as a proxy that is not
    /// installed.
    LeftOut {
        /// Name of the proxy, store scheme or engine.
        subject: String,
        /// Reason why the subject could not be started, in a few words.
        reason: String,
    },
    /// The end of a complete run. It is the last record.
    End {
        /// Whether the run met every limit of `--fail-if`.
        held: bool,
    },
}

/// Writes one record per line. A number that is not finite becomes `null`.
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
    fn an_interval_ends_at_zero_unless_the_measure_is_a_difference() {
        let low = |name| Measure::of(name, "foxy", &[1.0, 9.0], "us").low;
        assert_eq!(low("latency_p50_us"), 0.0);
        assert!(low("latency_difference_p50_us_to_squid") < -40.0);
        let old = r#"{"kind":"measure","name":"latency_p50_us","subject":"foxy","value":5.0,"#;
        let old = format!(r#"{old}"low":-45.8,"high":55.8}}"#);
        let Record::Measure(old) = serde_json::from_str(&old).expect("a record") else { panic!() };
        assert_eq!((old.low, old.high), (0.0, 55.8));
    }

    #[test]
    fn a_measure_without_an_interval_has_null_ends_in_a_record() {
        let text = |measure| serde_json::to_string(&Record::Measure(measure)).expect("JSON");
        let once = text(Measure::once("hit_ratio", "foxy", 0.5, "share"));
        assert!(once.contains(r#""unit":"share","low":null,"high":null,"repeats":1}"#), "{once}");
        let wide = text(Measure::of("hit_ratio", "foxy", &[0.5, 0.5, 0.8], "share"));
        assert!(wide.contains(r#""low":0."#) && !wide.contains("null"), "{wide}");
        let equal = text(Measure::of("errors", "foxy", &[0.0, 0.0], "requests"));
        assert!(equal.contains(r#""low":null,"high":null,"repeats":2}"#), "{equal}");
    }

    #[test]
    fn a_script_may_leave_out_unit_and_interval() {
        let text = r#"{"kind":"measure","name":"ns","subject":"none","value":149,"low":null}"#;
        let Record::Measure(read) = serde_json::from_str(text).expect("a record") else { panic!() };
        assert_eq!((read.low, read.high, read.unit.as_str()), (149.0, 149.0, ""));
    }

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
