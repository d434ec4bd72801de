//! Tables of the results of `foxy leap`.

use super::report::ReplayOutcome;
use foxy_base::ByteSize;
use foxy_lab::leap::{
    Carriage, Class, Connections, PairedDifference, PathFailure, Verdict, noise_floor,
    noise_floor_of,
};
use foxy_report::number::readable;
use foxy_report::{Interval, Latencies, Table};

pub fn milliseconds(microseconds: f64) -> String {
    readable(microseconds / 1000.0)
}

impl ReplayOutcome<'_> {
    pub fn times(&self) -> Table {
        let heads = [
            "path",
            "answers",
            "mean",
            "errors in",
            "median",
            "p90",
            "p99",
            "connect",
            "first byte",
        ];
        let mut table = Table::new(
            &[&heads[..], &["transfer", "hit ratio", "byte hit ratio", "fetched"]].concat(),
        );
        for path in &self.report.paths {
            let share = |value: Option<f64>| {
                value.map_or_else(|| "–".into(), |value| format!("{value:.3}"))
            };
            let hits = path.hit_ratios();
            table.row(&[
                path.name.clone(),
                path.answers.to_string(),
                mean(&path.latencies),
                mean(&path.with_errors),
                at(&path.latencies, 0.5),
                at(&path.latencies, 0.9),
                at(&path.latencies, 0.99),
                if path.answers == 0 {
                    "–".into()
                } else {
                    milliseconds(path.connect_median() as f64)
                },
                at(&path.first_byte, 0.5),
                at(&path.transfer, 0.5),
                share(hits.map(|(requests, _)| requests)),
                share(hits.map(|(_, bytes)| bytes)),
                ByteSize(path.bytes).to_string(),
            ]);
        }
        table
    }

    pub fn verdicts(&self) -> Table {
        let names: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.name()).collect();
        let mut table = Table::new(&[&["path"][..], &names, &["not judged"]].concat());
        for path in &self.report.paths {
            let mut row = vec![path.name.clone()];
            row.extend(Verdict::ALL.map(|verdict| path.count(verdict).to_string()));
            row.push(path.unjudged.to_string());
            table.row(&row);
        }
        table
    }

    pub fn errors(&self) -> Option<Table> {
        let mut table = Table::new(&["path", "error", "requests"]);
        let mut any = false;
        for path in &self.report.paths {
            for (failure, count) in
                PathFailure::ALL.iter().zip(path.failures).filter(|(_, count)| *count > 0)
            {
                any = true;
                table.row(&[path.name.clone(), failure.name().into(), count.to_string()]);
            }
        }
        any.then_some(table)
    }

    pub fn connections(&self) -> Option<Table> {
        if self.report.connections == Connections::New {
            return None;
        }
        let mut table = Table::new(&[
            "path",
            "on new connections",
            "on kept ones",
            "closed, so on new ones",
            "surplus",
        ]);
        for path in &self.report.paths {
            let mut row = vec![path.name.clone()];
            row.extend(Carriage::ALL.map(|carriage| path.carriages[carriage as usize].to_string()));
            row.push(path.late_surplus.to_string());
            table.row(&row);
        }
        Some(table)
    }

    pub fn examples(&self) -> Option<Table> {
        let mut table = Table::new(&["path", "verdict", "why", "for example"]);
        let mut any = false;
        for path in &self.report.paths {
            for example in &path.examples {
                any = true;
                let (why, url) = (example.why.clone(), example.url.clone());
                table.row(&[path.name.clone(), example.verdict.name().into(), why, url]);
            }
        }
        any.then_some(table)
    }

    pub fn pairs(&self) -> Table {
        let mut table = Table::new(&[
            "difference",
            "requests",
            "median",
            "95 %",
            "noise",
            "mean",
            "95 %",
            "noise",
        ]);
        let floor = noise_floor(self.differences);
        for pair in self.differences {
            table.row(&[
                self.names(pair),
                pair.requests.to_string(),
                milliseconds(pair.median.value),
                interval(pair.median),
                pair.meaning(floor).words().into(),
                milliseconds(pair.mean.value),
                interval(pair.mean),
                pair.meaning_of_mean(floor).words().into(),
            ]);
        }
        table
    }

    pub fn hits_and_misses(&self) -> Table {
        let heads = ["path", "hits", "mean", "median", "p99", "misses", "mean", "median", "p99"];
        let mut table = Table::new(&heads);
        for path in &self.report.paths {
            let mut row = vec![path.name.clone()];
            for latencies in [&path.of_hits, &path.of_misses] {
                row.push(latencies.count().to_string());
                row.push(mean(latencies));
                row.extend([0.5, 0.99].map(|quantile| at(latencies, quantile)));
            }
            table.row(&row);
        }
        table
    }

    /// Returns the table of time differences between paths (proxies or origin) for each class of
    /// requests. The table also has the noise floor of the class: the largest difference between
    /// equal paths. If `all` is true, the table compares each pair of paths. Otherwise it compares
    /// the first proxy with each other path.
    pub fn classes(&self, all: bool) -> Table {
        let heads = ["class", "difference", "requests", "median", "95 %", "floor", "noise"];
        let mut table = Table::new(&[&heads[..], &["mean", "95 %", "floor", "noise"]].concat());
        let first = self.report.paths.iter().position(|path| path.name != "direct").unwrap_or(0);
        let shown =
            |pair: &&PairedDifference| all || pair.paths.0 == first || pair.paths.1 == first;
        for pair in self.by_class.iter().filter(shown) {
            let floor = noise_floor_of(pair.class, self.by_class);
            let shown = |floor: Option<f64>| floor.map_or_else(|| "–".into(), milliseconds);
            table.row(&[
                pair.class.map_or("all", Class::words).into(),
                self.names(pair),
                pair.requests.to_string(),
                milliseconds(pair.median.value),
                interval(pair.median),
                shown(floor.map(|floor| floor.median)),
                pair.meaning(floor).words().into(),
                milliseconds(pair.mean.value),
                interval(pair.mean),
                shown(floor.map(|floor| floor.mean)),
                pair.meaning_of_mean(floor).words().into(),
            ]);
        }
        table
    }

    fn names(&self, pair: &PairedDifference) -> String {
        let name = |path: usize| &self.report.paths[path].name;
        format!("{} less {}", name(pair.paths.0), name(pair.paths.1))
    }
}

fn interval(found: Interval) -> String {
    format!("{} … {}", milliseconds(found.low), milliseconds(found.high))
}

fn mean(latencies: &Latencies) -> String {
    if latencies.count() == 0 { "–".into() } else { milliseconds(latencies.mean()) }
}

fn at(latencies: &Latencies, quantile: f64) -> String {
    if latencies.count() == 0 { "–".into() } else { milliseconds(latencies.at(quantile) as f64) }
}
