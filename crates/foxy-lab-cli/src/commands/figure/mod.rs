//! `foxy figure`: reproduces tables and figures of published papers, on a model of a disk and on
//! real file systems and proxies.

mod kept;
mod outputs;
pub mod requirements;
mod stopping;

use crate::arguments::{option, path, switch};
use crate::experiment::{Flag, flags};
use crate::folder::{claim, existing, remove_leftovers, store_lock, words};
use crate::logs;
use crate::measured::{Context, MEASURED, MeasuredEntry};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::machine::Machine;
use foxy_cli::progress::Progress;
use foxy_cli::terminal;
use foxy_device::{DiskProfile, Root, calibrate};
use foxy_lab::simulation::figures::{Extent, FIGURES, Figure, FigureEntry, Lab, RecordedTrace};
use foxy_lab::simulation::storage::runs::Watch;
use foxy_report::figure::{FigureRow, Place, as_text, scale_text};
use kept::Kept;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stopping::Stopping;

const QUICK: f64 = 0.05;
const FULL_SEEDS: u64 = 3;
/// The scales of a full run, where 1 is the size of the paper's trace, memory and disk. A ratio has
/// a verdict (agreement with the paper) only if the runs at both scales give the same verdict.
const FULL_SCALES: [f64; 2] = [1.0, 0.25];

/// The memory in bytes that one simulated run takes at full scale. The modelled disk keeps its
/// whole content in memory.
const RUN_MEMORY: f64 = 6.5e9;

const LONG: &str = "\
Reproduce the tables and figures of the papers. The production storage schemes run with a \
synthetic trace that resembles the paper's trace, on a calibrated model of the paper's disk in \
virtual time. Measured figures run at a twentieth of the scale on real file systems. 000-d1 and \
001-fig2-disk mount their own file systems in loop devices, which needs root.

Every row gives the value of the paper, our value, their ratio and a verdict. The verdicts are \
reproduced (all seeds within the tolerance), shape only (order or direction as in the paper), \
differs, different today (measured), no quote, unequal work, no verdict, and not possible here.

A row has a verdict only under its conditions: three seeds; 1.5 fills of the cache; the cause that \
the paper names, shown by counts; and for ratios the same verdict at a second scale. Otherwise the \
row says \"no verdict\" and gives the reasons. So a verdict needs --full, or several --seed and \
--scale. A quoted value that the paper does not state is marked: derived (a formula of the paper's \
numbers), words (only a direction, such as faster) or edition (stated in another edition).

The modelled disk stores its content, so a run at full scale uses up to 6.5 GB of memory. Runs \
execute in parallel as far as cores and memory allow.

With --resume, an interrupted run can continue: a later run with this file leaves out the figures \
that are finished.

`all` leaves out the figures that put load on servers, because they take minutes at any scale. \
To make them, name them in addition. `requirements` prints what the papers require, the state of \
each requirement, and the command that shows it.

Figures:";

pub fn command() -> Command {
    let list = Wanted::every().map(|figure| {
        let beside = if figure.is_in_all() { "" } else { " (not in all)" };
        format!("\n  {:<15} {}{beside}", figure.name(), figure.title())
    });
    Command::new("figure")
        .about("Reproduce the tables and figures of the papers that foxy is based on")
        .long_about(format!("{LONG}{}", list.collect::<String>()))
        .arg(
            Arg::new("name")
                .value_name("NAME|all|requirements")
                .required(true)
                .num_args(1..)
                .help("Figures to make; `all` leaves out the figures that put load on servers"),
        )
        .arg(
            switch(
                "quick",
                "Use a twentieth of the paper's scale and one seed; this is the default",
            )
            .conflicts_with("full"),
        )
        .arg(switch(
            "full",
            "Use the paper's scale (1,058,206 requests, 512 MB memory, 2 GB disk), a quarter of it \
             as second scale, and three seeds",
        ))
        .arg(
            option(
                "scale",
                "FACTOR",
                "Size of trace, memory and disk as a share of the paper's, from 0.02 to 1; give it \
                 again for a second scale that must have the same verdicts [default: 0.05]",
            )
            .action(ArgAction::Append)
            .value_parser(value_parser!(f64)),
        )
        .arg(
            option(
                "seed",
                "N",
                "Seed of trace and disk; can be repeated, then the rows show the range of values",
            )
            .action(ArgAction::Append)
            .value_parser(value_parser!(u64)),
        )
        .arg(path(
            "trace",
            "FILE",
            "Also make Tables 1 and 2 and Figs 6 to 16 from this log file; caches and disk keep the \
             paper's proportion to the requested bytes",
        ))
        .arg(logs::format())
        .arg(path(
            "folder",
            "DIR",
            "Folder for measured figures [default: the system's temporary folder]",
        ))
        .arg(kept::argument())
        .arg(path("out", "DIR", "Write each picture to this folder, as SVG and as CSV data"))
        .arg(path("markdown", "FILE", "Write the table to this Markdown file"))
        // The folders of `--html` and `--json` need not exist when the arguments are parsed. They
        // may be inside the folder of `--out`, which the command creates first.
        .args(flags([Flag::Html, Flag::Json]).map(|flag| flag.value_parser(value_parser!(PathBuf))))
}

#[derive(Clone, Copy)]
enum Wanted {
    Model(&'static FigureEntry),
    Measured(&'static MeasuredEntry),
}

impl Wanted {
    fn every() -> impl Iterator<Item = Self> {
        FIGURES.iter().map(Self::Model).chain(MEASURED.iter().map(Self::Measured))
    }

    const fn is_in_all(self) -> bool {
        match self {
            Self::Model(_) => true,
            Self::Measured(entry) => !entry.loads_servers,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Model(entry) => entry.name,
            Self::Measured(entry) => entry.name,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Model(entry) => entry.title,
            Self::Measured(entry) => entry.title,
        }
    }

    const fn place(self) -> Place {
        match self {
            Self::Model(_) => Place::Simulated,
            Self::Measured(_) => Place::Measured,
        }
    }
}

/// The name that prints the table of the papers' requirements instead of a figure.
const REQUIREMENTS: &str = "requirements";

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.get_many::<String>("name").into_iter().flatten().any(|name| name == REQUIREMENTS) {
        terminal::print(&requirements::text());
        return Ok(());
    }
    let wanted = wanted(matches)?;
    let extents = extents(matches)?;
    let extent = extents[0].clone();
    outputs::check(matches)?;
    let _lock = lock(matches, &wanted)?;
    let calibration = calibrate(&DiskProfile::st15150w(), extent.seeds[0]);
    terminal::print(&format!("Calibration of the model disk (R3):\n{calibration}"));
    if !calibration.holds() {
        return Err(Failure::Failed(
            "the model disk differs from its calibration, so foxy makes no figure".into(),
        ));
    }
    let kept = Kept::open(matches)?;
    let stopping = stopping::at_signal(matches)?;
    let line = Mutex::new(Progress::new("figures", None));
    let progress =
        |done: usize, total: usize| lock_line(&line).update_of(done as u64, total as u64);
    let making = Making { kept: &kept, line: &line, matches, stopping: &stopping };
    let labs: Vec<Lab> = extents.iter().map(|extent| Lab::new(extent.clone(), &progress)).collect();
    let (modelled, measured): (Vec<Wanted>, Vec<Wanted>) =
        wanted.iter().partition(|figure| matches!(figure, Wanted::Model(_)));
    // While only simulations run, a signal ends the program at once. So simulated figures come
    // first. Figures with real proxies and file systems, which need time to clean up, come last.
    let (mut made, mut second) = making.at_scales(&modelled, &labs)?;
    let (recorded, recorded_second) = making.recorded(&wanted, &extents, &progress)?;
    let (more, more_second) = making.at_scales(&measured, &labs)?;
    drop(labs);
    drop(line);
    made.extend(more.into_iter().chain(recorded));
    second.extend(more_second.into_iter().chain(recorded_second));
    settle(&mut made, &second);
    let rows: Vec<FigureRow> = made.iter().flat_map(|(_, figure)| figure.rows.clone()).collect();
    terminal::print(&as_text(&rows));
    outputs::write(matches, &made, &extent, &rows)
}

type Made = Vec<(Wanted, Figure)>;

/// The settings and results of a run of `foxy figure` that all its figures share.
#[derive(Clone, Copy)]
struct Making<'a> {
    kept: &'a Kept,
    line: &'a Mutex<Progress>,
    matches: &'a ArgMatches,
    stopping: &'a Stopping,
}

fn lock_line(line: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Making<'_> {
    /// Makes the figures at the first scale. Makes the figures that `foxy figure all` includes also
    /// at the second scale.
    fn at_scales(&self, wanted: &[Wanted], labs: &[Lab]) -> Result<(Made, Made), Failure> {
        let first = self.all(wanted, &labs[0])?;
        let scaled: Vec<Wanted> =
            wanted.iter().copied().filter(|figure| figure.is_in_all()).collect();
        let second = labs.get(1).map(|lab| self.all(&scaled, lab)).transpose()?;
        Ok((first, second.unwrap_or_default()))
    }

    /// Makes the figures in their order. If a signal interrupts a figure, the file of `--resume`
    /// does not get this figure.
    fn all(&self, wanted: &[Wanted], lab: &Lab) -> Result<Made, Failure> {
        let (mut made, total) = (Vec::new(), wanted.len());
        let mut watch = Watch::default();
        if wanted.iter().any(|one| matches!(one, Wanted::Measured(_))) {
            self.stopping.cleans_up.store(true, Relaxed);
            watch.stop = Arc::clone(&self.stopping.stop);
        }
        let context = Context { lab, folder: folder(self.matches), watch: &watch };
        for (number, &one) in (1..).zip(wanted) {
            let (name, scale) = (one.name(), scale_text(lab.extent().scale));
            lock_line(self.line).begin(&format!("figure {number} of {total}, {name}, {scale}"));
            let make = || {
                let figure = match one {
                    Wanted::Model(entry) => entry.make(lab),
                    Wanted::Measured(entry) => entry.make(&context),
                };
                let stopped = "figure: stopped by a signal; its files are removed; the same \
                               command with the file of --resume continues";
                let is_stopped = watch.stop.load(Relaxed);
                if is_stopped { Err(Failure::Failed(stopped.into())) } else { Ok(figure) }
            };
            made.push((one, self.kept.figure(name, lab.extent(), make)?));
        }
        Ok(made)
    }

    /// Makes the figures from the whole trace file, which is the full scale. Then makes them from
    /// the beginning of the file, which is the smaller scale.
    fn recorded(
        &self,
        wanted: &[Wanted],
        extents: &[Extent],
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<(Made, Made), Failure> {
        let Some(file) = self.matches.get_one::<PathBuf>("trace") else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (trace, _) = logs::read_log(self.matches, "--trace ", file)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let whole = RecordedTrace { name, trace };
        let make = |recorded: RecordedTrace| -> Result<Made, Failure> {
            let trace = recorded.name.clone();
            let lab = Lab::of_trace(&extents[0], recorded, progress);
            let entries = wanted.iter().filter_map(|&one| match one {
                Wanted::Model(entry) if entry.takes_trace() => Some((one, entry)),
                _ => None,
            });
            let make = |(one, entry): (Wanted, &FigureEntry)| {
                let name = format!("{} of {trace}", entry.name);
                lock_line(self.line).begin(&format!("figure {name}"));
                Ok((one, self.kept.figure(&name, lab.extent(), || Ok(entry.make(&lab)))?))
            };
            entries.map(make).collect()
        };
        let second = extents.get(1).map(|second| whole.first(second.scale / extents[0].scale));
        Ok((make(whole)?, second.map(make).transpose()?.unwrap_or_default()))
    }
}

/// Compares each row with the same row at the second scale. Then removes each verdict (agreement
/// with the paper) that lacks one of its conditions.
fn settle(made: &mut [(Wanted, Figure)], second: &[(Wanted, Figure)]) {
    for (_, figure) in made {
        for row in &mut figure.rows {
            let is_same = |other: &&FigureRow| {
                (&other.figure, &other.row, &other.trace) == (&row.figure, &row.row, &row.trace)
            };
            let other = second.iter().flat_map(|(_, figure)| &figure.rows).find(is_same);
            row.at_second_scale(other);
            row.settle();
        }
    }
}

fn folder(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir)
}

/// Locks the folder for measured figures, and removes files that killed runs left behind.
fn lock(matches: &ArgMatches, wanted: &[Wanted]) -> Result<(Option<Root>, Option<File>), Failure> {
    if !wanted.iter().any(|one| matches!(one, Wanted::Measured(_))) {
        return Ok((None, None));
    }
    let folder = folder(matches);
    let unusable = |what: &str| Failure::Unusable(format!("--folder {}: {what}", folder.display()));
    existing("--folder", &folder)?;
    let lock = store_lock(&folder).map_err(|error| unusable(&words(&error)))?;
    let claimed = claim("--folder", &folder)?;
    remove_leftovers(&folder);
    Ok((lock, claimed))
}

fn wanted(matches: &ArgMatches) -> Result<Vec<Wanted>, Failure> {
    let names: Vec<&String> = matches.get_many("name").into_iter().flatten().collect();
    let is_known =
        |name: &str| name == "all" || Wanted::every().any(|figure| figure.name() == name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<_> = Wanted::every().map(Wanted::name).collect();
        let known = known.join(", ");
        return Err(Failure::Unusable(format!(
            "there is no figure {name:?}; use all or one of: {known}"
        )));
    }
    let is_named = |name: &str| names.iter().any(|other| *other == name);
    let all = is_named("all");
    Ok(Wanted::every()
        .filter(|figure| is_named(figure.name()) || all && figure.is_in_all())
        .collect())
}

/// Returns the extent (scale, seeds and threads) for each `--scale`: one or two extents. Without
/// `--scale`, chooses the scales itself.
fn extents(matches: &ArgMatches) -> Result<Vec<Extent>, Failure> {
    let full = matches.get_flag("full");
    let mut scales: Vec<f64> = matches.get_many("scale").into_iter().flatten().copied().collect();
    if scales.is_empty() {
        scales = if full { FULL_SCALES.to_vec() } else { vec![QUICK] };
    }
    if let Some(scale) = scales.iter().find(|scale| !(0.02..=1.0).contains(*scale)) {
        return Err(Failure::Unusable(format!("--scale: {scale} is not between 0.02 and 1")));
    }
    if scales.len() > 2 || scales.len() == 2 && scales[0] == scales[1] {
        return Err(Failure::Unusable("--scale: give one scale, or two that differ".into()));
    }
    let seeds: Vec<u64> = matches.get_many("seed").into_iter().flatten().copied().collect();
    let seeds = match (seeds.is_empty(), full) {
        (false, _) => seeds,
        (true, true) => (1..=FULL_SEEDS).collect(),
        (true, false) => vec![1],
    };
    let machine = Machine::look();
    let extent = |scale: f64| {
        let most =
            machine.memory.map_or(f64::INFINITY, |memory| memory.0 as f64 / (RUN_MEMORY * scale));
        Extent { scale, seeds: seeds.clone(), threads: machine.cores.min(most as usize).max(1) }
    };
    Ok(scales.into_iter().map(extent).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Vec<&'static str> {
        let matches =
            command().try_get_matches_from([&["figure"], arguments].concat()).expect("valid");
        let wanted = wanted(&matches).map_err(|failure| failure.to_string()).expect("known");
        wanted.into_iter().map(Wanted::name).collect()
    }

    #[test]
    fn all_are_all_but_those_that_load_servers() {
        let (all, loading) = (names(&["all"]), names(&["003-wpb", "001-fig18"]));
        assert!(all.contains(&"001-table2") && all.contains(&"000-d1"), "{all:?}");
        assert!(!all.iter().any(|name| loading.contains(name)), "{all:?}");
        assert_eq!(loading, ["001-fig18", "003-wpb"]);
        assert_eq!(names(&["001-fig18", "all", "000-d1"]), [&all[..], &["001-fig18"]].concat());
    }
}
