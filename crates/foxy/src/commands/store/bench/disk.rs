//! `foxy store bench disk`: the default engine on a real disk beside the disk itself, in the same run and the same folder: the rate
//! of a fill, and how long reads take while nothing else happens and while the store is filled as fast as it goes.

use super::engine::{Bar, Row, finish};
use crate::failure::Failure;
use crate::lab::arguments::{path, switch};
use crate::lab::folder::{store_lock, words};
use crate::lab::leftovers::SIM_PREFIX;
use crate::lab::temporary::Temporary;
use crate::lab::{records, seed};
use crate::serve::process;
use clap::{ArgMatches, Command};
use foxy_base::Random;
use foxy_base::clock::monotonic;
use foxy_device::{BlockingDevice, DeviceSettings, DirectIo, IoError, Root, open_device};
use foxy_lab::store_bench::disk::{Filled, Reads};
use foxy_lab::store_bench::raw::{Raw, Written};
use foxy_report::Latencies;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a record.
const LENGTH: usize = 64 << 10;

const ABOUT: &str = "\
Writes a new file of 4 GiB in a folder one and a half times from beginning to end and reads from it, then fills a store of \
that size there as often with records of 64 KiB and reads those, then writes a new file again. All of it goes past the page cache, through \
the device that the proxy would use, four pieces of 256 KiB at once. Reads are of 64 KiB, one every two milliseconds. Tails need a \
quiet machine; the disk's own are in the table beside the store's.";

/// Its arguments.
pub fn command() -> Command {
    Command::new("disk")
        .about("The default engine beside the disk it is on: rate of a fill, and reads while it is filled")
        .long_about(ABOUT)
        .arg(path(
            "folder",
            "PATH",
            "Where a folder for both is made; the system's folder for temporary files without it",
        ))
        .arg(switch("quick", "A sixteenth of the bytes and of the reads"))
        .arg(seed::argument("Seed of the choice of records that are read"))
        .arg(records::argument())
}

/// What is measured, of the disk and of the store.
struct Found {
    raw: [Written; 2],
    raw_reads: [Latencies; 2],
    fill: Written,
    cores: f64,
    reads: [Reads; 2],
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let parent = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir);
    let advice = "name a folder that can be written to with --folder";
    let failed = |text: String| Failure::Failed(format!("{}: {text}; {advice}", parent.display()));
    let _lock = store_lock(&parent).map_err(|error| failed(words(&error)))?;
    let folder = Temporary::new(parent.join(format!("{SIM_PREFIX}{}-0", std::process::id())));
    let root = Root::open(folder.path()).map_err(|error| failed(words(&error)))?;
    let (size, count) = if matches.get_flag("quick") { (256 << 20, 250) } else { (4 << 30, 4000) };
    finish(matches, rows(&measure(&root, size, count, seed::of(matches)).map_err(failed)?))
}

fn device(root: &Root) -> Result<Box<dyn BlockingDevice>, String> {
    let settings = DeviceSettings { direct: DirectIo::WhenAligned, ..DeviceSettings::default() };
    open_device(root, settings).map(|(device, _)| device).map_err(|error| error.to_string())
}

fn measure(root: &Root, size: u64, count: u64, seed: u64) -> Result<Found, String> {
    let words = |error: IoError| error.to_string();
    let mut raw = Raw::new(device(root)?, size).map_err(words)?;
    let before = raw.write(size / 2 * 3).map_err(words)?;
    let raw_reads =
        [raw.read(count, LENGTH, false).map_err(words)?, raw.read(count, LENGTH, true).map_err(words)?];
    let store = Filled::new(device(root)?, size, LENGTH)?;
    let (begun, processor) = (monotonic(), process::own_cpu_time());
    let bytes = store.fill(size / 2 * 3, &AtomicBool::new(false));
    let fill = Written { bytes, took: monotonic().since(begun) };
    let cores = process::own_cpu_time().saturating_sub(processor).as_secs_f64() / fill.took.as_secs_f64();
    let mut random = Random::new(seed);
    let stop = AtomicBool::new(false);
    let filling = std::thread::scope(|threads| {
        threads.spawn(|| store.fill(u64::MAX, &stop));
        let reads = store.read(count, &mut random);
        stop.store(true, Ordering::Relaxed);
        reads
    });
    let reads = [store.read(count, &mut random), filling];
    store.close();
    drop(raw);
    let after = Raw::new(device(root)?, size).and_then(|mut raw| raw.write(size / 2 * 3)).map_err(words)?;
    Ok(Found { raw: [before, after], raw_reads, fill, cores, reads })
}

#[expect(clippy::cast_precision_loss, reason = "measures")]
fn rows(found: &Found) -> Vec<Row> {
    let Found { raw, raw_reads, fill, cores, reads } = found;
    let raw_rate = f64::midpoint(raw[0].rate(), raw[1].rate());
    let rates = format!(
        "{:.0} MB/s; the disk {:.0} before and {:.0} after",
        fill.rate() / 1e6,
        raw[0].rate() / 1e6,
        raw[1].rate() / 1e6
    );
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
        Row::new("fill_share_of_raw", fill.rate() / raw_rate, "share", Bar::AtLeast(0.9), rates),
        Row::new(
            "fill_cores",
            *cores,
            "cores",
            Bar::AtMost(0.5),
            "of the whole process, checksums on".into(),
        ),
        Row::new(
            "read_p99_filled_by_idle",
            at(filling, 0.99) / at(idle, 0.99),
            "times",
            Bar::AtMost(2.0),
            note(0.99),
        ),
        Row::new(
            "read_p999_filled_by_idle",
            at(filling, 0.999) / at(idle, 0.999),
            "times",
            Bar::AtMost(4.0),
            note(0.999),
        ),
        Row::new(
            "read_hits_while_filled",
            hits,
            "share",
            Bar::AtLeast(0.99),
            format!("{} reads", filling.count() + reads[1].misses),
        ),
    ]
}
