//! Presents the results of `foxy wpb`: tables, errors, warnings, and a page. The page has Figures 2
//! to 11 of the benchmark's paper (paper 003 in docs/figures.md).

use super::arguments::WpbPlan;
use super::busy::BusyPoint;
use crate::peers::usage::Spent;
use foxy_base::ByteSize;
use foxy_cli::units::show_duration;
use foxy_lab::load::wpb::{LATENCY, Part, PointReport, scale};
use foxy_report::chart::{Axis, Better, Chart, Line, Look, Plot, Provenance, Spread, Value};
use foxy_report::number::readable;
use foxy_report::{Page, Setup, Table, scale_text};

/// If the thread of the clients uses a CPU for more than this share of the time, the clients limit
/// the run. The report then warns.
const BUSY: f64 = 0.9;
/// By the rule of the benchmark, the test of each number of clients must fetch at least this many
/// times the cache size.
const TIMES: u64 = 4;

pub struct Outcome<'a> {
    pub plan: &'a WpbPlan,
    pub points: &'a [BusyPoint],
}

impl Outcome<'_> {
    fn setting(&self) -> String {
        let (knobs, latency) = (self.plan.knobs, show_duration(self.plan.latency));
        let compressed = if self.plan.latency == LATENCY {
            String::new()
        } else {
            format!(
                " instead of {} (scale {})",
                show_duration(LATENCY),
                scale_text(scale(self.plan.latency))
            )
        };
        format!(
            "server latency {latency}{compressed}; {} requests of a client in each phase; \
             latencies in ms",
            knobs.requests
        )
    }

    pub fn text(&self) -> String {
        let errors = self.errors();
        let errors = errors.map_or_else(|| "no errors".into(), |table| table.render());
        let used = self.used().map_or_else(String::new, |used| format!("{}\n", used.render()));
        format!("{}\n{}\n{used}{errors}", self.setting(), self.table().render())
    }

    fn table(&self) -> Table {
        let heads = [
            "clients",
            "servers",
            "no-cache",
            "phase 1",
            "phase 2",
            "both",
            "hit ratio",
            "byte hit ratio",
        ];
        let mut table = Table::new(&[&heads[..], &["offered", "errors", "fetched"]].concat());
        for point in self.reports() {
            let errors: u64 = point.parts.iter().map(foxy_lab::load::wpb::PartReport::failed).sum();
            table.row(&[
                point.clients.to_string(),
                point.servers.to_string(),
                shown(point.part(Part::Control).mean()),
                shown(point.part(Part::First).mean()),
                shown(point.part(Part::Second).mean()),
                shown(point.mean()),
                share(point.hit_ratio()),
                share(point.byte_hit_ratio()),
                share(point.offered()),
                errors.to_string(),
                ByteSize(point.fetched()).to_string(),
            ]);
        }
        table
    }

    fn used(&self) -> Option<Table> {
        let found: Vec<(&BusyPoint, Spent)> =
            self.points.iter().filter_map(|point| Some((point, point.both()?))).collect();
        let disks: Vec<String> = (1..=self.disks()).map(|number| self.disk(number)).collect();
        let disks = disks.iter().map(|name| format!("{name} busy")).collect::<Vec<_>>();
        let heads = ["clients", "cores busy", "CPU µs/request"].into_iter();
        let mut table =
            Table::new(&heads.chain(disks.iter().map(String::as_str)).collect::<Vec<_>>());
        for (point, spent) in &found {
            let mut row = vec![point.report.clients.to_string(), share(Some(spent.cores()))];
            row.push(shown(spent.each(point.requests())));
            row.extend(spent.disks().map(share));
            table.row(&row);
        }
        (!found.is_empty()).then_some(table)
    }

    fn disks(&self) -> usize {
        self.points
            .iter()
            .flat_map(|point| &point.spent)
            .map(|(_, spent)| spent.disks().count())
            .max()
            .unwrap_or(0)
    }

    fn disk(&self, number: usize) -> String {
        if self.disks() == 1 { "disk".into() } else { format!("disk {number}") }
    }

    fn reports(&self) -> impl Iterator<Item = &PointReport> {
        self.points.iter().map(|point| &point.report)
    }

    fn errors(&self) -> Option<Table> {
        let mut table = Table::new(&["clients", "part", "cause", "errors", "of requests"]);
        let mut any = false;
        for point in self.reports() {
            for part in Part::ALL {
                let report = point.part(part);
                for (cause, count) in report.causes() {
                    any = true;
                    let all = report.answers + report.failed();
                    let (clients, part) = (point.clients.to_string(), part.name().to_owned());
                    table.row(&[
                        clients,
                        part,
                        cause.name().into(),
                        count.to_string(),
                        all.to_string(),
                    ]);
                }
            }
        }
        any.then_some(table)
    }

    pub fn warnings(&self) -> Vec<String> {
        let clients = |is: &dyn Fn(&PointReport) -> bool| -> Option<String> {
            let found =
                self.reports().filter(|point| is(point)).map(|point| point.clients.to_string());
            let found: Vec<String> = found.collect();
            (!found.is_empty()).then(|| found.join(", "))
        };
        let mut warnings = Vec::new();
        if let Some(at) = clients(&|point| point.part(Part::First).hits > 0) {
            warnings.push(format!(
                "phase 1 had hits at {at} clients, although each of its files is new: an earlier \
                 run left files in the cache; clear the cache, or give another --seed"
            ));
        }
        if let Some(cache) = self.plan.cache
            && let Some(at) = clients(&|point| point.fetched() < cache.0.saturating_mul(TIMES))
        {
            warnings.push(format!(
                "at {at} clients less than {TIMES} times the cache size of {cache} was fetched, so \
                 the cache replaced few objects; raise --requests, or make the cache smaller"
            ));
        }
        if let Some(at) = clients(&|point| point.parts.iter().any(|part| part.busy() >= BUSY)) {
            warnings.push(format!(
                "the generator, not the proxy, was the limit at {at} clients: its thread was busy \
                 {:.0} % of the time or more; give a longer --latency",
                BUSY * 100.0
            ));
        }
        warnings
    }

    pub fn page(&self, setup: &Setup, stopped: Option<&str>) -> String {
        let title = format!("Wisconsin Proxy Benchmark: {}", self.plan.subject);
        let mut page = Page::of_run(&title, setup, &self.setting(), stopped, &self.warnings());
        for chart in self.charts(setup) {
            page.chart(&chart);
        }
        page.table("Latencies are means in milliseconds", &self.table());
        if let Some(used) = self.used() {
            page.chart(&self.busy(setup));
            page.table("What the proxy used in both phases", &used);
        }
        if let Some(errors) = self.errors() {
            page.table("Errors by cause", &errors);
        }
        page.html()
    }

    fn charts(&self, setup: &Setup) -> [Chart; 3] {
        let line = |name: &str, look, value: &dyn Fn(&PointReport) -> Option<f64>| Line {
            name: name.into(),
            look,
            points: self
                .reports()
                .filter_map(|point| Some((f64::from(point.clients), Value::exact(value(point)?))))
                .collect(),
        };
        let of = |part: Part| move |point: &PointReport| point.part(part).mean();
        let latency = vec![
            line("no cache", Look::Dashed, &of(Part::Control)),
            line("phase 1", Look::Solid, &of(Part::First)),
            line("phase 2", Look::Solid, &of(Part::Second)),
            line("both phases", Look::Solid, &PointReport::mean),
        ];
        let chart = |title, source, y, lines| {
            self.chart(title, Provenance::of_run(source, setup), y, lines)
        };
        let percent = |ratio: Option<f64>| ratio.map(|ratio| ratio * 100.0);
        let hits = vec![
            line("hit ratio", Look::Solid, &|point| percent(point.hit_ratio())),
            line("byte hit ratio", Look::Solid, &|point| percent(point.byte_hit_ratio())),
            line("offered", Look::Dashed, &|point| percent(point.offered())),
        ];
        let errors = Part::ALL.map(|part| {
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
            let failed = move |point: &PointReport| Some(point.part(part).failed() as f64);
            line(
                part.name(),
                if part == Part::Control { Look::Dashed } else { Look::Solid },
                &failed,
            )
        });
        [
            chart("Mean latency", "003 Figs 2, 5, 7, 10", Axis::linear("latency", "ms"), latency),
            chart(
                "Hit ratios of both phases",
                "003 Figs 3, 6, 8, 11",
                Axis::linear("hit ratio", "%"),
                hits,
            ),
            chart(
                "Errors",
                "paper 003, Figs 4 and 9",
                Axis::linear("failed requests", ""),
                errors.into(),
            ),
        ]
    }

    fn busy(&self, setup: &Setup) -> Chart {
        let line = |name: String, look, value: &dyn Fn(&Spent) -> Option<f64>| {
            let points = self.points.iter().filter_map(|point| {
                let value = value(&point.both()?)? * 100.0;
                Some((f64::from(point.report.clients), Value::exact(value)))
            });
            Line { name, look, points: points.collect() }
        };
        let mut lines =
            vec![line("processor, % of a core".into(), Look::Solid, &|spent| Some(spent.cores()))];
        lines.extend((1..=self.disks()).map(|number| {
            line(self.disk(number), Look::Dashed, &|spent| spent.disks().nth(number - 1).flatten())
        }));
        lines.retain(|line| !line.points.is_empty());
        self.chart(
            "Processor and disk",
            Provenance::of_run("003", setup),
            Axis::linear("busy", "%"),
            lines,
        )
    }

    fn chart(&self, title: &str, provenance: Provenance, y: Axis, lines: Vec<Line>) -> Chart {
        Chart {
            title: format!("{title}: {}", self.plan.subject),
            better: Better::of_measure(&title.to_lowercase()),
            provenance,
            spread: Spread::default(),
            x: Axis::linear("clients", "").showing(0.0),
            y: y.showing(0.0),
            plot: Plot::Lines(lines),
        }
    }
}

fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), readable)
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| "–".into(), |share| format!("{share:.3}"))
}
