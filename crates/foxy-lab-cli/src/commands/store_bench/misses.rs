//! `foxy store bench misses`: compares the misses of the default engine with LRU, other policies
//! and oracles (simulated caches that know the future). All caches have an equal number of disk
//! bytes.

use crate::arguments::{option, path, switch};
use crate::experiment::{self, Conclusion, Experiment, Flag, flags};
use crate::logs;
use clap::{ArgAction, ArgMatches, Command};
use foxy_cli::failure::Failure;
use foxy_cli::machine::Machine;
use foxy_cli::progress::Progress;
use foxy_lab::parallel::run_all;
use foxy_lab::simulation::store_bench::misses::{
    self, CONTENDERS, Contender, DISK_PERCENTAGES, ENGINES, MissTally, MissTrial, Workload, ratio,
};
use foxy_report::{Measure, Record, Table};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The bound on the engine's misses, as a share of the misses of LRU. A second bound requires that
/// the engine misses no more bytes than LRU.
const MISSES: f64 = 0.9;

const ABOUT: &str = "\
Send synthetic workloads, and a log if given, through models of stores. The disks have 1, 5, 10 \
and 20 % of the bytes of all objects. The command prints misses and byte misses as multiples of \
the misses of LRU.

All stores have the same disk bytes. Policies and oracles store objects in units of 512 bytes, \
and their index uses no disk. Stores with segments also pay for headers, unused parts of pages, \
footers, checkpoints and free segments. webcosm-staged keeps large new objects in memory, and \
writes them when they are requested again. This memory is a fiftieth of the disk, and its disk \
is smaller by the same amount. The model has no IO and no time.

With --engine the default store engine itself also runs, with and without this memory, on a \
device in memory. The command counts all its writes. It needs twice the bytes of the largest \
disk as memory.";

pub fn command() -> Command {
    Command::new("misses")
        .about(
            "Compare misses of stores and replacement policies with the misses of LRU, at equal \
             disk space",
        )
        .long_about(ABOUT)
        .arg(path(
            "trace",
            "FILE",
            "Log file, plain or gzip, to use in addition to the synthetic workloads",
        ))
        .arg(logs::format().requires("trace"))
        .arg(switch(
            "engine",
            "Also run the store engine itself, not only its model; takes minutes",
        ))
        .arg(
            option(
                "workload",
                "NAME",
                "Synthetic workloads to run; can be repeated [default: all]",
            )
            .value_parser(misses::synthetic())
            .value_delimiter(',')
            .action(ArgAction::Append),
        )
        .arg(switch("quick", "Use a fiftieth of each synthetic workload"))
        .args(flags([Flag::Seed, Flag::Json]))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let seed = experiment::seed(matches);
    let threads = Machine::look().cores;
    let workloads = workloads(matches, seed, threads)?;
    let contenders = contenders(matches.get_flag("engine"));
    let trials: Vec<MissTrial> =
        workloads.iter().flat_map(|workload| trials(workload, &contenders)).collect();
    let (done, total) = (AtomicU64::new(0), trials.len() as u64);
    let mut progress = Progress::new("runs", Some(total));
    let one = |trial: &MissTrial| {
        let tally = misses::run(trial);
        done.fetch_add(1, Relaxed);
        tally
    };
    let tallies = run_all(&trials, threads, &one, &mut || progress.update(done.load(Relaxed)));
    drop(progress);
    let names = contenders.iter().map(|&(_, name)| name).cycle();
    let cells = trials.iter().zip(names).zip(tallies);
    let cells: Vec<Cell> =
        cells.map(|((trial, name), tally)| Cell { trial, name, tally }).collect();
    let disks: Vec<Disk> = cells.chunks(contenders.len()).map(|cells| Disk { cells }).collect();
    let conclusion = Conclusion {
        text: text(&disks),
        records: disks.iter().flat_map(measures).map(Record::Measure).collect(),
        ..Conclusion::default()
    };
    Experiment::new("store bench", matches).finish(conclusion)
}

fn workloads(matches: &ArgMatches, seed: u64, threads: usize) -> Result<Vec<Workload>, Failure> {
    let mut list = Vec::new();
    if let Some(path) = matches.get_one::<PathBuf>("trace") {
        let (trace, _) = logs::read_log(matches, "--trace ", path)?;
        let name = path.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy());
        list.push(Workload::of(&name, &trace));
    }
    let is_quick = matches.get_flag("quick");
    let make = |name: &&str| misses::make(name, is_quick, seed);
    let names: Vec<&str> = match matches.get_many::<String>("workload") {
        Some(names) => names.map(String::as_str).collect(),
        None => misses::synthetic(),
    };
    list.extend(run_all(&names, threads, &make, &mut || {}));
    Ok(list)
}

fn contenders(with_engine: bool) -> Vec<(Contender, &'static str)> {
    let engines = ENGINES.into_iter().filter(|_| with_engine);
    CONTENDERS.into_iter().chain(engines).collect()
}

fn trials<'a>(
    workload: &'a Workload,
    contenders: &[(Contender, &str)],
) -> impl Iterator<Item = MissTrial<'a>> {
    let of = move |percent| {
        contenders.iter().map(move |&(contender, _)| MissTrial { workload, percent, contender })
    };
    DISK_PERCENTAGES.into_iter().flat_map(of)
}

struct Cell<'a> {
    trial: &'a MissTrial<'a>,
    name: &'static str,
    tally: MissTally,
}

struct Disk<'a> {
    cells: &'a [Cell<'a>],
}

impl Disk<'_> {
    fn trial(&self) -> &MissTrial<'_> {
        self.cells[0].trial
    }

    fn lru(&self) -> &MissTally {
        &self.cells[0].tally
    }

    fn oracles(&self) -> Vec<MissTally> {
        let oracles =
            self.cells.iter().filter(|cell| matches!(cell.trial.contender, Contender::Oracle(_)));
        oracles.map(|cell| cell.tally).collect()
    }

    fn against_lru(&self, cell: &Cell) -> (f64, f64) {
        let (own, lru) = (&cell.tally, self.lru());
        (ratio(own.misses(), lru.misses()), ratio(own.missed_bytes(), lru.missed_bytes()))
    }

    fn of(&self, contender: Contender) -> Option<&Cell<'_>> {
        self.cells.iter().find(|cell| cell.trial.contender == contender)
    }
}

fn text(disks: &[Disk]) -> String {
    let mut text = String::new();
    for disks in disks.chunks(DISK_PERCENTAGES.len()) {
        let mut heads = vec!["misses / byte misses".to_owned()];
        heads.extend(DISK_PERCENTAGES.map(|percent| format!("{percent} %")));
        heads.extend(["written/missed".to_owned(), "copied/admitted".to_owned()]);
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        table.row(&row("lru, share of gets / bytes", disks, &|disk, _| shares(disk.lru())));
        for (place, Cell { name, .. }) in disks[0].cells.iter().enumerate().skip(1) {
            let ratios = |disk: &Disk, place: usize| {
                let (misses, bytes) = disk.against_lru(&disk.cells[place]);
                format!("{misses:.3} / {bytes:.3}")
            };
            let mut cells = row(name, disks, &|disk, _| ratios(disk, place));
            cells.extend(writes(disks, place));
            table.row(&cells);
        }
        let name = &disks[0].trial().workload.name;
        text.push_str(&format!("{name}\n{}\n", table.render()));
    }
    text.push_str(&verdicts(disks));
    text
}

fn row(name: &str, disks: &[Disk], cell: &dyn Fn(&Disk, usize) -> String) -> Vec<String> {
    let cells = disks.iter().enumerate().map(|(place, disk)| cell(disk, place));
    std::iter::once(name.to_owned()).chain(cells).collect()
}

fn shares(tally: &MissTally) -> String {
    format!("{:.3} / {:.3}", 1.0 - tally.counts.hit_ratio(), 1.0 - tally.counts.byte_hit_ratio())
}

fn writes(disks: &[Disk], place: usize) -> Vec<String> {
    let tallies = disks.iter().map(|disk| &disk.cells[place].tally);
    let written: Vec<_> = tallies.filter(|tally| tally.admitted > 0).map(written).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let sum: f64 = written.iter().map(of).sum();
        if written.is_empty() {
            "–".to_owned()
        } else {
            format!("{:.2}", sum / written.len() as f64)
        }
    };
    vec![mean(&|one| one.0), mean(&|one| one.1)]
}

fn written(tally: &MissTally) -> (f64, f64) {
    (
        ratio(tally.admitted + tally.copied, tally.missed_bytes()),
        ratio(tally.copied, tally.admitted),
    )
}

/// Returns lines about the bound on misses. They say whether the simulated rules of the engine, and
/// each real engine that ran, met the bound at each disk size.
fn verdicts(disks: &[Disk]) -> String {
    let mut text = String::from("webcosm: a tenth fewer misses than LRU, byte misses no more\n");
    for disk in disks {
        let judged = |cell: &&Cell| {
            let contender = cell.trial.contender;
            contender == Contender::Webcosm || ENGINES.iter().any(|engine| engine.0 == contender)
        };
        let MissTrial { workload, percent, .. } = disk.trial();
        for cell in disk.cells.iter().filter(judged) {
            let verdict = verdict(disk, cell);
            let name = cell.name;
            text.push_str(&format!("  {} at {percent} %, {name}: {verdict}\n", workload.name));
        }
    }
    text
}

fn verdict(disk: &Disk, cell: &Cell) -> String {
    let (misses, bytes) = disk.against_lru(cell);
    let floor = disk.of(Contender::Infinite).map_or(0.0, |cell| disk.against_lru(cell).0);
    let word = if misses <= MISSES && bytes <= 1.0 {
        "reached"
    } else if floor > MISSES && bytes <= 1.0 {
        "not possible: a cache that never evicts misses more"
    } else {
        "not reached"
    };
    let gap = misses::gap_closed(&cell.tally, disk.lru(), &disk.oracles());
    let gap =
        gap.map_or_else(String::new, |gap| format!(", {:.0} % of the gap to Belady", gap * 100.0));
    format!("{misses:.3} / {bytes:.3}{gap}: {word}")
}

fn measures(disk: &Disk) -> Vec<Measure> {
    let MissTrial { workload, percent, .. } = disk.trial();
    let mut list = Vec::new();
    for cell in disk.cells {
        let (contender, name) = (cell.trial.contender, cell.name);
        let subject = format!("{name}@{percent}% of {}", workload.name);
        let mut add =
            |name: &str, value, unit: &str| list.push(Measure::once(name, &subject, value, unit));
        let (misses, bytes) = disk.against_lru(cell);
        add("hit_ratio", cell.tally.counts.hit_ratio(), "share");
        add("byte_hit_ratio", cell.tally.counts.byte_hit_ratio(), "share");
        add("misses_against_lru", misses, "times");
        add("byte_misses_against_lru", bytes, "times");
        if cell.tally.admitted > 0 {
            let (written, copied) = written(&cell.tally);
            add("written_per_missed_byte", written, "bytes");
            add("copied_per_admitted_byte", copied, "bytes");
        }
        let is_online = !matches!(contender, Contender::Oracle(_) | Contender::Infinite);
        let gap = misses::gap_closed(&cell.tally, disk.lru(), &disk.oracles());
        if let Some(gap) = gap.filter(|_| is_online) {
            add("gap_to_belady_closed", gap, "share");
        }
    }
    list
}
