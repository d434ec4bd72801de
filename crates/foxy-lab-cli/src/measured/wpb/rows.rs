//! Rows with latencies, hits and errors of the reference architectures, next to the values of paper
//! 003.

use super::super::judged_by_value as judged;
use super::{LATENCY, MeasuredWpb, at};
use foxy_lab::load::wpb::Part;
use foxy_report::figure::{FigureRow, Place, within};

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
        let ratio = |measured: &MeasuredWpb| measured.over_control(Part::First, 88);
        let name = "phase 1 over no-cache, 88 clients";
        rows.push(judged(row("003-fig5", name, "times", &ratio(two)), 10.0, within(10.0)).gain());
        rows.push(row("003-fig5", "the same in one phase", "times", &ratio(one)));
    }
    if let (Some(small), Some(large)) = (of("Proxy N"), of("Proxy N with 64")) {
        rows.extend(proxy_n(small, large));
    }
    if let Some(squid) = of("Squid") {
        let ratio =
            squid.values(|points| Some(at(points, 96)?.hit_ratio()? / at(points, 8)?.hit_ratio()?));
        let name = "hit ratio with 96 clients over that with 8";
        rows.push(judged(row("003-fig11", name, "times", &ratio), 1.0, 0.9..=1.1));
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
        let with = row("003-fig2", &name, "times", &ratios).shape(holds);
        rows.push(with.with_note(format!("quoted in words: {words}")));
        let name = format!("the same without the scan, {clients} clients");
        rows.push(row("003-fig2", &name, "times", &none.over_control(Part::Second, clients)));
    }
    rows
}

/// Returns rows for the proxy with a fixed pool of workers. Without a cache, its mean latency is
/// max(latency, clients × latency / workers), where `latency` is the servers' delay. Clients beyond
/// pool and backlog receive errors.
fn proxy_n(small: &MeasuredWpb, large: &MeasuredWpb) -> Vec<FigureRow> {
    let latency = LATENCY.as_secs_f64() * 1000.0;
    let mut rows = Vec::new();
    for clients in [8u32, 32, 48] {
        let expected = f64::max(latency, f64::from(clients) * latency / 32.0);
        let means = small.values(|points| at(points, clients)?.part(Part::Control).mean());
        let row = row("003-fig7", &format!("no-cache latency, {clients} clients"), "ms", &means);
        rows.push(judged(row, expected, within(expected)));
    }
    for (measured, name, quoted) in [(small, "32 workers", 56.0), (large, "64 workers", 88.0)] {
        let name = format!("fewest clients with errors, {name}");
        let row = row("003-fig9", &name, "clients", &measured.first_errors());
        rows.push(judged(row, quoted, quoted..=quoted));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::load::wpb::{PartReport, PointReport};
    use foxy_report::figure::Verdict;
    use std::time::Duration;

    /// Builds the points of a run. Each entry contains the number of clients and the mean latencies
    /// of the three parts in milliseconds.
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

    #[test]
    fn errors_of_a_pool_are_looked_for_from_few_clients_on_and_need_three_runs() {
        let with_errors = |from: u32| {
            let mut points = run(&[(48, [150, 150, 120]), (56, [150, 150, 120])]);
            for point in points.iter_mut().filter(|point| point.clients >= from) {
                point.parts[0].errors[0] = 3;
            }
            points
        };
        let check = |runs: Vec<Vec<PointReport>>, expected: Verdict| {
            let (small, large) =
                (MeasuredWpb { name: "", runs }, MeasuredWpb { name: "", runs: Vec::new() });
            let rows = proxy_n(&small, &large);
            let row =
                rows.iter().find(|row| row.row.ends_with("errors, 32 workers")).expect("a row");
            assert_eq!(row.verdict, expected);
        };
        check(vec![with_errors(56); 3], Verdict::Reproduced);
        check(vec![with_errors(56)], Verdict::ShapeOnly);
        check(vec![with_errors(48); 3], Verdict::DifferentToday);
        check(vec![with_errors(100)], Verdict::NotPossibleHere);
    }
}
