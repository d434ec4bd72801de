//! Compares the bytes that each path (proxy or origin) of `foxy leap` fetched with the bytes of a
//! path without a cache. The Collector, the proxies' common parent proxy, counts the bytes. Without
//! a Collector, the origin that this command started counts them.

use foxy_base::ByteSize;
use foxy_lab::leap::collector::CollectorReport;
use foxy_lab::leap::{LeapReport, PASSTHROUGH, PathReport};
use foxy_lab::load::origin::Sent;
use foxy_report::{Measure, Record, Table};

#[derive(Default)]
pub struct Bandwidth {
    paths: Vec<Fetched>,
    pub what: &'static str,
    unasked: Option<Sent>,
}

struct Fetched {
    name: String,
    bytes: u64,
    /// The number of complete answers of the path. The command compares bytes per answer. Otherwise
    /// failed requests would look like saved bytes.
    answers: u64,
}

impl Bandwidth {
    pub fn of_collector(report: &LeapReport, collected: &CollectorReport) -> Self {
        let fetched = |path: &PathReport| {
            let proxy = collected.proxies.iter().find(|proxy| proxy.name == path.name)?;
            Some(Fetched { name: path.name.clone(), bytes: proxy.bytes, answers: path.answers })
        };
        let paths = report.paths.iter().filter_map(fetched).collect();
        Self { paths, what: "bytes fetched from the Collector, heads too", unasked: None }
    }

    pub fn of_origin(report: &LeapReport, sent: &[Sent]) -> Self {
        let paths = report.paths.iter().zip(sent).map(|(path, sent)| Fetched {
            name: path.name.clone(),
            bytes: sent.bytes,
            answers: path.answers,
        });
        let unasked = sent.get(report.paths.len()).copied().filter(|sent| sent.answers > 0);
        Self { paths: paths.collect(), what: "bytes of bodies that the origin sent", unasked }
    }

    /// Returns the path without a cache, which is the baseline: the pass-through proxy, or else the
    /// direct path to the origin.
    fn base(&self) -> Option<&Fetched> {
        let fetched =
            |name: &&str| self.paths.iter().find(|path| path.name == **name && path.bytes > 0);
        [PASSTHROUGH, "direct"].iter().find_map(fetched)
    }

    pub fn table(&self) -> Option<Table> {
        let base = self.base()?;
        let of = format!("an answer, of {}", base.name);
        let mut table = Table::new(&["bandwidth", "answers", "bytes", &of]);
        for path in &self.paths {
            let share = share(path, base)
                .map_or_else(|| "–".into(), |share| format!("{:.1} %", share * 100.0));
            table.row(&[
                path.name.clone(),
                path.answers.to_string(),
                ByteSize(path.bytes).to_string(),
                share,
            ]);
        }
        Some(table)
    }

    pub fn unasked(&self) -> Option<String> {
        let Sent { answers, bytes } = self.unasked?;
        Some(format!(
            "fetched without a client's request: {answers} answers with {} of bodies",
            ByteSize(bytes)
        ))
    }

    #[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
    pub fn records(&self) -> Vec<Record> {
        let Some(base) = self.base() else { return Vec::new() };
        let of_base = format!("bandwidth_share_of_{}", base.name);
        let mut records = Vec::new();
        for path in &self.paths {
            let mut add = |what: &str, value, unit| {
                records.push(Record::Measure(Measure::once(what, &path.name, value, unit)));
            };
            add("bandwidth_bytes", path.bytes as f64, "bytes");
            if let Some(share) = share(path, base) {
                add(&of_base, share, "share");
            }
        }
        if let Some(Sent { answers, bytes }) = self.unasked {
            for (name, value, unit) in [
                ("unasked_answers", answers as f64, "answers"),
                ("unasked_bytes", bytes as f64, "bytes"),
            ] {
                records.push(Record::Measure(Measure::once(name, "leap", value, unit)));
            }
        }
        records
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a run are far below 2^53")]
fn share(path: &Fetched, base: &Fetched) -> Option<f64> {
    let each = |path: &Fetched| (path.answers > 0).then(|| path.bytes as f64 / path.answers as f64);
    Some(each(path)? / each(base)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_fails_requests_saves_no_bandwidth_by_it() {
        let fetched = |name: &str, bytes, answers| Fetched { name: name.into(), bytes, answers };
        let base = fetched("direct", 4000, 40);
        assert_eq!(share(&fetched("fails", 2900, 29), &base), Some(1.0));
        assert_eq!(share(&fetched("stores", 2000, 40), &base), Some(0.5));
        assert_eq!(share(&fetched("dead", 0, 0), &base), None);
    }
}
