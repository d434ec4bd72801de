//! The rows with latencies, hits and errors of the reference architectures, next to the values of
//! the benchmark's paper (paper 003 in docs/figures.md).

use super::MeasuredWpb;
use foxy_lab::load::wpb::Part;
use foxy_report::figure::{Condition, FigureRow, Place};

fn row(figure: &str, name: &str, unit: &str, values: &[f64]) -> FigureRow {
    FigureRow::of(figure, name, unit, values).from_place(Place::Measured)
}

pub fn rows(all: &[MeasuredWpb]) -> Vec<FigureRow> {
    let of = |name: &str| all.iter().find(|measured| measured.name == name);
    let mut rows = Vec::new();
    if let (Some(scan), Some(none)) = (of("CERN"), of("CERN without scan")) {
        rows.extend(cern(scan, none));
    }
    if let (Some(two), Some(one)) = (of("Apache"), of("Apache in one phase")) {
        let [two, one] = [two, one].map(|measured| measured.over_control(Part::First, 88));
        let cause = Condition::smaller("two-phase write", "one phase against two", &one, &two);
        let name = "phase 1 over no-cache, 88 clients";
        rows.push(row("003-fig5", name, "times", &two).judged().gain().under(cause));
        rows.push(row("003-fig5", "the same in one phase", "times", &one));
    }
    rows
}

fn cern(scan: &MeasuredWpb, none: &MeasuredWpb) -> Vec<FigureRow> {
    let mut rows = Vec::new();
    for clients in [8, 32, 64, 96] {
        let ratios = scan.over_control(Part::Second, clients);
        let name = format!("phase 2 over no-cache, {clients} clients");
        let (holds, words) = if clients <= 32 {
            (ratios.iter().all(|&ratio| ratio < 1.0), "below 1 up to 32 clients")
        } else {
            (ratios.iter().all(|&ratio| ratio > 1.0), "above 1 beyond 32 clients")
        };
        let without = none.over_control(Part::Second, clients);
        let count = "ratio without the scan, against the ratio with it";
        let cause = Condition::smaller("a hit reads files longer", count, &without, &ratios);
        let with = row("003-fig2", &name, "times", &ratios).judged().shape(holds).under(cause);
        rows.push(with.with_note(words));
        let name = format!("the same without the scan, {clients} clients");
        rows.push(row("003-fig2", &name, "times", &without));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::load::wpb::{PartReport, PointReport};
    use foxy_report::figure::Verdict;
    use std::time::Duration;

    /// Builds the report of a run. Each entry of `points` has a number of clients and the mean
    /// latencies of the three parts in milliseconds.
    fn run(points: &[(u32, [u64; 3])]) -> Vec<PointReport> {
        let part = |milliseconds: u64| {
            let mut part = PartReport { answers: 1, ..PartReport::default() };
            part.latencies.add(Duration::from_millis(milliseconds));
            part
        };
        let point = |&(clients, means): &(u32, [u64; 3])| PointReport {
            clients,
            servers: 1,
            parts: means.map(part),
            whole: true,
        };
        points.iter().map(point).collect()
    }

    #[test]
    fn a_crossing_has_the_quoted_shape_only_when_every_run_is_on_its_side() {
        let scan = MeasuredWpb {
            name: "CERN",
            runs: vec![
                run(&[(8, [100, 100, 60]), (96, [200, 300, 250])]),
                run(&[(8, [100, 100, 120]), (96, [200, 300, 220])]),
            ],
        };
        let rows = cern(&scan, &MeasuredWpb { name: "CERN without scan", runs: Vec::new() });
        let verdict = |name: &str| rows.iter().find(|row| row.row == name).expect("a row").verdict;
        assert_eq!(verdict("phase 2 over no-cache, 8 clients"), Verdict::DifferentToday);
        assert_eq!(verdict("phase 2 over no-cache, 96 clients"), Verdict::ShapeOnly);
        assert_eq!(verdict("the same without the scan, 96 clients"), Verdict::NoQuote);
    }
}
