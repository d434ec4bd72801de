//! `foxy load`: asks a proxy for a workload's objects, checks every byte, and says how fast, how often from the cache,
//! and how right the answers were.

mod arguments;
mod bars;
mod cpu;

pub use arguments::command;

use crate::failure::Failure;
use crate::settings::machine;
use crate::terminal::{self, Level};
use arguments::Plan;
use bars::Bar;
use clap::ArgMatches;
use foxy_base::clock;
use foxy_lab::load::{self, Mode, Stop};
use foxy_lab::{LoadReport, Origin, OriginOptions};
use foxy_report::{Record, Setup, Table, write_records};
use std::io::IsTerminal;
use std::net::Ipv4Addr;
use std::path::Path;

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let mut plan = Plan::of(matches)?;
    let own = plan.own_origin.then(own_origin).transpose()?;
    if let Some(origin) = &own {
        plan.load.mode = Mode::Forward { origin: origin.address().to_string() };
    }
    let setup = setup(&plan);
    plan.load.first_request = first_request(setup.started);
    if plan.load.workload.warm_up {
        measure("warm-up", plan.load.workload.objects, |progress| load::warm_up(&plan.load, progress))?;
        plan.load.first_request += plan.load.workload.objects;
    }
    let requests = if let Stop::Requests(count) = plan.load.stop { count } else { 0 };
    let before = cpu::time(&plan.processes)?;
    let report = measure("load", requests, |progress| load::run(&plan.load, progress))?;
    let spent = cpu::time(&plan.processes)?.zip(before).map(|(after, before)| after.saturating_sub(before));
    let mut records = report.records(&plan.subject, spent);
    terminal::print(table(&plan.subject, &records).trim_end());
    let missed = bars::missed(&plan.bars, &records)?;
    records.insert(0, Record::Setup(setup));
    records.push(Record::End { held: missed.is_empty() });
    if let Some(path) = &plan.json {
        save(path, &records)?;
    }
    if missed.is_empty() { Ok(()) } else { Err(Failure::Missed(missed.join("\n"))) }
}

/// Runs of different seconds use different request numbers, so that an answer stored by an earlier run is known as a hit.
fn first_request(started: u64) -> u64 {
    started << 30
}

fn own_origin() -> Result<Origin, Failure> {
    Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
        .map_err(|error| Failure::Failed(format!("cannot start the verifying origin on loopback: {error}")))
}

fn setup(plan: &Plan) -> Setup {
    Setup {
        program: "foxy".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command: plan.command.clone(),
        machine: machine::describe(),
        seed: plan.load.seed,
        scale: 1.0,
        started: clock::wall().seconds(),
    }
}

fn measure(
    what: &str,
    of: u64,
    run: impl FnOnce(&mut dyn FnMut(u64)) -> std::io::Result<LoadReport>,
) -> Result<LoadReport, Failure> {
    let shown = std::io::stderr().is_terminal();
    let of = if of == 0 { String::new() } else { format!(" of {of}") };
    let mut said = 0;
    let mut progress = |begun: u64| {
        let second = clock::monotonic().0 / 1_000_000_000;
        if shown && second > said {
            said = second;
            terminal::report(Level::Info, &format!("{what}: {begun}{of} requests"));
        }
    };
    run(&mut progress).map_err(|error| Failure::Failed(format!("the {what} did not run: {error}")))
}

fn table(subject: &str, records: &[Record]) -> String {
    let mut table = Table::new(&["measure", subject, "unit"]);
    for record in records {
        if let Record::Measure(measure) = record {
            table.row(&[measure.name.clone(), figure(measure.value), measure.unit.clone()]);
        }
    }
    table.render()
}

fn figure(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

fn save(path: &Path, records: &[Record]) -> Result<(), Failure> {
    let write = || write_records(&mut std::io::BufWriter::new(std::fs::File::create(path)?), records);
    write().map_err(|error| {
        Failure::Failed(format!("cannot write the run records to {} (--json): {error}", path.display()))
    })
}
