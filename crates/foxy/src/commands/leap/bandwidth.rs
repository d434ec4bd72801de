//! What each path fetched beside one without a cache (R127): from the Collector, or without one from the origin that was started here.

use super::parent::PASSTHROUGH;
use foxy_lab::collector::CollectorReport;
use foxy_lab::leap::LeapReport;
use foxy_lab::origin::Sent;
use foxy_report::{Measure, Record, Table};

/// What was fetched.
#[derive(Default)]
pub struct Bandwidth {
    /// By path: its name, and bytes.
    paths: Vec<(String, u64)>,
    /// What the bytes are.
    pub what: &'static str,
    /// What was fetched for no request of a path: a proxy asked by itself.
    unasked: Option<Sent>,
}

impl Bandwidth {
    /// From the Collector, heads too.
    pub fn of_collector(report: &CollectorReport) -> Self {
        let named = report.proxies.iter().filter(|proxy| !proxy.name.is_empty());
        let paths = named.map(|proxy| (proxy.name.clone(), proxy.bytes)).collect();
        Self { paths, what: "bytes fetched from the Collector, heads too", unasked: None }
    }

    /// From the origin, which counted what it sent for each path, and last what it sent for requests without a number.
    pub fn of_origin(report: &LeapReport, sent: &[Sent]) -> Self {
        let paths = report.paths.iter().zip(sent).map(|(path, sent)| (path.name.clone(), sent.bytes));
        let unasked = sent.get(report.paths.len()).copied().filter(|sent| sent.answers > 0);
        Self { paths: paths.collect(), what: "bytes of bodies that the origin sent", unasked }
    }

    /// The pass-through proxy, or without one the direct path, which stores nothing either.
    fn base(&self) -> Option<&(String, u64)> {
        [PASSTHROUGH, "direct"]
            .iter()
            .find_map(|name| self.paths.iter().find(|(path, bytes)| path == name && *bytes > 0))
    }

    /// For people; none when there is nothing to compare with.
    pub fn table(&self) -> Option<Table> {
        let (base, _) = self.base()?;
        let mut table = Table::new(&["bandwidth", "bytes", &format!("of {base}")]);
        for (name, bytes) in &self.paths {
            let share = format!("{:.1} %", self.share(*bytes) * 100.0);
            table.row(&[name.clone(), bytes.to_string(), share]);
        }
        Some(table)
    }

    /// What was fetched without a request, in a sentence.
    pub fn unasked(&self) -> Option<String> {
        let Sent { answers, bytes } = self.unasked?;
        Some(format!("fetched for no request of a client: {answers} answers with {bytes} bytes of bodies"))
    }

    /// As run records.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
    pub fn records(&self) -> Vec<Record> {
        let Some((base, _)) = self.base() else { return Vec::new() };
        let share = format!("bandwidth_share_of_{base}");
        let of_path = |(name, bytes): &(String, u64)| {
            let values = [("bandwidth_bytes", *bytes as f64, "bytes"), (&share, self.share(*bytes), "share")];
            values.map(|(what, value, unit)| Record::Measure(Measure::once(what, name, value, unit)))
        };
        let mut records: Vec<Record> = self.paths.iter().flat_map(of_path).collect();
        if let Some(Sent { answers, bytes }) = self.unasked {
            for (name, value, unit) in
                [("unasked_answers", answers as f64, "answers"), ("unasked_bytes", bytes as f64, "bytes")]
            {
                records.push(Record::Measure(Measure::once(name, "leap", value, unit)));
            }
        }
        records
    }

    #[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
    fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.base().map_or(1.0, |(_, base)| *base as f64)
    }
}
