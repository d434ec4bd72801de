//! Presents the results of `foxy leap` as tables, warnings, records and an HTML page.

use super::bandwidth::Bandwidth;
use super::started::Ended;
use super::tables::milliseconds;
use crate::collector;
use foxy_lab::leap::collector::CollectorReport;
use foxy_lab::leap::{FrontRefusal, LeapReport, PairedDifference, noise_floor};
use foxy_lab::wire::tls::HandshakeFailure;
use foxy_report::chart::{Chart, Line, Look, Provenance, shares_over_times};
use foxy_report::number::readable;
use foxy_report::page::headline;
use foxy_report::{Measure, Page, Record, Setup};

/// One thread sends each request's copies to the proxies. If this thread uses a CPU for more than
/// this share of the time, it limits the rate of the run. The report then warns.
const BUSY: f64 = 0.9;
/// If 1 % of the requests started later than planned by more than this number of microseconds, the
/// report warns.
const LATE: u64 = 10_000;
const KEPT: &str =
    "Requests by the connections of their copies; a reused connection takes no time to connect";

pub struct ReplayOutcome<'a> {
    pub report: &'a LeapReport,
    pub differences: &'a [PairedDifference],
    pub by_class: &'a [PairedDifference],
    pub collector: Option<&'a CollectorReport>,
    pub bandwidth: Bandwidth,
    pub proxies: Option<&'a Ended>,
    pub asked: Option<&'a str>,
}

impl ReplayOutcome<'_> {
    fn setting(&self) -> String {
        let report = self.report;
        let judge = if report.by_origin {
            "the origin's own answers"
        } else {
            "the answer on which more than half of the proxies agree"
        };
        let asked = self.asked.map(|asked| format!("{asked}\n")).unwrap_or_default();
        format!(
            "{asked}{} requests, {} refused for lack of space; reference: {judge}; the origin was \
             asked again after {} requests; {} requests per second, of {} that LEAP's thread can \
             send; times in ms",
            report.requests,
            report.refused,
            report.asked_again,
            readable(report.requests as f64 / report.elapsed.as_secs_f64().max(1e-9)),
            readable(report.ceiling())
        )
    }

    fn floor(&self) -> String {
        let twice =
            if self.proxies.is_some() { "one proxy started twice" } else { "one address twice" };
        match noise_floor(self.differences) {
            Some(floor) => format!(
                "noise floor ({twice}): {} ms in the median, {} ms in the mean",
                milliseconds(floor.median),
                milliseconds(floor.mean)
            ),
            None if self.proxies.is_some() => "noise floor: unknown; name a proxy twice".into(),
            None => {
                "noise floor: unknown; to measure it, list a proxy's address under two names".into()
            }
        }
    }

    pub fn text(&self) -> String {
        let headline = headline(&self.records());
        let headline = headline.map_or_else(String::new, |headline| headline.text() + "\n");
        let mut text = format!(
            "{headline}{}\n{}\n{}\n",
            self.setting(),
            self.times().render(),
            self.verdicts().render()
        );
        for table in [self.errors(), self.examples()].into_iter().flatten() {
            text.push_str(&format!("{}\n", table.render()));
        }
        if let Some(table) = self.connections() {
            text.push_str(&format!("{KEPT}:\n{}\n", table.render()));
        }
        text.push_str(&format!("{}\n{}\n", self.pairs().render(), self.floor()));
        text.push_str(&format!("\n{}\n", self.hits_and_misses().render()));
        if !self.by_class.is_empty() {
            text.push_str(&format!("{}\n", self.classes(false).render()));
        }
        for (path, names) in self.noisy() {
            text.push_str(&format!("fields ignored as noise on {path}: {names}\n"));
        }
        for line in self.clients() {
            text.push_str(&format!("{line}\n"));
        }
        if let Some(report) = self.collector {
            text.push_str(&format!(
                "\nthe Collector behind the proxies:\n{}",
                collector::text(report)
            ));
        }
        if let Some(table) = self.bandwidth.table() {
            text.push_str(&format!("\n{}:\n{}", self.bandwidth.what, table.render()));
        }
        if let Some(unasked) = self.bandwidth.unasked() {
            text.push_str(&format!("{unasked}\n"));
        }
        if let Some(proxies) = self.proxies {
            text.push_str(&format!("\n{}", proxies.table().render()));
        }
        text
    }

    pub fn records(&self) -> Vec<Record> {
        let mut records = self.report.records(&[self.differences, self.by_class].concat());
        if let Some(collector) = self.collector {
            records.extend(collector.records());
            records.extend(collector.proxies.iter().filter(|proxy| proxy.requests > 0).map(
                |proxy| {
                    let count = proxy.prefetches as f64;
                    Record::Measure(Measure::once("prefetches", &proxy.name, count, "requests"))
                },
            ));
        }
        records.extend(self.bandwidth.records());
        records
            .extend(self.proxies.into_iter().flat_map(|proxies| proxies.records.iter().cloned()));
        records
    }

    fn noisy(&self) -> impl Iterator<Item = (&str, String)> {
        let paths = self.report.paths.iter().zip(&self.report.noise);
        paths
            .filter(|(_, names)| !names.is_empty())
            .map(|(path, names)| (&*path.name, names.join(", ")))
    }

    fn clients(&self) -> Vec<String> {
        let Some(clients) = &self.report.clients else { return Vec::new() };
        let mut lines = vec![format!("clients: {} connections", clients.connections)];
        let counts = [
            (
                clients.gone,
                "left before the end of their answer, or read nothing within the time limit",
            ),
            (
                clients.broken,
                "got an incomplete answer, because the answer of the path was incomplete",
            ),
            (
                self.report.held,
                "read an answer more slowly than it arrived; the times of these requests are left \
                 out",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        lines.extend(counts.map(|(count, what)| format!("clients: {count} {what}")));
        for reason in HandshakeFailure::ALL
            .into_iter()
            .filter(|&reason| clients.not_entered[reason as usize] > 0)
        {
            let count = clients.not_entered[reason as usize];
            lines.push(format!(
                "no TLS with a client, {}: {count}: {}",
                reason.name(),
                reason.description()
            ));
        }
        let refused = FrontRefusal::ALL.into_iter().filter(|&reason| clients.refused(reason) > 0);
        lines.extend(refused.map(|reason| {
            let count = clients.refused(reason);
            format!("refused {}: {count}: {}", reason.name(), reason.description())
        }));
        lines
    }

    pub fn warnings(&self) -> Vec<String> {
        let (report, mut warnings) = (self.report, Vec::new());
        let connections = FrontRefusal::TooManyConnections;
        let connections = report.clients.as_ref().map_or(0, |clients| clients.refused(connections));
        let refused = [
            (
                report.refused - connections,
                "requests",
                "in progress; send fewer, or raise --most-in-flight",
            ),
            (connections, "connections", "open; raise --most-connections"),
        ];
        warnings.extend(refused.into_iter().filter(|(count, ..)| *count > 0).map(
            |(count, what, advice)| {
                format!("{count} {what} were refused because too many were {advice}")
            },
        ));
        if report.busy() >= BUSY {
            warnings.push(format!(
                "LEAP, not the proxies, was the limit: its thread was busy {:.0} % of the time, \
                 and can send {} requests per second; lower --rate or --clients",
                report.busy() * 100.0,
                readable(report.ceiling())
            ));
        }
        for path in report.paths.iter().filter(|path| path.late_surplus > 0) {
            warnings.push(format!(
                "{}: on {} reused connections bytes arrived after a complete answer, although no \
                 request waited for them",
                path.name, path.late_surplus
            ));
        }
        let late = report.late.at(0.99);
        if late >= LATE {
            warnings
                .push(format!("1 % of the requests began more than {late} us late; lower --rate"));
        }
        warnings
    }

    pub fn page(&self, setup: &Setup, stopped: Option<&str>) -> String {
        let title = "The same requests to several proxies";
        let mut page = Page::new(title);
        if let Some(headline) = headline(&self.records()) {
            page.headline(&headline);
        }
        page.run(setup, &self.setting(), stopped, &self.warnings());
        page.chart(&self.distribution(setup));
        page.table(
            "Response times of whole answers in milliseconds; connect, first byte and transfer are \
             medians",
            &self.times(),
        );
        page.table("Verdicts", &self.verdicts());
        if let Some(errors) = self.errors() {
            page.table("Errors by cause", &errors);
        }
        if let Some(examples) = self.examples() {
            page.table("Examples", &examples);
        }
        if let Some(table) = self.connections() {
            page.table(KEPT, &table);
        }
        page.table(
            "Paired differences of response times in milliseconds, with bootstrap intervals",
            &self.pairs(),
        );
        page.paragraph(&self.floor());
        page.table("Hits and misses of each path, in milliseconds", &self.hits_and_misses());
        if !self.by_class.is_empty() {
            page.table(
                "Paired differences in milliseconds over the requests of each class, beside the \
                 noise floor of that class",
                &self.classes(true),
            );
        }
        for (path, names) in self.noisy() {
            page.paragraph(&format!("Fields ignored as noise on {path}: {names}."));
        }
        for line in self.clients() {
            page.paragraph(&line);
        }
        if let Some(report) = self.collector {
            page.table("The Collector behind the proxies", &collector::table(report));
            page.paragraph(&collector::collapse(report));
            collector::prefetches(report).for_each(|what| page.paragraph(&what));
        }
        if let Some(table) = self.bandwidth.table() {
            page.table(&format!("Bandwidth: {}", self.bandwidth.what), &table);
        }
        if let Some(unasked) = self.bandwidth.unasked() {
            page.paragraph(&format!("{unasked}."));
        }
        if let Some(proxies) = self.proxies {
            page.table("What the proxies used", &proxies.table());
            proxies.failed.iter().for_each(|why| page.paragraph(why));
            page.set_ups(&proxies.records);
        }
        page.html()
    }

    fn distribution(&self, setup: &Setup) -> Chart {
        let line = |path: &foxy_lab::leap::PathReport| Line {
            name: path.name.clone(),
            look: Look::Solid,
            points: shares_over_times(
                path.latencies.quantiles().into_iter().map(|(share, time)| (share, time as f64)),
            ),
        };
        let answered = self.report.paths.iter().filter(|path| path.latencies.count() > 0);
        let provenance = Provenance::of_run("002 Fig 9", setup);
        let lines = answered.map(line).collect();
        Chart::distribution(
            "Distribution of response times".into(),
            "response time",
            provenance,
            lines,
        )
    }
}
