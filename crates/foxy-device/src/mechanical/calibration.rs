//! Measures the disk model of [`Mechanical`] and checks that each value is in its expected range.
//! Experiments use the model only after this check. The expected values come from the paper whose
//! disk the model imitates (paper 001 of `docs/figures.md`).

use super::profile::{DiskProfile, SECTOR, SystemProfile};
use super::raw_disk::RawDisk;
use super::{Mechanical, RequestKind};
use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoId, IoOp, StorePath};
use foxy_base::{Instant, Random};
use std::fmt;
use std::time::Duration;

/// Number of random requests to measure. With this number, the error of the mean time is below 0.1
/// ms.
const RANDOM_REQUESTS: u64 = 40_000;

const SEQUENTIAL_BYTES: u64 = 64 << 20;

/// Number of directories for the measurement of creating and removing files. In each directory, 64
/// files are created and removed, as the benchmark hbench-OS does.
const DIRECTORIES: u64 = 32;
const FILES: u64 = 64;

const NAMES: u64 = 1000;

/// Mean size of a disk operation in bytes. In the trace of paper 001 (`docs/figures.md`), all reads
/// and writes of responses on disk together moved 7.6 GB.
const OPERATION_BYTES: f64 = 10_550.0;

/// Number of URL-gets per URL-write in the trace of paper 001 (`docs/figures.md`). A URL-get is a
/// client's request of a URL. A URL-write stores its response on disk.
const GETS_PER_WRITE: f64 = 1_058_206.0 / 678_040.0;

/// A measurement of the disk model, and its expected range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationLine {
    /// Name of the measured quantity.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// The measured value, in `unit`.
    pub value: f64,
    /// Lower bound of the expected range, in `unit`.
    pub least: f64,
    /// Upper bound of the expected range, in `unit`.
    pub most: f64,
}

impl CalibrationLine {
    /// Returns whether the measured value is in its expected range.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.value)
    }
}

impl fmt::Display for CalibrationLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, unit, value, least, most } = self;
        let verdict = if self.holds() { "holds" } else { "does not hold" };
        write!(f, "{name}: {value:.2} {unit} (expected: {least} to {most}): {verdict}")
    }
}

/// All measurements of the disk model with one set of disk parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// One line for each measured quantity.
    pub lines: Vec<CalibrationLine>,
}

impl Calibration {
    /// Returns whether every measured value is in its expected range.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.lines.iter().all(CalibrationLine::holds)
    }
}

impl fmt::Display for Calibration {
    /// Writes one line for each measurement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Measures one disk with the parameters of `profile`. The expected ranges apply only to the
/// default profile. The measurement takes about 0.1 s of processor time in a release build.
#[must_use]
pub fn calibrate(profile: &DiskProfile, seed: u64) -> Calibration {
    let sequential = sequential_write(profile, seed);
    let (create, remove) = create_and_remove(profile, seed);
    let ceiling = sequential * 1e6 / OPERATION_BYTES * GETS_PER_WRITE;
    let line = |name, unit, value, least, most| CalibrationLine { name, unit, value, least, most };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let lines = vec![
        line("random 512 B", "ms", milliseconds(random_access(profile, seed, 512)), 12.7, 13.4),
        line("sequential write", "MB/s", sequential, 4.6, 4.8),
        line(
            "random 10 KB",
            "ms",
            milliseconds(random_access(profile, seed, 10 << 10)),
            15.1,
            15.7,
        ),
        line("create an empty file", "ms", milliseconds(create), 16.0, 24.0),
        line("remove an empty file", "ms", milliseconds(remove), 8.0, 12.0),
        line(
            "look at a name of a directory",
            "ns",
            search(profile, seed).as_secs_f64() * 1e9,
            150.0,
            160.0,
        ),
        line(
            "ceiling, every URL-write at the sequential rate",
            "URL-gets/s",
            ceiling,
            680.0,
            710.0,
        ),
    ];
    Calibration { lines }
}

/// Returns the mean time of random reads of `bytes` bytes on a disk without a file system. Each
/// read starts when the previous read has finished.
fn random_access(profile: &DiskProfile, seed: u64, bytes: u64) -> Duration {
    let mut random = Random::new(seed);
    let mut disk = RawDisk::new(profile, random.next_u64());
    let mut now = Instant::ZERO;
    for _ in 0..RANDOM_REQUESTS {
        let address = random.below(profile.sectors() - bytes / SECTOR);
        disk.submit(RequestKind::Read, address * SECTOR, bytes, now);
        now = disk.finish().map_or(now, |(_, record)| record.finish);
    }
    now.since(Instant::ZERO) / u32::try_from(RANDOM_REQUESTS).unwrap_or(u32::MAX)
}

/// Runs operations on a simulated device one after another, in simulated time.
struct Driver {
    device: Mechanical,
    now: Instant,
}

impl Driver {
    fn run(&mut self, op: IoOp) {
        self.device.submit(IoId(0), op, self.now);
        let mut done = Vec::new();
        while done.is_empty() {
            self.now = self.device.next_completion().unwrap_or(self.now);
            self.device.reap(self.now, &mut done);
        }
        assert!(
            done[0].result.is_ok(),
            "calibration needs an empty disk with room: {:?}",
            done[0].result
        );
    }
}

/// Writes a file of 64 MiB from start to end, without preallocated disk space. Returns the
/// throughput in MB/s (10^6 bytes per second).
fn sequential_write(profile: &DiskProfile, seed: u64) -> f64 {
    const BLOCK: u64 = 64 << 10;
    let mut driver = Driver { device: Mechanical::new(*profile, 1, seed), now: Instant::ZERO };
    let file = FileId(0);
    driver.run(IoOp::Create { file, path: StorePath::new("file"), size: 0 });
    let start = driver.device.settle(driver.now);
    driver.now = start;
    for block in 0..SEQUENTIAL_BYTES / BLOCK {
        let buffer = IoBuffer::zeroed(usize::try_from(BLOCK).expect("64 KiB"));
        driver.run(IoOp::Write { file, offset: block * BLOCK, buffer });
    }
    let end = driver.device.settle(driver.now);
    SEQUENTIAL_BYTES as f64 / 1e6 / end.since(start).as_secs_f64()
}

/// Returns the simulated processor time to examine one entry of a directory. The blocks of the
/// directory are cached.
fn search(profile: &DiskProfile, seed: u64) -> Duration {
    let system = SystemProfile { name_cache: 0, ..profile.system };
    let device = Mechanical::new(DiskProfile { system, ..*profile }, 1, seed);
    let mut driver = Driver { device, now: Instant::ZERO };
    let path = |file: u64| StorePath::new(format!("{file}"));
    let file = FileId(0);
    for number in 0..NAMES {
        driver.run(IoOp::Create { file, path: path(number), size: 0 });
    }
    driver.now = driver.device.settle(driver.now);
    let start = driver.now;
    driver.run(IoOp::Open { file, path: path(NAMES - 1) });
    driver.now.since(start) / u32::try_from(NAMES).unwrap_or(u32::MAX)
}

/// Returns the mean time to create an empty file and the mean time to remove it. The last file
/// created is the first file removed.
fn create_and_remove(profile: &DiskProfile, seed: u64) -> (Duration, Duration) {
    let mut driver = Driver { device: Mechanical::new(*profile, 1, seed), now: Instant::ZERO };
    let (mut create, mut remove) = (Duration::ZERO, Duration::ZERO);
    for directory in 0..DIRECTORIES {
        driver.run(IoOp::MakeDir { path: StorePath::new(format!("{directory}")) });
        let path = |file: u64| StorePath::new(format!("{directory}/{file}"));
        driver.now = driver.device.settle(driver.now);
        let start = driver.now;
        for file in 0..FILES {
            driver.run(IoOp::Create { file: FileId(0), path: path(file), size: 0 });
            driver.run(IoOp::Close { file: FileId(0) });
        }
        create += driver.now.since(start);
        let start = driver.now;
        for file in (0..FILES).rev() {
            driver.run(IoOp::Remove { path: path(file) });
        }
        remove += driver.now.since(start);
    }
    let count = u32::try_from(DIRECTORIES * FILES).unwrap_or(u32::MAX);
    (create / count, remove / count)
}
