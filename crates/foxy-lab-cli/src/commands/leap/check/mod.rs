//! `foxy leap --check`: measures the overhead of LEAP, its fairness, and the response times of
//! Collector (common parent proxy) hits. Each check starts its own origin and proxies.

mod fairness;
mod overhead;
mod replay;

use crate::arguments::{count, option, switch};
use crate::experiment::{self, Conclusion, Experiment};
use clap::{Arg, ArgMatches};
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::progress::Progress;
use foxy_cli::signals::interrupted;
use foxy_lab::leap::{
    Asked, Connections, LeapPace, LeapReport, LeapRun, Manner, Numbers, Outgoing, Path,
    run as leap_run,
};
use foxy_report::figure::FigureRow;
use foxy_report::{Measurable, Page, Record, Table, figure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

type Check = fn(&CheckSetting<'_>) -> Result<Findings, Failure>;
type Measures = fn() -> Vec<Measurable>;
const CHECKS: [(&str, Check, Measures); 3] = [
    ("overhead", overhead::run, overhead::measurable),
    ("fairness", fairness::run, fairness::measurable),
    ("replay", replay::run, replay::measurable),
];

pub fn arguments() -> [Arg; 3] {
    let others = [
        "proxy",
        "start",
        "listen",
        "direct",
        "origin",
        "collector",
        "trace",
        "live",
        "passthrough",
        "log",
        "connections",
    ];
    [
        option(
            "check",
            "NAME",
            "Measure LEAP itself: overhead, fairness or replay; the check starts everything that it needs",
        )
        .value_parser(CHECKS.map(|(name, ..)| name))
        .conflicts_with_all(others),
        option("repeats", "N", "With --check fairness, number of runs [default: 5, with --full 40]")
            .value_parser(count())
            .requires("check"),
        switch("full", "With --check, run for several minutes instead of less than one minute")
            .requires("check"),
    ]
}

struct CheckSetting<'a> {
    matches: &'a ArgMatches,
    interrupted: Arc<AtomicBool>,
    seed: u64,
    full: bool,
}

impl CheckSetting<'_> {
    fn count(&self, name: &str, quick: u64, full: u64) -> u64 {
        let given = self.matches.get_one::<u64>(name).copied();
        given.unwrap_or(if self.full { full } else { quick })
    }

    fn rate(&self, usual: f64) -> f64 {
        self.matches.get_one::<f64>("rate").copied().unwrap_or(usual)
    }

    fn of(&self, paths: &[(&str, SocketAddr, Manner)], pace: LeapPace, seed: u64) -> LeapRun {
        let path = |&(name, address, manner): &(&str, SocketAddr, Manner)| Path {
            name: name.into(),
            address,
            manner,
        };
        LeapRun {
            paths: paths.iter().map(path).collect(),
            pace,
            stagger: Duration::ZERO,
            time_limit: Duration::from_secs(30),
            most_in_flight: 1024,
            numbers: Some(Numbers::new(paths.len())),
            outgoing: Outgoing::default(),
            connections: Connections::New,
            seed,
            alike: Vec::new(),
            wanted: None,
            interrupted: Arc::clone(&self.interrupted),
        }
    }

    fn measure(
        &self,
        label: &str,
        run: &LeapRun,
        requests: Vec<Asked>,
    ) -> Result<LeapReport, Failure> {
        let mut progress = Progress::new(label, Some(requests.len() as u64));
        let authority =
            requests.first().map(|asked| Arc::clone(&asked.authority)).unwrap_or_default();
        let probe = super::probe(&authority);
        let mut requests = requests.into_iter();
        let report =
            leap_run(run, &probe, &mut requests, &mut |_| {}, &mut |begun| progress.update(begun));
        drop(progress);
        let report = report.map_err(|error| failed(label, &error.to_string()))?;
        if self.interrupted.load(Relaxed) {
            return Err(failed(label, "stopped by a signal"));
        }
        let wrong = report
            .paths
            .iter()
            .find(|path| path.answers != report.requests || !path.examples.is_empty());
        match wrong {
            None => Ok(report),
            Some(path) => {
                let why = path.examples.first().map_or("", |example| example.why.as_str());
                let (answers, of) = (path.answers, report.requests);
                Err(failed(
                    label,
                    &format!(
                        "{} gave {answers} answers to {of} requests {why}; lower --rate",
                        path.name
                    ),
                ))
            }
        }
    }
}

fn failed(label: &str, what: &str) -> Failure {
    Failure::Failed(format!("leap --check {label}: {what}"))
}

#[derive(Default)]
struct Findings {
    setting: String,
    tables: Vec<(&'static str, Table)>,
    rows: Vec<FigureRow>,
    records: Vec<Record>,
    conclusions: Vec<String>,
    warnings: Vec<String>,
}

impl Findings {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.setting);
        for (caption, table) in &self.tables {
            text.push_str(&format!("\n{caption}\n{}", table.render()));
        }
        if !self.rows.is_empty() {
            text.push_str(&format!("\n{}", figure::as_text(&self.rows)));
        }
        for line in &self.conclusions {
            text.push_str(&format!("\n{line}"));
        }
        text
    }

    fn warn_of(&mut self, label: &str, report: &LeapReport) {
        if report.late.at(0.99) >= 10_000 || report.refused > 0 || report.busy() >= 0.9 {
            self.warnings.push(format!(
                "{label}: 1 % of the requests began more than {} us late, {} were refused, and the sender's thread ran {:.0} % of the time: \
                 this machine is the limit; lower --rate",
                report.late.at(0.99),
                report.refused,
                report.busy() * 100.0
            ));
        }
    }
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    raise_open_files();
    let name = matches.get_one::<String>("check").expect("it is there when a check is run");
    let (_, check, measurable) =
        CHECKS.iter().find(|(known, ..)| known == name).expect("clap knows the values");
    let experiment = Experiment::new("leap", matches).with_bars(measurable())?;
    let seed = experiment::seed(matches);
    let setting =
        CheckSetting { matches, interrupted: interrupted()?, seed, full: matches.get_flag("full") };
    let found = check(&setting)?;
    let rows = found.rows.iter().cloned().map(Record::FigureRow);
    let conclusion = Conclusion {
        text: found.text(),
        warnings: found.warnings.clone(),
        records: found.records.iter().cloned().chain(rows).collect(),
        failed: None,
    };
    experiment.finish_with_page(conclusion, |setup| {
        let title = format!("LEAP itself: {name}");
        let mut page = Page::of_run(&title, setup, &found.setting, None, &found.warnings);
        for (caption, table) in &found.tables {
            page.table(caption, table);
        }
        if !found.rows.is_empty() {
            page.table("Beside the paper", &figure::figure_table(&found.rows));
        }
        for line in &found.conclusions {
            page.paragraph(line);
        }
        page.html()
    })
}
