//! The input of `foxy sim`: a log file, or one synthetic trace for each seed of the random
//! generator.

use crate::logs;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_lab::simulation::fleet::generated;
use foxy_workload::trace::ReadReport;
use foxy_workload::trace::synthetic::{self, MODELS, TraceModel, generate};
use foxy_workload::{Trace, Workload};
use std::path::PathBuf;

/// The number of requests in the trace of the WebCoSM paper (Table 1 of paper 001 in
/// docs/figures.md).
const GETS: u64 = 1_058_206;

pub enum Input {
    Log(Trace),
    Model(&'static TraceModel, usize),
    /// A workload of the load generator, for fleets only.
    Objects {
        workload: Box<Workload>,
        gets: usize,
        is_warm: bool,
    },
}

impl Input {
    pub fn trace(&self, seed: u64) -> std::borrow::Cow<'_, Trace> {
        match self {
            Self::Log(trace) => std::borrow::Cow::Borrowed(trace),
            Self::Model(model, gets) => std::borrow::Cow::Owned(generate(model, *gets, seed)),
            Self::Objects { workload, gets, is_warm } => {
                let trace = generated::trace(workload, *gets, *is_warm, seed);
                std::borrow::Cow::Owned(trace.expect("the workload has objects"))
            }
        }
    }

    pub const fn has_seeds(&self) -> bool {
        !matches!(self, Self::Log(_))
    }

    /// Returns whether the requests have times.
    pub const fn has_times(&self) -> bool {
        !matches!(self, Self::Objects { .. })
    }
}

pub fn open(matches: &ArgMatches, scale: f64) -> Result<(Input, String), Failure> {
    let requests = matches.get_one::<u64>("requests").copied();
    let scaled = |gets: u64| ((gets as f64 * scale).round() as usize).max(1);
    let made = scaled(requests.unwrap_or(GETS));
    if !matches.contains_id("trace") && made as u64 > synthetic::MOST_GETS {
        return Err(Failure::Unusable(format!(
            "--requests and --scale ask for {made} gets, which must fit in memory; at most {} are \
             possible",
            synthetic::MOST_GETS
        )));
    }
    if let Some(path) = matches.get_one::<PathBuf>("trace") {
        let (mut trace, report) = logs::read_log(matches, "--trace ", path)?;
        let asked = requests.unwrap_or(trace.gets.len() as u64);
        trace.gets.truncate(scaled(asked));
        let about = format!("{}: {}", path.display(), reading(&report, &trace));
        return Ok((Input::Log(trace), about));
    }
    let name = matches.get_one::<String>("workload").expect("an input is required");
    if let Some(workload) = objects(matches, name) {
        let is_warm = matches.get_flag("warm-up");
        let about = format!("workload {name}: {made} gets");
        return Ok((Input::Objects { workload: Box::new(workload), gets: made, is_warm }, about));
    }
    let model = MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        Failure::Unusable(format!(
            "--workload {name}: no such workload; the workloads are {}",
            known.join(", ")
        ))
    })?;
    Ok((Input::Model(model, made), format!("workload {name}, synthetic: {made} gets")))
}

/// Returns the workload of the load generator that a fleet gets.
fn objects(matches: &ArgMatches, name: &str) -> Option<Workload> {
    let workload = Workload::find(name).filter(|_| matches.get_flag("fleet"))?;
    workload.objects()?;
    let objects = matches.get_one::<u64>("objects").copied();
    Some(objects.map_or(workload.clone(), |objects| generated::with_objects(workload, objects)))
}

fn reading(report: &ReadReport, trace: &Trace) -> String {
    let mut text = logs::reading(report, trace);
    for example in logs::examples(report) {
        text.push_str(&format!("\n  {example}"));
    }
    text
}
