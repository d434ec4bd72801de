//! Formats results of `foxy sim` as table rows and records. Each value is the mean over all seeds
//! of the random generator.

use foxy_base::ByteSize;
use foxy_lab::simulation::storage::runs::{RunResult, SimulationPlan};
use foxy_report::{Measure, Record, Table};

pub struct Row<'a> {
    scheme: String,
    utilization: Option<f64>,
    pub results: Vec<&'a RunResult>,
    failures: Vec<&'a str>,
}

fn failed(failures: &[&str], runs: usize) -> Option<String> {
    let first = failures.first()?;
    Some(if runs > 1 {
        format!("{} of {runs} runs {first}", failures.len())
    } else {
        (*first).to_owned()
    })
}

type Value = dyn Fn(&RunResult) -> Option<f64>;

impl<'a> Row<'a> {
    pub fn new(plan: &SimulationPlan, results: &'a [Result<RunResult, String>]) -> Self {
        Self {
            scheme: plan.scheme.to_string(),
            utilization: plan.scheme.row().has_utilization().then_some(plan.utilization * 100.0),
            results: results.iter().filter_map(|result| result.as_ref().ok()).collect(),
            failures: results
                .iter()
                .filter_map(|result| result.as_ref().err().map(String::as_str))
                .collect(),
        }
    }

    fn subject(&self) -> String {
        match self.utilization {
            Some(percent) => format!("{}@{percent:.0}%", self.scheme),
            None => self.scheme.clone(),
        }
    }

    fn mean(&self, name: &str, unit: &str, value: &Value) -> Option<Measure> {
        let values: Option<Vec<f64>> = self.results.iter().map(|result| value(result)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(Measure::of(name, &self.subject(), &values, unit))
    }

    fn measures(&self) -> Vec<Option<Measure>> {
        COLUMNS.iter().map(|column| self.mean(column.name, column.unit, &column.value)).collect()
    }

    pub fn records(&self) -> Vec<Record> {
        let failed = self.failures.len() as f64;
        let failed = Measure::once("failed_runs", &self.subject(), failed, "count");
        let failed = (!self.failures.is_empty()).then_some(failed);
        let measures = self.measures().into_iter().chain([failed]).flatten().map(Record::Measure);
        let reason =
            |reason: &&str| Record::FailedRun { subject: self.subject(), reason: (*reason).into() };
        measures.chain(self.failures.iter().map(reason)).collect()
    }

    fn cells(&self) -> Vec<String> {
        let utilization = self.utilization.map_or("-".into(), |percent| format!("{percent:.0} %"));
        let mut cells = vec![self.scheme.clone(), utilization];
        for (column, measure) in
            COLUMNS.iter().zip(self.measures()).filter(|(column, _)| !column.head.is_empty())
        {
            cells.push(measure.map_or("-".into(), |measure| (column.show)(&measure)));
        }
        let sum = |value: fn(&RunResult) -> u64| {
            self.results.iter().map(|result| value(result)).sum::<u64>()
        };
        let mut notes = Vec::new();
        if let Some(shortfall) = self.results.iter().find_map(|result| result.outcome.shortfall()) {
            notes.push(format!("part of the work was not done: {shortfall}"));
        }
        if self.results.iter().any(|result| result.outcome.operations == 0) {
            notes.push("nothing reached the disk: no rate".into());
        }
        let fewer = self.results.iter().find_map(|result| result.fewer_buffers);
        notes.extend(fewer.map(|fewer| fewer.to_string()));
        let (useful, wasted) =
            (sum(|run| run.counts.prefetch_useful), sum(|run| run.counts.prefetch_wasted));
        let counts = [
            (sum(|run| run.counts.prefetched), "objects read along"),
            (useful, "of use"),
            (wasted, "wasted"),
        ];
        for (count, what) in counts {
            if count > 0 {
                notes.push(format!("{what}: {count}"));
            }
        }
        notes.extend(failed(&self.failures, self.failures.len() + self.results.len()));
        cells.push(notes.join("; "));
        cells
    }
}

const UNITS: &str = "\
Counts and bytes are per URL-get, latencies in milliseconds. rmw: pages that were read from the disk because a part of them was to be
written, which the modelled disk counts. A read fetches at most one piece of a large object.";

pub fn table(rows: &[Row<'_>]) -> String {
    let shown = COLUMNS.iter().map(|column| column.head).filter(|head| !head.is_empty());
    let heads: Vec<&str> = ["scheme", "used"].into_iter().chain(shown).chain([""]).collect();
    let mut table = Table::new(&heads);
    for row in rows {
        table.row(&row.cells());
    }
    format!("{}\n{UNITS}", table.render())
}

struct Column {
    name: &'static str,
    unit: &'static str,
    head: &'static str,
    show: fn(&Measure) -> String,
    value: fn(&RunResult) -> Option<f64>,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    head: &'static str,
    show: fn(&Measure) -> String,
    value: fn(&RunResult) -> Option<f64>,
) -> Column {
    Column { name, unit, head, show, value }
}

const COLUMNS: &[Column] = &[
    column("completion_seconds", "s", "", whole, |run| Some(run.took?.as_secs_f64())),
    column("url_gets_per_second", "1/s", "URL-get/s", with_interval, |run| {
        per_second(run, run.gets)
    }),
    column("operations_per_second", "1/s", "disk op/s", whole, |run| {
        per_second(run, run.outcome.operations)
    }),
    column("latency_p50_us", "us", "p50", milliseconds, |run| latency(run, 0.5)),
    column("latency_p95_us", "us", "p95", milliseconds, |run| latency(run, 0.95)),
    column("latency_p99_us", "us", "p99", milliseconds, |run| latency(run, 0.99)),
    column("creates_per_get", "1", "creates", thousandths, |run| per_get(run, run.counts.creates)),
    column("opens_per_get", "1", "opens", thousandths, |run| per_get(run, run.counts.opens)),
    column("unlinks_per_get", "1", "unlinks", thousandths, |run| per_get(run, run.counts.unlinks)),
    column("reads_per_get", "1", "reads", thousandths, |run| per_get(run, run.counts.reads)),
    column("writes_per_get", "1", "writes", thousandths, |run| per_get(run, run.counts.writes)),
    column("seeks_per_get", "1", "seeks", thousandths, |run| per_get(run, run.counts.seeks)),
    column("bytes_per_get", "bytes", "bytes", size, |run| per_get(run, run.counts.bytes)),
    column("read_modify_writes_per_get", "1", "rmw", thousandths, |run| {
        run.read_modify_writes.and_then(|count| per_get(run, count))
    }),
    column("prefetched_per_get", "1", "", thousandths, |run| per_get(run, run.counts.prefetched)),
    column("prefetch_useful_per_get", "1", "", thousandths, |run| {
        per_get(run, run.counts.prefetch_useful)
    }),
    column("prefetch_wasted_per_get", "1", "", thousandths, |run| {
        per_get(run, run.counts.prefetch_wasted)
    }),
    column("reads_lost", "count", "", whole, |run| Some(run.outcome.lost as f64)),
    column("operations_refused", "count", "", whole, |run| Some(run.outcome.refused as f64)),
];

fn per_second(run: &RunResult, count: u64) -> Option<f64> {
    if run.outcome.operations == 0 {
        return None;
    }
    Some(count as f64 / run.took?.as_secs_f64().max(1e-9))
}

fn latency(run: &RunResult, share: f64) -> Option<f64> {
    run.took.map(|_| f64::from(run.outcome.latency(share)))
}

fn per_get(run: &RunResult, count: u64) -> Option<f64> {
    Some(count as f64 / run.gets.max(1) as f64)
}

fn whole(measure: &Measure) -> String {
    format!("{:.0}", measure.value)
}

fn with_interval(measure: &Measure) -> String {
    if measure.repeats < 2 {
        return format!("{:.1}", measure.value);
    }
    format!("{:.1} ±{:.1}", measure.value, (measure.high - measure.low) / 2.0)
}

fn milliseconds(measure: &Measure) -> String {
    format!("{:.2}", measure.value / 1000.0)
}

fn thousandths(measure: &Measure) -> String {
    format!("{:.3}", measure.value)
}

fn size(measure: &Measure) -> String {
    ByteSize(measure.value as u64).to_string()
}
