//! Uses a trace of real requests as the workload of `foxy load`. Also records the number of lines
//! in the trace, and how many of them were left out.

use crate::logs;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_report::{Measure, Record};
use foxy_workload::trace::ReadReport;
use foxy_workload::{Model, Workload};

pub fn read(
    matches: &ArgMatches,
    subject: &str,
) -> Result<Option<(Workload, Vec<Record>)>, Failure> {
    let Some((trace, report)) = logs::read_trace(matches, "load")? else { return Ok(None) };
    let about = logs::reading(&report, &trace);
    let workload = Workload { name: "trace".into(), about, model: Model::Trace(trace.into()) };
    Ok(Some((workload, records(&report, subject))))
}

pub const MEASURES: [&str; 3] = ["trace_lines", "trace_lines_left_out", "trace_lines_broken"];

fn records(report: &ReadReport, subject: &str) -> Vec<Record> {
    let broken =
        report.reasons().filter(|(reason, _)| reason.is_broken()).map(|(_, count)| count).sum();
    let counts = [
        ("trace_lines", report.lines),
        ("trace_lines_left_out", report.lines - report.gets),
        ("trace_lines_broken", broken),
    ];
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let record = |(name, count): (&str, u64)| {
        Record::Measure(Measure::once(name, subject, count as f64, "lines"))
    };
    counts.map(record).into()
}
