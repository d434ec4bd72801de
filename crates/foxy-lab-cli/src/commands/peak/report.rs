//! Presents the results of `foxy peak`: a line for each window (a span of time with a constant
//! load) of the search, a table, records, and a page with charts.

use crate::commands::load;
use crate::experiment::{Conclusion, Experiment};
use foxy_cli::failure::Failure;
use foxy_lab::LoadReport;
use foxy_lab::load::options::LoadOptions;
use foxy_lab::load::peak::{END, Finder, SUMMARY_FROM, Search, Window};
use foxy_report::chart::Provenance;
use foxy_report::figure::{Condition, NoVerdictReason, Verdict};
use foxy_report::{Measure, Page, Record, Setup, Timeline};
use std::sync::atomic::Ordering::Relaxed;

pub fn line(window: &Window) -> String {
    let response =
        window.response.map_or("no answer".into(), |time| format!("{:.3} s", time.as_secs_f64()));
    format!(
        "peak: {:.0} s, fill {:.2}: {:.1}/s asked, {:.1}/s answered in {response}, hit ratio {:.3}",
        window.end.as_secs_f64(),
        window.fill,
        window.load,
        window.answers,
        window.hit_ratio
    )
}

/// The result of a search for the peak load of the proxy `subject`.
pub struct PeakOutcome<'a> {
    pub subject: &'a str,
    pub search: &'a Search,
    pub finder: &'a Finder,
    pub options: &'a LoadOptions,
    pub report: &'a LoadReport,
}

impl PeakOutcome<'_> {
    pub fn write(&self, experiment: Experiment<'_>, more: Vec<Record>) -> Result<(), Failure> {
        let mut records = self.measures();
        records.extend(self.report.records(self.subject, None));
        records.extend(more);
        records.extend(timelines(self.subject, self.finder));
        records.extend(self.outside_window().map(|(condition, reason)| Record::NoVerdict {
            subject: self.subject.into(),
            reasons: vec![reason],
            conditions: vec![condition],
        }));
        if !self.finder.is_over() {
            let fill = self.finder.windows().last().map_or(0.0, |window| window.fill);
            let reason =
                format!("stopped at {fill:.2} of {END} fills; these are the results so far");
            records.push(Record::FailedRun { subject: self.subject.into(), reason });
        }
        let conclusion = Conclusion {
            text: load::table(&records, std::iter::empty()),
            warnings: self.warnings(),
            records: records.clone(),
            failed: self.failure(),
        };
        experiment.finish_with_page(conclusion, |setup| self.page(setup, &records))
    }

    fn failure(&self) -> Option<String> {
        if self.report.answers == 0 {
            return Some(load::nothing_answered(self.options, self.report.main_cause_of_sent()));
        }
        let why = if self.options.interrupted.load(Relaxed) {
            "stopped by a signal"
        } else if self.finder.is_silent() {
            "the proxy stopped answering"
        } else {
            "--limit came"
        };
        let target = self.options.target;
        (!self.finder.is_over())
            .then(|| format!("{target}: {why} before the cache was filled twice"))
    }

    fn warnings(&self) -> Vec<String> {
        let robots = self.finder.lacks_robots();
        let robots =
            robots.then(|| "all robots were active at the end; give a higher --most-rate".into());
        let outside = self.outside_window().map(|(condition, reason)| {
            format!("no verdict: {reason}: {condition}; do not compare this peak with others")
        });
        let generator = self.report.limited_by_generator();
        let generator =
            generator.map(|why| format!("the generator, not the proxy, was the limit: {why}"));
        robots.into_iter().chain(outside).chain(generator).collect()
    }

    /// Checks whether the mean response time of the result is outside the range that the search
    /// aims at. If so, returns the reason why there is no verdict (agreement with the paper).
    fn outside_window(&self) -> Option<(Condition, NoVerdictReason)> {
        let condition = self.finder.summary()?.window(&self.search.law);
        let reason = condition.failure(Verdict::NoQuote)?;
        Some((condition, reason))
    }

    fn measures(&self) -> Vec<Record> {
        let measure =
            |name, value, unit| Record::Measure(Measure::once(name, self.subject, value, unit));
        let mut measures = vec![
            measure("window_low_us", self.search.law.low.as_secs_f64() * 1e6, "us"),
            measure("window_high_us", self.search.law.high.as_secs_f64() * 1e6, "us"),
            measure("sample_seconds", self.search.window.as_secs_f64(), "s"),
            measure(
                "fill",
                self.finder.windows().last().map_or(0.0, |window| window.fill),
                "cache sizes",
            ),
        ];
        if let Some(summary) = self.finder.summary() {
            #[expect(clippy::cast_precision_loss, reason = "samples of a run are few")]
            let samples = summary.windows as f64;
            measures.extend([
                measure("peak_requests_per_second", summary.answers, "1/s"),
                measure("peak_response_us", summary.response * 1e6, "us"),
                measure("peak_hit_ratio", summary.hit_ratio, "share"),
                measure("peak_samples", samples, "samples"),
                measure("peak_samples_in_window", summary.settled, "share"),
            ]);
        }
        measures
    }

    /// Builds the HTML page. The charts of load and response time while the cache fills are those
    /// of appendix D of *Squid: The Definitive Guide*.
    fn page(&self, setup: &Setup, records: &[Record]) -> String {
        let setting = format!(
            "The result is the mean over the fills from {SUMMARY_FROM} to {END}. The load rises while the mean response time is \
             below {:.3} s and falls while it is above {:.3} s.",
            self.search.law.low.as_secs_f64(),
            self.search.law.high.as_secs_f64()
        );
        let mut page = Page::of_run(
            &format!("Peak of {}", self.subject),
            setup,
            &setting,
            None,
            &self.warnings(),
        );
        page.records(records, Provenance::of_run("000 Appendix D", setup));
        page.html()
    }
}

type Trace = (&'static str, &'static str, fn(&Window) -> f64);

const TRACES: [Trace; 4] = [
    ("offered_load", "1/s", |window| window.load),
    ("requests_per_second", "1/s", |window| window.answers),
    ("response_seconds", "s", |window| window.response.map_or(f64::NAN, |time| time.as_secs_f64())),
    ("hit_ratio", "share", |window| window.hit_ratio),
];

fn timelines(subject: &str, finder: &Finder) -> Vec<Record> {
    let fill: Trace = ("fill", "cache sizes", |window| window.fill);
    let timeline = |&(name, unit, value): &Trace| {
        let points: Vec<(f64, f64)> = finder
            .windows()
            .iter()
            .map(|window| (window.end.as_secs_f64(), value(window)))
            .collect();
        Record::Timeline(Timeline::new(name, subject, unit, &points))
    };
    TRACES.iter().chain([&fill]).map(timeline).collect()
}
