//! Measures the delay that LEAP itself adds. One test compares two equal paths (servers that
//! receive a copy of each request) side by side. In the other test, a LEAP run measures another
//! LEAP run.

use super::{CheckSetting, Findings, failed};
use crate::origin;
use foxy_cli::failure::Failure;
use foxy_lab::leap::{Front, LeapPace, LeapReport, Manner, Multiplier, PairedDifference, requests};
use foxy_report::figure::{FigureRow, Place};
use foxy_report::{Measurable, Measure, Record, Table};
use foxy_workload::Workload;
use std::net::SocketAddr;

const RATE: f64 = 1000.0;

/// The names that a table of the LEAP paper (paper 002 in docs/figures.md) gives to the two
/// compared paths.
type Names = [&'static str; 2];
const TABLE_2: Names = ["PT proxy direct", "PT proxy tested"];
const TABLE_3: Names = ["direct", "inner LEAP"];

pub fn run(setting: &CheckSetting<'_>) -> Result<Findings, Failure> {
    let (count, rate) = (setting.count("requests", 5_000, 60_000), setting.rate(RATE));
    let origin = origin::start("leap", 1)?;
    let to = origin.address();
    let start = |error: std::io::Error| failed("overhead", &error.to_string());
    let passing = || Multiplier::pass_through(Some(to)).map_err(start);
    let (one, other, behind) = (passing()?, passing()?, passing()?);
    let inner = setting.of(
        &[("direct", to, Manner::Direct), ("passthrough", behind.address(), Manner::Reverse)],
        LeapPace::Closed(1),
        setting.seed,
    );
    // The inner run needs its own stop flag, because it must end before the check does.
    let inner = foxy_lab::leap::LeapRun { interrupted: std::sync::Arc::default(), ..inner };
    let here = Front::here().map_err(start)?;
    let front = Front { authority: Some(to.to_string()), any_host: true, ..here };
    let inner = Multiplier::start(inner, front).map_err(start)?;
    let mut findings = Findings {
        setting: format!(
            "{count} requests at {rate} a second over loopback, each to both; an origin that answers at once; times in ms"
        ),
        ..Findings::default()
    };
    let measure = |label: &str, direct: SocketAddr, tested: SocketAddr| {
        let paths = [("direct", direct, Manner::Direct), ("tested", tested, Manner::Reverse)];
        let workload = Workload::find("zipf").expect("a workload of ours");
        let stream = requests::of_workload(&workload, setting.seed, count, to.to_string().into());
        let stream = stream.expect("it has objects").collect();
        setting.measure(label, &setting.of(&paths, LeapPace::Rate(rate), setting.seed), stream)
    };
    let penalty = measure("overhead, two pass-through proxies", one.address(), other.address())?;
    let within_itself = measure("overhead, LEAP within LEAP", to, inner.address())?;
    let mut table =
        Table::new(&["path", "mean", "median", "tested less direct: median", "95 %", "mean"]);
    for (name, report, names) in
        [("002-table2", &penalty, TABLE_2), ("002-table3", &within_itself, TABLE_3)]
    {
        add(&mut findings, &mut table, name, report, names);
    }
    findings.tables.push(("the paper's Tables 2 and 3 on this machine", table));
    if let Some(pair) = difference(&within_itself) {
        let of = |micros: f64| micros / 1000.0;
        let (value, low, high) = (of(pair.median.value), of(pair.median.low), of(pair.median.high));
        let measure = Measure::once("added_median_ms", "leap", value, "ms");
        findings.records.push(Record::Measure(Measure { low, high, ..measure }));
        findings
            .conclusions
            .push(format!("LEAP adds {value:.3} ms ({low:.3} … {high:.3}) at the median"));
    }
    Ok(findings)
}

fn difference(report: &LeapReport) -> Option<PairedDifference> {
    report.differences().into_iter().next().map(|pair| PairedDifference {
        paths: (1, 0),
        median: turned(pair.median),
        mean: turned(pair.mean),
        ..pair
    })
}

fn turned(found: foxy_report::Interval) -> foxy_report::Interval {
    foxy_report::Interval { value: -found.value, low: -found.high, high: -found.low }
}

fn add(
    findings: &mut Findings,
    table: &mut Table,
    figure: &str,
    report: &LeapReport,
    names: Names,
) {
    findings.warn_of(figure, report);
    let Some(pair) = difference(report) else { return };
    let row = |name: &str, value: f64| {
        let row = FigureRow::of(figure, name, "ms", &[value]).from_place(Place::Measured);
        row.judged().with_note("the paper's over its network, ours over loopback")
    };
    for ((path, name), is_tested) in report.paths.iter().zip(names).zip([false, true]) {
        let ours = (path.latencies.mean() / 1000.0, path.latencies.at(0.5) as f64 / 1000.0);
        findings.rows.push(row(&format!("{name}, mean"), ours.0));
        findings.rows.push(row(&format!("{name}, median"), ours.1));
        let mut cells = vec![name.to_owned(), format!("{:.3}", ours.0), format!("{:.3}", ours.1)];
        let apart = [pair.median.value, pair.median.low, pair.median.high, pair.mean.value]
            .map(|it| it / 1000.0);
        cells.extend(if is_tested {
            [
                format!("{:.3}", apart[0]),
                format!("{:.3} … {:.3}", apart[1], apart[2]),
                format!("{:.3}", apart[3]),
            ]
        } else {
            [const { String::new() }; 3]
        });
        table.row(&cells);
    }
    for (name, value) in [("mean", pair.mean.value), ("median", pair.median.value)] {
        findings.rows.push(row(&format!("second less first, {name}"), value / 1000.0));
    }
    findings.rows.iter_mut().for_each(FigureRow::settle);
}

pub fn measurable() -> Vec<Measurable> {
    vec![Measurable::of("leap", &["added_median_ms"])]
}
