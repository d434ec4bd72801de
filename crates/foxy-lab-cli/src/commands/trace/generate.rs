//! `foxy trace generate`: writes a synthetic trace that resembles a published trace. Prints how the
//! statistics of the two traces differ.

use super::files;
use crate::arguments::{option, path};
use crate::experiment::{self, Conclusion, Experiment, Flag, flags};
use clap::{ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_lab::simulation::storage::fit::{Fit, fit};
use foxy_report::{Measure, Record, Table};
use foxy_workload::trace::Statistics;
use foxy_workload::trace::synthetic::{self, MODELS, TraceModel};
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("generate")
        .about("Generate a synthetic trace like a published trace, and compare the two traces")
        .arg(
            option("like", "TRACE", "Published trace to resemble")
                .default_value(MODELS[0].name)
                .value_parser(MODELS.iter().map(|model| model.name).collect::<Vec<_>>()),
        )
        .arg(
            option("requests", "N", "Number of requests [default: as in the published trace]")
                .value_parser(value_parser!(u64).range(1..=synthetic::MOST_GETS)),
        )
        .arg(path(
            "out",
            "FILE",
            "File to write [default: none; the trace is only compared with the published figures]",
        ))
        .arg(files::written_format())
        .args(flags([Flag::Seed, Flag::Json]))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let name = matches.get_one::<String>("like").expect("has a default");
    let model = MODELS.iter().find(|model| model.name == name).expect("one of the possible values");
    let gets = matches.get_one::<u64>("requests").copied().unwrap_or(model.gets);
    let gets = usize::try_from(gets).expect("limited");
    let trace = synthetic::generate(model, gets, experiment::seed(matches));
    if let Some(path) = matches.get_one::<PathBuf>("out") {
        files::write_trace(&trace, path, matches.get_one::<String>("to"))?;
    }
    let found = Statistics::of(&trace);
    let fits = fit(model, &trace, &found);
    let record =
        |fit: &Fit| Record::Measure(Measure::once(&fit.what, model.name, fit.ours, "as published"));
    let conclusion = Conclusion {
        text: text(model, &found, &fits),
        records: fits.iter().map(record).collect(),
        ..Conclusion::default()
    };
    Experiment::new("trace", matches).finish(conclusion)
}

fn text(model: &TraceModel, found: &Statistics, fits: &[Fit]) -> String {
    let Statistics { gets, urls, sites, clients, bytes, .. } = found;
    let mut text = format!(
        "synthetic, like {}: {gets} gets of {urls} URLs at {sites} origin servers by {clients} clients, {bytes} bytes\n",
        model.name
    );
    let mut table = Table::new(&["figure", "published", "synthetic"]);
    for Fit { what, target, ours, .. } in fits {
        let show =
            |value: f64| if value > 10.0 { format!("{value:.0}") } else { format!("{value:.3}") };
        table.row(&[what.clone(), show(*target), show(*ours)]);
    }
    text.push_str(&table.render());
    text
}
