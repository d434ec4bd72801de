//! `foxy store bench disk`: compares the write rate and the read times of the default engine with
//! the values of the disk without a store. Both measurements use one folder and happen in one run.

use super::engine::{MeasureBar, MeasureRow, finish};
use super::ground::Ground;
use crate::arguments::{path, switch};
use crate::experiment::{self, Flag, flags};
use clap::{ArgMatches, Command};
use foxy_base::Random;
use foxy_cli::failure::Failure;
use foxy_cli::process;
use foxy_cli::progress::Progress;
use foxy_device::{BlockingDevice, DeviceSettings, DirectIo, IoError, Root, open_device};
use foxy_lab::simulation::store_bench::disk::{FilledStore, RawDisk, ReadResults, Written};
use foxy_report::{Latencies, Summary};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LENGTH: usize = 64 << 10;

const TURNS: u32 = 12;

struct Scale {
    size: u64,
    reads: u64,
    /// The pause before reads on the idle disk, in which the disk finishes earlier writes.
    rest: Duration,
}

const WHOLE: Scale = Scale { size: 4 << 30, reads: 334, rest: Duration::from_secs(2) };
const QUICK: Scale = Scale { size: 256 << 20, reads: 21, rest: Duration::from_millis(100) };

const ABOUT: &str = "\
Compare a store of 4 GiB with a raw file of 4 GiB in the same folder. The command writes both one \
and a half times, in alternating turns of an eighth of the size. It compares the rate of the \
store with the rates of the raw file before and after each turn, because the rate of a shared \
disk may change threefold within minutes. Then it reads both in alternating turns, first without \
other work, and then during writes at full rate.

All IO bypasses the page cache and uses the proxy's disk device, with four writes of 256 KiB at \
a time. Records and reads have 64 KiB, and a read starts every two milliseconds. Tail latencies \
need a quiet machine. The table also shows the tail latencies of the raw file.";

pub fn command() -> Command {
    Command::new("disk")
        .about(
            "Compare the default store engine with the raw disk: fill rate, and read times during \
             a fill",
        )
        .long_about(ABOUT)
        .arg(path(
            "folder",
            "PATH",
            "Folder for the store and the raw file [default: the system's temporary folder]",
        ))
        .arg(switch("quick", "Use a sixteenth of the bytes and of the reads"))
        .args(flags([Flag::Seed, Flag::Json]))
}

#[derive(Default)]
struct Found {
    raw: Vec<Written>,
    fills: Vec<Written>,
    processor: Duration,
    raw_reads: [Latencies; 2],
    reads: [ReadResults; 2],
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let ground = Ground::new(matches)?;
    let folder = ground.folder();
    let root = ground.open(&folder)?;
    let scale = if matches.get_flag("quick") { QUICK } else { WHOLE };
    let found = measure(&root, &scale, experiment::seed(matches), ground.interrupted());
    finish(matches, rows(&ground.whole(found)?.map_err(|text| ground.failed(&text))?))
}

fn device(root: &Root) -> Result<Box<dyn BlockingDevice>, String> {
    let settings = DeviceSettings { direct: DirectIo::WhenAligned, ..DeviceSettings::default() };
    open_device(root, settings).map(|(device, _)| device).map_err(|error| error.to_string())
}

fn measure(root: &Root, scale: &Scale, seed: u64, stop: &AtomicBool) -> Result<Found, String> {
    let mut raw = RawDisk::new(device(root)?, scale.size).map_err(|error| error.to_string())?;
    let store = FilledStore::new(device(root)?, scale.size, LENGTH)?;
    let mut found = Found::default();
    let mut progress = Progress::new("disk", Some(u64::from(2 * TURNS)));
    fills(&mut raw, &store, scale.size / 8, stop, &mut found, &mut progress)
        .map_err(|error| error.to_string())?;
    let mut random = Random::new(seed);
    for turn in 1..=TURNS {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        reads(&mut raw, &store, scale, &mut random, &mut found)
            .map_err(|error| error.to_string())?;
        progress.update(u64::from(TURNS + turn));
    }
    store.close();
    Ok(found)
}

fn fills(
    raw: &mut RawDisk,
    store: &FilledStore,
    bytes: u64,
    stop: &AtomicBool,
    found: &mut Found,
    progress: &mut Progress,
) -> Result<(), IoError> {
    found.raw.push(raw.write(bytes, stop)?);
    for turn in 1..=TURNS {
        let before = process::own_cpu_time();
        found.fills.push(store.fill(bytes, stop));
        found.processor += process::own_cpu_time().saturating_sub(before);
        found.raw.push(raw.write(bytes, stop)?);
        progress.update(u64::from(turn));
    }
    Ok(())
}

fn reads(
    raw: &mut RawDisk,
    store: &FilledStore,
    scale: &Scale,
    random: &mut Random,
    found: &mut Found,
) -> Result<(), IoError> {
    let count = scale.reads;
    std::thread::sleep(scale.rest);
    found.raw_reads[0].merge(&raw.read(count, LENGTH, false)?);
    found.reads[0].merge(&store.read(count, random));
    found.raw_reads[1].merge(&raw.read(count, LENGTH, true)?);
    let stop = AtomicBool::new(false);
    found.reads[1].merge(&std::thread::scope(|threads| {
        threads.spawn(|| store.fill(u64::MAX, &stop));
        let reads = store.read(count, random);
        stop.store(true, Ordering::Relaxed);
        reads
    }));
    Ok(())
}

/// Returns the write rate of each fill of the store, as a share of the disk's own rate. The disk's
/// own rate is the mean of the rates measured without a store before and after the fill.
fn shares(raw: &[Written], fills: &[Written]) -> Vec<f64> {
    let beside = raw.windows(2).map(|pair| f64::midpoint(pair[0].rate(), pair[1].rate()));
    fills.iter().zip(beside).map(|(fill, disk)| fill.rate() / disk).collect()
}

fn rate(all: &[Written]) -> f64 {
    let took: Duration = all.iter().map(|written| written.took).sum();
    let bytes = all.iter().map(|written| written.bytes).sum();
    Written { bytes, took }.rate() / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "measures")]
fn rows(found: &Found) -> Vec<MeasureRow> {
    let Found { raw, fills, processor, raw_reads, reads } = found;
    let shares = Summary::of(&shares(raw, fills)).expect("there are turns");
    let rates = format!(
        "mean of {} turns, {:.3} to {:.3}; the engine {:.0} MB/s, the disk {:.0}",
        shares.count,
        shares.low,
        shares.high,
        rate(fills),
        rate(raw)
    );
    let cores = processor.as_secs_f64()
        / fills.iter().map(|fill| fill.took).sum::<Duration>().as_secs_f64();
    let at = |latencies: &Latencies, quantile: f64| latencies.at(quantile).max(1) as f64;
    let [idle, filling] = [&reads[0].latencies, &reads[1].latencies];
    let note = |quantile: f64| {
        format!(
            "{:.2} ms idle, {:.2} while filled; the disk {:.2} and {:.2}",
            at(idle, quantile) / 1e3,
            at(filling, quantile) / 1e3,
            at(&raw_reads[0], quantile) / 1e3,
            at(&raw_reads[1], quantile) / 1e3
        )
    };
    let hits = filling.count() as f64 / (filling.count() + reads[1].misses).max(1) as f64;
    vec![
        MeasureRow::new("fill_share_of_raw", shares.mean, "share", MeasureBar::AtLeast(0.9), rates),
        MeasureRow::new(
            "fill_cores",
            cores,
            "cores",
            MeasureBar::AtMost(0.5),
            "of the whole process, checksums on".into(),
        ),
        MeasureRow::new(
            "read_p99_filled_by_idle",
            at(filling, 0.99) / at(idle, 0.99),
            "times",
            MeasureBar::AtMost(2.0),
            note(0.99),
        ),
        MeasureRow::new(
            "read_p999_filled_by_idle",
            at(filling, 0.999) / at(idle, 0.999),
            "times",
            MeasureBar::AtMost(4.0),
            note(0.999),
        ),
        MeasureRow::new(
            "read_hits_while_filled",
            hits,
            "share",
            MeasureBar::AtLeast(0.99),
            format!("{} reads", filling.count() + reads[1].misses),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: u64, seconds: u64) -> Written {
        Written { bytes, took: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_fill_is_held_against_what_the_disk_did_before_and_after_it() {
        let disk = [written(100, 1), written(300, 1), written(100, 1)];
        assert_eq!(shares(&disk, &[written(100, 1), written(400, 2)]), [0.5, 1.0]);
    }
}
