//! `foxy store bench engine`: measures memory, writes, reads, CPU time and restart time of the
//! default engine. Each measure has a bound that the engine must meet.

use super::{ground, restart};
use crate::arguments::{path, switch};
use crate::experiment::{self, Conclusion, Experiment, Flag, flags};
use clap::{ArgMatches, Command};
use foxy_cli::failure::Failure;
use foxy_cli::process;
use foxy_cli::progress::Progress;
use foxy_lab::simulation::store_bench::{engine, steps};
use foxy_report::{Measure, Record, Table};
use foxy_store::StoreStatus;

const ABOUT: &str = "\
Run the default store engine in one thread, and measure:

  memory and CPU time   while it fills a device that discards its content
  bytes written         while it overwrites a store in memory three times
  reads                 while it reads every small record
  longest step          the longest CPU time of a single call, in a store in memory that is \
overwritten and read twice
  start times           of stores in a folder, left as a killed process leaves them, with their \
files in the page cache: a store full of records, and a store of a tebibyte with few records

Tail latencies of reads during writes need a quiet machine, and are not measured here.";

const ALIKE: [usize; 6] = [500, 1000, 1850, 2200, 3000, 3600];

pub fn command() -> Command {
    Command::new("engine")
        .about("Measure memory, writes, reads and CPU time of the default engine")
        .long_about(ABOUT)
        .arg(path(
            "folder",
            "PATH",
            "Folder for the files of the stores [default: the system's temporary folder]",
        ))
        .arg(switch(
            "quick",
            "Use a hundredth of the bytes; the memory figures are then not reliable",
        ))
        .args(flags([Flag::Seed, Flag::Json]))
}

pub(super) enum MeasureBar {
    AtMost(f64),
    AtLeast(f64),
}

pub(super) struct MeasureRow {
    measure: Measure,
    bar: MeasureBar,
    note: String,
}

impl MeasureRow {
    pub(super) fn new(name: &str, value: f64, unit: &str, bar: MeasureBar, note: String) -> Self {
        Self { measure: Measure::once(name, "webcosm", value, unit), bar, note }
    }

    fn held(&self) -> bool {
        match self.bar {
            MeasureBar::AtMost(most) => self.measure.value <= most,
            MeasureBar::AtLeast(least) => self.measure.value >= least,
        }
    }

    fn cells(&self) -> [String; 5] {
        let bar = match self.bar {
            MeasureBar::AtMost(most) => format!("<= {most}"),
            MeasureBar::AtLeast(least) => format!(">= {least}"),
        };
        let Measure { name, value, unit, .. } = &self.measure;
        let held = if self.held() { "held" } else { "missed" };
        [format!("{name}, {unit}"), format!("{value:.4}"), bar, held.into(), self.note.clone()]
    }
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    ground::parent(matches)?;
    let seed = experiment::seed(matches);
    let scale = if matches.get_flag("quick") { 7 } else { 0 };
    let refused =
        |status: StoreStatus| Failure::Failed(format!("the store does not serve: {status:?}"));
    let mut rows = memory_and_time(scale).map_err(refused)?;
    rows.extend(writes(scale, seed).map_err(refused)?);
    rows.extend(small_records(scale, seed).map_err(refused)?);
    rows.extend(stalls(scale, seed).map_err(refused)?);
    rows.extend(restart::rows(matches, scale, seed)?);
    finish(matches, rows)
}

pub(super) fn finish(matches: &ArgMatches, rows: Vec<MeasureRow>) -> Result<(), Failure> {
    let mut table = Table::new(&["measure", "value", "bar", "", "what was run"]);
    for row in &rows {
        table.row(&row.cells());
    }
    let conclusion = Conclusion {
        text: table.render(),
        records: rows.into_iter().map(|row| Record::Measure(row.measure)).collect(),
        ..Conclusion::default()
    };
    Experiment::new("store bench", matches).finish(conclusion)
}

#[expect(clippy::cast_precision_loss, reason = "measures")]
fn memory_and_time(scale: u32) -> Result<Vec<MeasureRow>, StoreStatus> {
    let total = (2 << 30) >> scale;
    let mut progress = Progress::new("memory", Some(total));
    let before = process::resident_bytes();
    let (filled, store) = engine::fill_nothing(total, 250, &mut |done| progress.update(done))?;
    let resident = process::resident_bytes().saturating_sub(before) as f64 / filled.records as f64;
    drop((progress, store));
    let mut rows = vec![MeasureRow::new(
        "index_bytes_per_object",
        resident,
        "bytes",
        MeasureBar::AtMost(10.0),
        format!(
            "resident memory after {} records; counted {:.2}",
            filled.records,
            filled.index as f64 / filled.records as f64
        ),
    )];
    let total = (32 << 30) >> scale;
    let mut progress = Progress::new("fill", Some(total));
    let before = process::own_cpu_time();
    let (filled, _store) =
        engine::fill_nothing(total, 64 << 10, &mut |done| progress.update(done))?;
    let time = process::own_cpu_time().saturating_sub(before).as_secs_f64();
    rows.push(MeasureRow::new(
        "fill_null_gb_per_core_second",
        filled.admitted as f64 / 1e9 / time.max(1e-9),
        "GB",
        MeasureBar::AtLeast(3.0),
        format!("{} records of 64 KiB, checksums on", filled.records),
    ));
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "measures")]
fn writes(scale: u32, seed: u64) -> Result<Vec<MeasureRow>, StoreStatus> {
    let size = (1 << 30) >> scale;
    let mut rows = Vec::new();
    let web: &dyn Fn(&mut foxy_base::Random) -> usize = &engine::web_length;
    for (name, length, most) in [("web size mix", web, 1.05), ("250 bytes each", &|_| 250, 1.1)] {
        let mut progress = Progress::new("writes", Some(3 * size));
        let filled = engine::turn_over(size, 3, seed, length, &mut |done| progress.update(done))?;
        drop(progress);
        rows.push(MeasureRow::new(
            "written_per_admitted_byte",
            filled.written as f64 / filled.admitted as f64,
            "bytes",
            MeasureBar::AtMost(most),
            format!("{name}, three turns, {} records", filled.records),
        ));
    }
    Ok(rows)
}

fn stalls(scale: u32, seed: u64) -> Result<Vec<MeasureRow>, StoreStatus> {
    let size = (512 << 20) >> scale;
    let mut rows = Vec::new();
    let web: &dyn Fn(&mut foxy_base::Random) -> usize = &engine::web_length;
    for (name, length) in [("web size mix", web), ("250 bytes each", &|_| 250)] {
        let mut progress = Progress::new("stalls", Some(4 * size));
        let found = steps::run(size, 2, seed, length, process::thread_cpu_time, &mut |done| {
            progress.update(done);
        })?;
        drop(progress);
        rows.push(MeasureRow::new(
            "longest_step_ms",
            found.took.as_secs_f64() * 1e3,
            "ms",
            MeasureBar::AtMost(10.0),
            format!(
                "{name}, two turns, {} records; CPU time of {} steps, for each step the faster of \
                 two runs; {:.1} ms in one run",
                found.records,
                found.count,
                found.once.as_secs_f64() * 1e3
            ),
        ));
    }
    Ok(rows)
}

/// Measures records smaller than a page. The first records have mixed lengths, and the later
/// records all have one length. A bound limits the disk space per record, another the reads per
/// hit. If all records have one length that does not divide a page, no layout can meet both bounds.
fn small_records(scale: u32, seed: u64) -> Result<Vec<MeasureRow>, StoreStatus> {
    let count = 200_000 >> scale;
    let mixed =
        |random: &mut foxy_base::Random| 100 + usize::try_from(random.below(3_900)).expect("small");
    let mut rows = small_rows(
        &format!("{count} records of 100 to 4000 bytes"),
        engine::small_hits(count, seed, &mixed)?,
    );
    for length in ALIKE {
        let found = engine::small_hits(count / 10, seed, &|_| length)?;
        rows.extend(small_rows(&format!("{} records of {length} bytes each", count / 10), found));
    }
    Ok(rows)
}

fn small_rows(records: &str, found: engine::SmallHits) -> Vec<MeasureRow> {
    let note = format!("{records}; {} % of the gets are hits", found.hits * 100.0);
    let row = |name, value, unit, most| {
        MeasureRow::new(name, value, unit, MeasureBar::AtMost(most), note.clone())
    };
    vec![
        row("small_object_space_ratio", found.space, "bytes", 1.05),
        row("small_object_reads_per_hit", found.reads, "reads", 1.0),
        row("small_object_read_bytes_per_hit", found.read_bytes, "bytes", 4096.0),
    ]
}
