//! `foxy figure`: reproduces the seeds' tables and figures, on the model of their disk and on real file systems, and says
//! what came out.

use crate::failure::Failure;
use crate::lab::measured::{Context, MEASURED, MeasuredEntry};
use crate::lab::progress::Progress;
use crate::lab::records;
use crate::signals::stop_on_signal;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_device::{DiskProfile, calibrate};
use foxy_lab::figures::picture::Drawing;
use foxy_lab::figures::{Extent, FIGURES, Figure, FigureEntry, Lab};
use foxy_lab::sim::runs::Watch;
use foxy_report::chart::Provenance;
use foxy_report::figure::{FigureRow, Place, as_markdown, as_text, figure_table};
use foxy_report::page::Page;
use foxy_report::{Record, Setup};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// The scale of a quick run, and of a full one.
const QUICK: f64 = 0.1;
const FULL_SEEDS: u64 = 3;

const LONG: &str = "Reproduces the seeds' tables and figures: the same storage schemes that serve clients are driven with \
a synthetic trace fitted to the paper's on a calibrated model of its disk, in virtual time; and, at a twentieth of the \
scale, on real file systems: 000-d1 and 001-fig2-disk mount their own in loop devices, which needs root. Every row says what was \
quoted, what came out here, their ratio and what that comes to: reproduced, shape only, different today, or not \
possible here.\n\nFigures:";

/// The command's arguments.
pub fn command() -> Command {
    let list = Wanted::all().map(|figure| format!("\n  {:<15} {}", figure.name(), figure.title()));
    Command::new("figure")
        .about("Reproduce the tables and figures of the papers foxy grew out of")
        .long_about(format!("{LONG}{}", list.collect::<String>()))
        .arg(Arg::new("name").value_name("NAME|all").required(true).num_args(1..).help("Which figures"))
        .arg(
            Arg::new("quick")
                .long("quick")
                .action(ArgAction::SetTrue)
                .conflicts_with("full")
                .help("A tenth of the paper's scale and one seed; the default"),
        )
        .arg(
            Arg::new("full")
                .long("full")
                .action(ArgAction::SetTrue)
                .help("The paper's scale (1,058,206 URL-gets, 512 MB memory, 2 GB disk) and three seeds"),
        )
        .arg(
            Arg::new("scale")
                .long("scale")
                .value_name("FACTOR")
                .value_parser(value_parser!(f64))
                .help("Trace, memory and disk as a share of the paper's, from 0.02 to 1"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("N")
                .action(ArgAction::Append)
                .value_parser(value_parser!(u64))
                .help("A seed of trace and disk; more than one for a range"),
        )
        .arg(path("folder", "DIR", "Where measured figures work; by default the system's temporary folder"))
        .arg(path("out", "DIR", "Where the pictures go: for each its data as CSV, and an SVG"))
        .arg(path("markdown", "FILE", "Where the table goes, as Markdown"))
        .arg(path("html", "FILE", "Where a page with all pictures and the table goes"))
        .arg(records::argument())
}

fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf)).help(help)
}

/// A figure of either table.
#[derive(Clone, Copy)]
enum Wanted {
    Model(&'static FigureEntry),
    Measured(&'static MeasuredEntry),
}

impl Wanted {
    /// Those on the model first.
    fn all() -> impl Iterator<Item = Self> {
        FIGURES.iter().map(Self::Model).chain(MEASURED.iter().map(Self::Measured))
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

/// Runs the figures that were asked for.
///
/// # Errors
/// An unknown figure or a scale that makes no sense; a file that cannot be written; a model that is not calibrated.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let wanted = wanted(matches)?;
    let extent = extent(matches)?;
    let calibration = calibrate(&DiskProfile::st15150w(), extent.seeds[0]);
    terminal::print(&format!("Calibration of the model disk (R3):\n{calibration}"));
    if !calibration.holds() {
        return Err(Failure::Failed(
            "the model disk does not hold its calibration; no figure is drawn".into(),
        ));
    }
    let label = Mutex::new(Progress::new("figures", None));
    let progress = |done: usize, total: usize| {
        let mut line = label.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        line.update_of(done as u64, total as u64);
    };
    let lab = Lab::new(extent.clone(), &progress);
    let made = make(&wanted, &lab, matches)?;
    drop(lab);
    drop(label);
    let rows: Vec<FigureRow> = made.iter().flat_map(|(_, figure)| figure.rows.clone()).collect();
    if let Some(folder) = matches.get_one::<PathBuf>("out") {
        write_pictures(folder, &made, &extent)?;
    }
    if let Some(file) = matches.get_one::<PathBuf>("markdown") {
        write(file, &as_markdown(&rows))?;
    }
    let setup = Setup { scale: extent.scale, ..records::setup(extent.seeds[0]) };
    if let Some(file) = matches.get_one::<PathBuf>("html") {
        write(file, &page(&setup, &made, &extent, &rows))?;
    }
    records::write(matches, setup, rows.iter().cloned().map(Record::FigureRow).collect(), true)?;
    terminal::print(&as_text(&rows));
    Ok(())
}

/// Makes them. While something is measured, a signal ends the run only when what it made is removed.
fn make(wanted: &[Wanted], lab: &Lab, matches: &ArgMatches) -> Result<Vec<(Wanted, Figure)>, Failure> {
    let mut made = Vec::new();
    for &one in wanted {
        if let Wanted::Model(entry) = one {
            made.push((one, entry.make(lab)));
        }
    }
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir);
    let watch = Arc::new(Watch::default());
    if wanted.iter().any(|one| matches!(one, Wanted::Measured(_))) {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Failure::Unusable(format!(
                "--folder {folder}: no such folder; name one that exists"
            )));
        }
        stop_on_signal(&watch)?;
    }
    let context = Context { lab, folder, watch: &watch };
    for &one in wanted {
        if let Wanted::Measured(entry) = one {
            made.push((one, entry.make(&context)));
        }
    }
    if watch.stop.load(Relaxed) {
        return Err(Failure::Failed("figure: stopped by a signal; what it had made is removed".into()));
    }
    Ok(made)
}

fn wanted(matches: &ArgMatches) -> Result<Vec<Wanted>, Failure> {
    let names: Vec<&String> = matches.get_many("name").into_iter().flatten().collect();
    if names.iter().any(|name| *name == "all") {
        return Ok(Wanted::all().collect());
    }
    let find = |name: &String| {
        Wanted::all().find(|figure| figure.name() == name).ok_or_else(|| {
            let known: Vec<_> = Wanted::all().map(Wanted::name).collect();
            Failure::Unusable(format!("there is no figure {name:?}; use all or one of: {}", known.join(", ")))
        })
    };
    names.into_iter().map(find).collect()
}

fn extent(matches: &ArgMatches) -> Result<Extent, Failure> {
    let full = matches.get_flag("full");
    let scale = matches.get_one("scale").copied().unwrap_or(if full { 1.0 } else { QUICK });
    if !(0.02..=1.0).contains(&scale) {
        return Err(Failure::Unusable(format!("--scale: {scale} is not between 0.02 and 1")));
    }
    let seeds: Vec<u64> = matches.get_many("seed").into_iter().flatten().copied().collect();
    let seeds = match (seeds.is_empty(), full) {
        (false, _) => seeds,
        (true, true) => (1..=FULL_SEEDS).collect(),
        (true, false) => vec![1],
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Extent { scale, seeds, threads })
}

fn write_pictures(folder: &Path, made: &[(Wanted, Figure)], extent: &Extent) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (entry, figure) in made {
        for (number, picture) in (1..).zip(&figure.pictures) {
            let name = if figure.pictures.len() == 1 {
                entry.name().into()
            } else {
                format!("{}-{number}", entry.name())
            };
            write(&folder.join(format!("{name}.csv")), &picture.as_csv())?;
            let drawing = picture.drawing(provenance(*entry, extent));
            write(&folder.join(format!("{name}.svg")), &drawing.svg())?;
        }
    }
    Ok(())
}

fn provenance(entry: Wanted, extent: &Extent) -> Provenance {
    Provenance {
        source: entry.name().into(),
        place: entry.place(),
        scale: extent.scale,
        seeds: u32::try_from(extent.seeds.len()).unwrap_or(u32::MAX),
    }
}

/// All pictures and the table on one page.
fn page(setup: &Setup, made: &[(Wanted, Figure)], extent: &Extent, rows: &[FigureRow]) -> String {
    let mut page = Page::new("The seeds' tables and figures");
    page.setup(setup);
    page.table("Quoted, ours, and what that comes to", &figure_table(rows));
    for (entry, figure) in made {
        page.heading(&format!("{}: {}", entry.name(), entry.title()));
        for picture in &figure.pictures {
            match picture.drawing(provenance(*entry, extent)) {
                Drawing::Chart(chart) => page.chart(&chart),
                Drawing::Map(map) => page.map(&map),
            }
        }
    }
    page.html()
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| unwritable(file, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::Failed(format!("{path}: cannot be written: {error}; name a place that can be written to"))
}
