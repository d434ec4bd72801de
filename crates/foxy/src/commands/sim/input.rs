//! What `foxy sim` is fed with: a log of gets, or a synthetic workload for each seed.

use crate::failure::Failure;
use crate::lab::progress::Progress;
use clap::ArgMatches;
use foxy_workload::Trace;
use foxy_workload::trace::synthetic::{MODELS, Model, generate};
use foxy_workload::trace::{Format, ReadReport, read};
use std::fs::File;
use std::path::{Path, PathBuf};

/// URL-gets of the paper's trace (Table 1): what a synthetic workload has if nothing else is said.
const GETS: u64 = 1_058_206;

/// Gets to simulate.
pub enum Input {
    /// Those of a log, the same for every seed.
    Log(Trace),
    /// Those of a model, which every seed makes anew.
    Model(&'static Model, usize),
}

impl Input {
    /// The gets for a seed.
    pub fn trace(&self, seed: u64) -> std::borrow::Cow<'_, Trace> {
        match self {
            Self::Log(trace) => std::borrow::Cow::Borrowed(trace),
            Self::Model(model, gets) => std::borrow::Cow::Owned(generate(model, *gets, seed)),
        }
    }

    /// Whether seeds differ in their gets.
    pub const fn has_seeds(&self) -> bool {
        matches!(self, Self::Model(..))
    }
}

/// Takes what the arguments name, and says in a few lines what it is.
pub fn open(matches: &ArgMatches, scale: f64) -> Result<(Input, String), Failure> {
    let requests = matches.get_one::<u64>("requests").copied();
    let scaled = |gets: u64| ((gets as f64 * scale).round() as usize).max(1);
    if let Some(path) = matches.get_one::<PathBuf>("trace") {
        let (mut trace, report) = read_log(path, matches.get_one::<Format>("format").copied())?;
        let asked = requests.unwrap_or(trace.gets.len() as u64);
        trace.gets.truncate(scaled(asked));
        let about = format!("{}: {}", path.display(), reading(&report, &trace));
        return Ok((Input::Log(trace), about));
    }
    let name = matches.get_one::<String>("workload").expect("an input is required");
    let model = MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        Failure::Unusable(format!("--workload {name}: no such workload; there are {}", known.join(", ")))
    })?;
    let gets = scaled(requests.unwrap_or(GETS));
    Ok((Input::Model(model, gets), format!("workload {name}, synthetic: {gets} gets")))
}

fn read_log(path: &Path, format: Option<Format>) -> Result<(Trace, ReadReport), Failure> {
    let unusable = |what: String| Failure::Unusable(format!("--trace {}: {what}", path.display()));
    let file = File::open(path);
    let file = file.map_err(|error| unusable(format!("cannot be opened: {error}; name a log to read")))?;
    let mut progress = Progress::new("lines", None);
    let read = read(file, format, &mut |lines| progress.update(lines));
    let (trace, report) = read.map_err(|error| unusable(error.to_string()))?;
    if trace.gets.is_empty() {
        let what = format!(
            "no get in {}; name a log that has some, or the right --format",
            reading(&report, &trace)
        );
        return Err(unusable(what));
    }
    Ok((trace, report))
}

/// What became of the lines of a log.
fn reading(report: &ReadReport, trace: &Trace) -> String {
    let mut text = format!(
        "{} lines read as {}, {} gets of {} URLs",
        report.lines,
        report.format,
        trace.gets.len(),
        trace.urls()
    );
    for (reason, count) in report.reasons() {
        text.push_str(&format!(", {count} left out: {reason}"));
    }
    for example in &report.examples {
        text.push_str(&format!(
            "\n  line {}: {}: {}",
            example.line,
            example.reason,
            example.text.escape_debug()
        ));
    }
    text
}
