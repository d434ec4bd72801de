//! `foxy trace stats`: what a log is like, and what LRU caches of some sizes would hit in it.

use super::files;
use super::sizes::CacheSize;
use crate::failure::Failure;
use crate::lab::records;
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_report::{Measure, Record, Table};
use foxy_workload::Trace;
use foxy_workload::trace::lru_curve::{self, Hits};
use foxy_workload::trace::statistics::{Spread, Statistics};
use std::path::PathBuf;

/// Its arguments.
pub fn command() -> Command {
    Command::new("stats")
        .about("Say what a trace is like: sizes, popularity, clients, and the hits that caches could have")
        .args([files::input(), files::format()])
        .arg(
            Arg::new("cache-sizes")
                .long("cache-sizes")
                .value_name("SIZES")
                .value_delimiter(',')
                .default_value("0.1%,1%,5%,10%,30%")
                .value_parser(value_parser!(CacheSize))
                .help("Sizes of LRU caches, in bytes such as 512M or in percent of the unique bytes"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write run records, one JSON object a line"),
        )
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (trace, report) = files::read_trace(matches)?;
    let found = Statistics::of(&trace);
    let sizes = matches.get_many::<CacheSize>("cache-sizes").into_iter().flatten();
    let mut curve = curve(&trace, &found, sizes);
    curve.push(("infinite".into(), found.infinite));
    let mut text = files::reading(&report);
    text.push('\n');
    text.push_str(&overview(&found).render());
    text.push('\n');
    text.push_str(&spreads(&found).render());
    text.push('\n');
    text.push_str(&hits_table(&curve).render());
    terminal::print(text.trim_end());
    if let Some(path) = matches.get_one::<PathBuf>("json") {
        let lines = [("lines", report.lines), ("lines_left_out", report.lines - report.gets)];
        let lines = lines.map(|(name, count)| measure(name, "log", real(count), "count"));
        let records = lines.into_iter().chain(measures(&found, &curve)).collect();
        records::write(path, records::setup(0), records, true)?;
    }
    Ok(())
}

/// Hits of caches of these sizes, each with the name it is shown under.
fn curve<'a>(
    trace: &Trace,
    found: &Statistics,
    sizes: impl Iterator<Item = &'a CacheSize>,
) -> Vec<(String, Hits)> {
    let point = |size: &CacheSize| {
        let bytes = size.of(found.unique_bytes);
        let name = match size {
            CacheSize::Percent(percent) => format!("LRU {percent} %"),
            CacheSize::Bytes(_) => format!("LRU {}", ByteSize(bytes)),
        };
        (name, lru_curve::hits(trace, bytes))
    };
    sizes.map(point).collect()
}

fn overview(found: &Statistics) -> Table {
    let mut table = Table::new(&["trace", "value"]);
    let mut row = |name: &str, value: String| table.row(&[name.into(), value]);
    row("gets", found.gets.to_string());
    row("URLs", found.urls.to_string());
    row("origin servers", found.sites.to_string());
    row("clients", found.clients.to_string());
    row("bytes", found.bytes.to_string());
    row("unique bytes (last size of each URL)", found.unique_bytes.to_string());
    row("URLs asked for once", format!("{:.1} %", found.once * 100.0));
    if let Some(zipf) = found.zipf {
        let name = format!("Zipf exponent (ranks {} to {})", zipf.from, zipf.to);
        row(&name, format!("{:.3}", zipf.alpha));
        row("its fit, R²", format!("{:.3}", zipf.fit));
    }
    row("duration, seconds", format!("{:.0}", real(found.duration) / 1e6));
    table
}

fn spreads(found: &Statistics) -> Table {
    let mut table = Table::new(&["spread", "mean", "median", "p90", "p99", "largest"]);
    for (name, spread) in named_spreads(found) {
        let Spread { mean, median, p90, p99, largest } = spread;
        let values = [median, p90, p99, largest].map(|value| value.to_string());
        table.row(&[&[name.replace('_', " "), format!("{mean:.0}")], &values[..]].concat());
    }
    table
}

fn named_spreads(found: &Statistics) -> [(&'static str, Spread); 3] {
    [
        ("bytes_of_a_get", found.answers),
        ("bytes_of_a_URL", found.objects),
        ("gets_of_a_client", found.per_client),
    ]
}

fn hits_table(curve: &[(String, Hits)]) -> Table {
    let mut table = Table::new(&["cache", "bytes", "hit ratio", "byte hit ratio"]);
    for (name, hits) in curve {
        let bytes = if hits.capacity == u64::MAX { "-".into() } else { hits.capacity.to_string() };
        table.row(&[name.clone(), bytes, format!("{:.3}", hits.gets), format!("{:.3}", hits.bytes)]);
    }
    table
}

fn measures(found: &Statistics, curve: &[(String, Hits)]) -> Vec<Record> {
    let counts = [
        ("gets", found.gets, "count"),
        ("urls", found.urls, "count"),
        ("sites", found.sites, "count"),
        ("clients", found.clients, "count"),
        ("bytes", found.bytes, "bytes"),
        ("unique_bytes", found.unique_bytes, "bytes"),
        ("duration", found.duration, "microseconds"),
    ];
    let mut records: Vec<Record> =
        counts.iter().map(|&(name, count, unit)| measure(name, "trace", real(count), unit)).collect();
    records.push(measure("urls_asked_for_once", "trace", found.once, "share"));
    if let Some(zipf) = found.zipf {
        records.push(measure("zipf_alpha", "trace", zipf.alpha, "exponent"));
    }
    for (name, spread) in named_spreads(found) {
        records.push(measure(&format!("{name}_mean"), "trace", spread.mean, "count"));
        records.push(measure(&format!("{name}_median"), "trace", real(spread.median), "count"));
    }
    for (name, hits) in curve {
        records.push(measure("hit_ratio", name, hits.gets, "share"));
        records.push(measure("byte_hit_ratio", name, hits.bytes, "share"));
    }
    records
}

fn measure(name: &str, subject: &str, value: f64, unit: &str) -> Record {
    Record::Measure(Measure::once(name, subject, value, unit))
}

#[expect(clippy::cast_precision_loss, reason = "a statistic to be shown")]
fn real(number: u64) -> f64 {
    number as f64
}
