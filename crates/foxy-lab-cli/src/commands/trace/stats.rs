//! `foxy trace stats`: prints statistics of a log, and the hit ratios of LRU caches of several
//! sizes.

use super::files;
use crate::arguments::option;
use crate::experiment::{Conclusion, Experiment, Flag, flags};
use crate::logs;
use clap::{ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_lab::simulation::caches::policies::{CacheSize, Lookups, lru};
use foxy_report::{Measure, Record, Table};
use foxy_workload::trace::statistics::{Repeats, Spread, Statistics};

pub fn command() -> Command {
    Command::new("stats")
        .about("Show statistics of a trace: sizes, popularity, clients, and possible hits")
        .args([files::input(), logs::format()])
        .arg(
            option(
                "cache-sizes",
                "SIZES",
                "Sizes of LRU caches: bytes such as 512M, percent of the bytes of all objects, or infinite",
            )
            .value_delimiter(',')
            .default_value("0.1%,1%,5%,10%,30%")
            .value_parser(value_parser!(CacheSize)),
        )
        .args(flags([Flag::Json]))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (trace, report) = files::read_trace(matches)?;
    let found = Statistics::of(&trace);
    let sizes = matches.get_many::<CacheSize>("cache-sizes").into_iter().flatten();
    let mut curve = curve(&Lookups::of(&trace), sizes);
    let Repeats { gets, bytes } = found.infinite;
    curve.push(Point { name: "infinite".into(), capacity: None, gets, bytes });
    let mut text = files::reading(&report);
    text.push('\n');
    text.push_str(&overview(&found).render());
    text.push('\n');
    text.push_str(&spreads(&found).render());
    text.push('\n');
    text.push_str(&hits_table(&curve).render());
    let lines = [("lines", report.lines), ("lines_left_out", report.lines - report.gets)];
    let lines = lines.map(|(name, count)| measure(name, "log", real(count), "count"));
    let records = lines.into_iter().chain(measures(&found, &curve)).collect();
    let conclusion = Conclusion { text, records, ..Conclusion::default() };
    Experiment::new("trace", matches).finish(conclusion)
}

struct Point {
    name: String,
    capacity: Option<u64>,
    gets: f64,
    bytes: f64,
}

fn curve<'a>(lookups: &Lookups, sizes: impl Iterator<Item = &'a CacheSize>) -> Vec<Point> {
    let point = |size: &CacheSize| {
        let capacity = size.of(lookups);
        let name = match size {
            CacheSize::Percent(percent) => format!("LRU {percent} %"),
            CacheSize::Bytes(_) | CacheSize::Infinite => format!("LRU {size}"),
        };
        let counts = lru(lookups, capacity);
        let (gets, bytes) = (counts.hit_ratio(), counts.byte_hit_ratio());
        Point { name, capacity: Some(capacity), gets, bytes }
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
    for (name, _, spread) in named_spreads(found) {
        let Spread { mean, median, p90, p99, largest } = spread;
        let values = [median, p90, p99, largest].map(|value| value.to_string());
        table.row(
            &[&[name.replace('_', " ").replace("url", "URL"), format!("{mean:.0}")], &values[..]]
                .concat(),
        );
    }
    table
}

/// Returns each spread with the name of its measures and with its unit.
fn named_spreads(found: &Statistics) -> [(&'static str, &'static str, Spread); 3] {
    [
        ("bytes_of_a_get", "B", found.answers),
        ("bytes_of_a_url", "B", found.objects),
        ("gets_of_a_client", "count", found.per_client),
    ]
}

fn hits_table(curve: &[Point]) -> Table {
    let mut table = Table::new(&["cache", "bytes", "hit ratio", "byte hit ratio"]);
    for Point { name, capacity, gets, bytes } in curve {
        let capacity = capacity.map_or("-".into(), |bytes| bytes.to_string());
        table.row(&[name.clone(), capacity, format!("{gets:.3}"), format!("{bytes:.3}")]);
    }
    table
}

fn measures(found: &Statistics, curve: &[Point]) -> Vec<Record> {
    let counts = [
        ("gets", real(found.gets), "count"),
        ("urls", real(found.urls), "count"),
        ("sites", real(found.sites), "count"),
        ("clients", real(found.clients), "count"),
        ("bytes", found.bytes as f64, "B"),
        ("unique_bytes", found.unique_bytes as f64, "B"),
        ("duration_s", real(found.duration) / 1e6, "s"),
    ];
    let mut records: Vec<Record> =
        counts.iter().map(|&(name, count, unit)| measure(name, "trace", count, unit)).collect();
    records.push(measure("urls_asked_for_once", "trace", found.once, "share"));
    if let Some(zipf) = found.zipf {
        records.push(measure("zipf_alpha", "trace", zipf.alpha, "exponent"));
        records.push(measure("zipf_fit", "trace", zipf.fit, "share"));
    }
    for (name, unit, spread) in named_spreads(found) {
        let Spread { mean, median, p90, p99, largest } = spread;
        let counts = [("median", median), ("p90", p90), ("p99", p99), ("largest", largest)];
        let counts = counts.map(|(of, count)| (of, real(count)));
        let all = [("mean", mean)].into_iter().chain(counts);
        records
            .extend(all.map(|(of, value)| measure(&format!("{name}_{of}"), "trace", value, unit)));
    }
    for Point { name, gets, bytes, .. } in curve {
        records.push(measure("hit_ratio", name, *gets, "share"));
        records.push(measure("byte_hit_ratio", name, *bytes, "share"));
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

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::trace::synthetic::{self, MODELS};

    #[test]
    fn the_records_have_all_values_of_the_tables_with_their_units() {
        let found = Statistics::of(&synthetic::generate(&MODELS[0], 2_000, 1));
        let mut units = std::collections::BTreeMap::new();
        for record in measures(&found, &[]) {
            if let Record::Measure(Measure { name, unit, .. }) = record {
                assert_eq!(name, name.to_lowercase());
                units.insert(name, unit);
            }
        }
        let unit = |name: &str| units.get(name).map(String::as_str);
        for of in ["mean", "median", "p90", "p99", "largest"] {
            assert_eq!(unit(&format!("bytes_of_a_get_{of}")), Some("B"), "{of}");
            assert_eq!(unit(&format!("bytes_of_a_url_{of}")), Some("B"), "{of}");
            assert_eq!(unit(&format!("gets_of_a_client_{of}")), Some("count"), "{of}");
        }
        assert_eq!(["bytes", "unique_bytes", "duration_s"].map(unit), ["B", "B", "s"].map(Some));
        assert_eq!(unit("zipf_fit").is_some(), found.zipf.is_some());
    }
}
