//! Measures the CPU and disk use of a proxy in each part of a point. A point is a test of the
//! Wisconsin Proxy Benchmark with a fixed number of clients.

use crate::peers::single::Single;
use crate::peers::usage::{Moment, Spent};
use foxy_lab::load::wpb::{Part, PartReport, PointReport};
use foxy_report::{Measurable, Measure, Record};

pub struct BusyPoint {
    pub report: PointReport,
    pub spent: Vec<(Part, Spent)>,
}

pub struct Watched<'a> {
    single: Option<&'a mut Single>,
    last: Option<Moment>,
    pub spent: Vec<(Part, Spent)>,
}

impl<'a> Watched<'a> {
    /// Creates the measurement. `single` is the proxy that this command started. With `None`, the
    /// user started the proxy, and this command cannot measure its use.
    pub fn new(mut single: Option<&'a mut Single>) -> Self {
        let last = single.as_mut().and_then(|single| single.moment());
        Self { single, last, spent: Vec::new() }
    }

    pub fn ended(&mut self, part: Part) {
        let now = self.single.as_mut().and_then(|single| single.moment());
        let spent = self.last.as_ref().zip(now.as_ref()).map(|(last, now)| (part, last.until(now)));
        self.spent.extend(spent);
        self.last = now;
    }
}

impl BusyPoint {
    fn of(&self, wanted: Part) -> Option<&Spent> {
        self.spent.iter().find(|(part, _)| *part == wanted).map(|(_, spent)| spent)
    }

    pub fn both(&self) -> Option<Spent> {
        let phases = self.of(Part::First)?.and(self.of(Part::Second)?);
        self.report.whole.then_some(phases)
    }

    pub fn requests(&self) -> u64 {
        [Part::First, Part::Second].map(|part| asked(self.report.part(part))).iter().sum()
    }

    pub fn records(&self, subject: &str) -> Vec<Record> {
        let mut records = self.report.records(subject);
        let point = format!("wpb-{}", self.report.clients);
        for (part, spent) in &self.spent {
            let workload = format!("{point}-{}", part.name());
            records.extend(measures(subject, &workload, spent, asked(self.report.part(*part))));
        }
        if let Some(both) = self.both() {
            records.extend(measures(subject, &point, &both, self.requests()));
        }
        records
    }
}

fn asked(report: &PartReport) -> u64 {
    report.answers + report.failed()
}

fn measures(subject: &str, workload: &str, spent: &Spent, requests: u64) -> Vec<Record> {
    let measure = |name: &str, value, unit| {
        let workload = Some(workload.to_owned());
        Record::Measure(Measure { workload, ..Measure::once(name, subject, value, unit) })
    };
    let mut found = vec![measure("cpu_busy", spent.cores(), "cores")];
    found.extend(spent.each(requests).map(|each| measure("cpu_us_per_request", each, "us")));
    for (number, busy) in spent.disks().enumerate() {
        found.extend(busy.map(|busy| measure(&disk_name(number), busy, "share")));
    }
    found
}

pub fn measurable(all: Measurable, disks: usize) -> Measurable {
    all.and(&["cpu_busy", "cpu_us_per_request", "{disk}"])
        .choosing("disk", (0..disks).map(disk_name))
}

fn disk_name(number: usize) -> String {
    if number == 0 { "disk_busy".into() } else { format!("disk_{}_busy", number + 1) }
}
