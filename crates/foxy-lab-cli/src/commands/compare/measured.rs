//! Measures a running proxy in `foxy compare`: its answers, its CPU and memory use, and its files
//! on disk.

use super::context::{Trial, TrialContext};
use crate::fault::Staged;
use crate::peers::Holding;
use crate::peers::process::Running;
use crate::peers::system_calls::SystemCalls;
use crate::peers::usage::{self, Usage};
use crate::run;
use foxy_base::{Instant, clock};
use foxy_cli::progress::Progress;
use foxy_lab::load::options::{LoadOptions, Pace, Stop};
use foxy_lab::load::{self};
use foxy_lab::{ErrorCause, LoadReport, REQUEST_ID};
use foxy_report::comparison::AT_RATE;
use foxy_report::{Measure, Record, Timeline};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const COUNTED: u64 = 20_000;
const POINTS: u64 = 50;

const UNFINISHED: &str = "no answer was complete at the end of the time; raise --seconds";

pub struct MeasuredProxy<'a> {
    pub trial: &'a Trial<'a>,
    pub context: &'a TrialContext,
    pub options: LoadOptions,
    pub cache: PathBuf,
}

impl MeasuredProxy<'_> {
    /// Warms the proxy up, measures it under its workload, and returns all records.
    pub fn all(
        &self,
        running: &mut Running,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Record>, String> {
        let warm_up = self.options.workload.warm_up();
        if let Some(objects) = &warm_up {
            let mut progress =
                Progress::new(&format!("{} warm-up", self.trial.label), Some(objects.objects));
            let report = load::warm_up(&self.options, &mut |done| {
                progress.update(done);
                self.look(running);
            });
            report.map_err(|error| self.no(&error))?;
            self.go_on()?;
        }
        if self.trial.scenario.holding == Holding::Disk && warm_up.is_some() {
            self.forget(notes);
        }
        let mut records = self.closed(running, notes)?;
        let waits = self.options.workload.objects().is_some() && self.trial.scenario.rate.is_none();
        for &rate in self.context.rates.iter().filter(|_| waits) {
            let pace = Pace::Open { rate: f64::from(rate) };
            let stop = Stop::After(self.context.time);
            let options = LoadOptions { pace, stop, ..self.options.clone() };
            let LoadOutcome { report, used, .. } =
                self.load(running, &options, &format!(" at {rate}/s"), None)?;
            let under = format!("{}{AT_RATE}{rate}", self.trial.scenario.name);
            records.extend(
                self.labelled(report.records(self.trial.peer.name, Some(used.processor)), &under),
            );
        }
        self.go_on()?;
        Ok(records)
    }

    fn go_on(&self) -> Result<(), String> {
        let name = self.trial.peer.name;
        if self.context.is_stopping(name) {
            Err(format!("{name}: stopped by a signal"))
        } else {
            Ok(())
        }
    }

    fn closed(
        &self,
        running: &mut Running,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Record>, String> {
        let name = self.trial.peer.name;
        let workload = self.trial.scenario.name;
        let origin = self.context.origin.requests();
        let device = usage::of_device(&self.cache);
        let staged = self.staged();
        let options =
            LoadOptions { fault: staged.as_ref().map(Staged::fault), ..self.options.clone() };
        let LoadOutcome { report, used, timeline, phases } =
            self.load(running, &options, "", staged.as_ref())?;
        drop(staged);
        if !report.knows_hits() {
            notes.push(format!(
                "{workload}: the hits are unknown, because the proxy drops the field {REQUEST_ID}"
            ));
        }
        let device = usage::of_device(&self.cache).zip(device);
        let mut found = report.records(name, Some(used.processor));
        found.extend(phases);
        let mut measure = |name_of: &str, value: f64, unit: &str| {
            found.push(Record::Measure(Measure::once(name_of, name, value, unit)));
        };
        let asked = self.context.origin.requests() - origin;
        measure("origin_requests_per_request", for_each_request(asked, &report), "requests");
        measure("resident_bytes", used.resident as f64, "B");
        if self.trial.scenario.holding == Holding::Disk {
            if let Some((after, before)) = device.filter(|_| report.hits > 0) {
                let reads = after.reads.saturating_sub(before.reads) as f64;
                measure("device_reads_per_hit", reads / report.hits as f64, "reads");
            }
            let cached = report.bytes - report.hit_bytes;
            if cached > 0 && report.knows_hits() {
                measure("disk_bytes_per_cached_byte", used.written as f64 / cached as f64, "B");
            }
        }
        if self.trial.scenario.system_calls {
            match self.system_calls(running)? {
                Ok(calls) => measure("system_calls_per_request", calls, "calls"),
                Err(why) => notes.push(format!("{workload}: system calls were not counted: {why}")),
            }
        }
        if self.trial.scenario.newest {
            if let Some(share) = self.newest(running, &report)? {
                measure("resident_after_fill", share, "share");
            }
            sync(&self.cache);
            measure("size_on_disk_bytes", usage::size_on_disk(&self.cache) as f64, "B");
        }
        found.push(Record::Timeline(Timeline::new("requests_per_second", name, "1/s", &timeline)));
        Ok(self.labelled(found, workload))
    }

    fn staged(&self) -> Option<Staged<'_>> {
        let (kind, Stop::After(time)) = (self.trial.scenario.fault?, self.options.stop) else {
            return None;
        };
        let folder = self.cache.parent().unwrap_or(&self.cache);
        Some(Staged::new(kind, &self.context.origin, folder, clock::monotonic(), time))
    }

    /// Sends a workload to the proxy, and returns the counts and times of the load.
    fn load(
        &self,
        running: &mut Running,
        options: &LoadOptions,
        label: &str,
        staged: Option<&Staged<'_>>,
    ) -> Result<LoadOutcome, String> {
        let ended = || format!("{} ended before it was measured", self.trial.peer.name);
        let total = match options.stop {
            Stop::Requests(count) => Some(count),
            Stop::After(_) => None,
        };
        let mut progress = run::progress(&format!("{}{label}", self.trial.label), options);
        let mut curve = Curve::new(total);
        let before = running.usage().ok_or_else(ended)?;
        let mut progressed = |done| {
            progress.update(done);
            curve.add(done);
            self.look(running);
        };
        let found = run::run(options, self.trial.peer.name, staged, &mut progressed);
        let (report, phases) = found.map_err(|error| self.no(&error))?;
        self.go_on()?;
        if report.answers == 0 && !options.interrupted.load(Relaxed) {
            let why = report.main_cause().map_or(UNFINISHED, ErrorCause::name);
            let words = running.last_words();
            return Err(format!(
                "{}: no request was answered ({why}); the proxy's output: {words}",
                self.trial.peer.name
            ));
        }
        if self.trial.scenario.newest {
            sync(&self.cache);
        }
        let after = running.usage().ok_or_else(ended)?;
        let used = Usage {
            processor: after.processor.saturating_sub(before.processor),
            resident: after.resident,
            written: after.written.saturating_sub(before.written),
        };
        Ok(LoadOutcome { report, used, timeline: curve.points, phases })
    }

    /// Returns the number of system calls per answer, measured in a separate run. The inner error
    /// says why this machine cannot count system calls.
    fn system_calls(&self, running: &mut Running) -> Result<Result<f64, String>, String> {
        let counter = match SystemCalls::begin(&running.processes()) {
            Ok(counter) => counter,
            Err(why) => return Ok(Err(why)),
        };
        let stop = Stop::Requests(COUNTED);
        let options = LoadOptions { stop, ..self.options.clone() };
        let report =
            load::run(&options, &mut |_| self.look(running)).map_err(|error| self.no(&error))?;
        Ok(counter.end().map(|calls| calls as f64 / report.answers.max(1) as f64))
    }

    /// Requests again the newest tenth of the objects that the run requested. Returns the share of
    /// hits, if known. A proxy that discarded writes has few hits.
    fn newest(&self, running: &mut Running, report: &LoadReport) -> Result<Option<f64>, String> {
        let options = load::newest_again(&self.options, report, (report.asked() / 10).max(1));
        let report =
            load::run(&options, &mut |_| self.look(running)).map_err(|error| self.no(&error))?;
        Ok(report.hit_ratio())
    }

    /// Ends the load early if a signal asked the command to stop or if the proxy has ended.
    fn look(&self, running: &mut Running) {
        if self.context.is_stopping(self.trial.peer.name) || running.ended().is_some() {
            self.options.interrupted.store(true, Relaxed);
        }
    }

    /// Gives the proxy two seconds to write its data, syncs the file system, and drops the page
    /// cache. Later hits then come from the disk.
    fn forget(&self, notes: &mut Vec<String>) {
        std::thread::sleep(Duration::from_secs(2));
        sync(&self.cache);
        if let Err(error) = std::fs::write("/proc/sys/vm/drop_caches", "1") {
            notes.push(format!(
                "{}: the page cache was not dropped: {error}",
                self.trial.scenario.name
            ));
        }
    }

    fn labelled(&self, records: Vec<Record>, under: &str) -> Vec<Record> {
        let label = |record| match record {
            Record::Measure(measure) => {
                let (workload, repeat) = (Some(under.to_owned()), Some(self.trial.repeat));
                Record::Measure(Measure { workload, repeat, ..measure })
            }
            Record::Timeline(timeline) => {
                Record::Timeline(Timeline { workload: Some(under.to_owned()), ..timeline })
            }
            Record::Histogram { name, subject, quantiles, .. } => {
                Record::Histogram { name, subject, quantiles, workload: Some(under.to_owned()) }
            }
            other => other,
        };
        records.into_iter().map(label).collect()
    }

    fn no(&self, error: &std::io::Error) -> String {
        format!("{}: cannot send the load: {error}", self.trial.peer.name)
    }
}

struct LoadOutcome {
    report: LoadReport,
    used: Usage,
    timeline: Vec<(f64, f64)>,
    phases: Vec<Record>,
}

/// The request rate during a run, as a curve. Each point of the curve covers the same number of
/// requests.
struct Curve {
    total: Option<u64>,
    last: (Instant, u64),
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn new(total: Option<u64>) -> Self {
        Self { total, last: (clock::monotonic(), 0), points: Vec::new() }
    }

    fn add(&mut self, done: u64) {
        let Some(total) = self.total.filter(|&total| total > 0) else { return };
        let (since, before) = self.last;
        if done.min(total) - before >= total.div_ceil(POINTS) {
            let now = clock::monotonic();
            let rate = (done - before) as f64 / now.since(since).as_secs_f64().max(1e-9);
            self.points.push((done.min(total) as f64 / total as f64, rate));
            self.last = (now, done.min(total));
        }
    }
}

fn for_each_request(asked_of_origin: u64, report: &LoadReport) -> f64 {
    asked_of_origin as f64 / report.asked().max(1) as f64
}

fn sync(folder: &Path) {
    // If this call fails, the file system only writes its data a little later. So an error does not
    // matter.
    let _best_effort = std::fs::File::open(folder).map(rustix::fs::syncfs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::ErrorCause;

    #[test]
    fn requests_that_failed_count_among_those_that_the_origin_was_asked_for() {
        let mut report = LoadReport { answers: 80, ..LoadReport::default() };
        assert_eq!(for_each_request(80, &report), 1.0);
        (0..20).for_each(|_| report.fail(ErrorCause::Status));
        assert_eq!(for_each_request(95, &report), 0.95);
    }
}
