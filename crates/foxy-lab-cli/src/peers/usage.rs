//! Measures the CPU time and memory of processes from `/proc`, and the use of their disks from
//! `/sys`. A moment has totals since the start, and the difference of two moments gives the use in
//! between.

use foxy_base::{Instant, clock};
use foxy_cli::process_table::{Process, processor_time};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub processor: Duration,
    /// The memory in bytes (PSS, proportional set size). Memory that several processes share is
    /// divided among them.
    pub resident: u64,
    pub written: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUsage {
    pub reads: u64,
    pub read: u64,
    pub written: u64,
    pub busy: Duration,
}

pub fn of(family: &[Process]) -> Option<Usage> {
    family.first().filter(|first| !first.ended)?;
    let sum = |file: &str, key: &str| -> u64 {
        let each = family.iter().filter(|process| !process.ended).filter_map(|process| {
            let text = std::fs::read_to_string(format!("/proc/{}/{file}", process.id)).ok()?;
            field(&text, key)
        });
        each.sum()
    };
    let resident = sum("smaps_rollup", "Pss:") << 10;
    Some(Usage { processor: processor_time(family), resident, written: sum("io", "write_bytes:") })
}

fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

pub fn of_device(folder: &Path) -> Option<DeviceUsage> {
    let device = folder.metadata().ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    device_usage(&text)
}

/// Parses `/sys/block/*/stat` (Documentation/block/stat.rst of the kernel). The tenth field is the
/// time in ms for which the device was busy.
fn device_usage(text: &str) -> Option<DeviceUsage> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(DeviceUsage {
        reads: *fields.first()?,
        read: fields.get(2)?.checked_mul(512)?,
        written: fields.get(6)?.checked_mul(512)?,
        busy: Duration::from_millis(*fields.get(9)?),
    })
}

pub fn size_on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let below = if metadata.is_dir() { size_on_disk(&entry.path()) } else { 0 };
        Some(metadata.blocks() * 512 + below)
    });
    sizes.sum()
}

#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    elapsed: Duration,
    processor: Duration,
    disks: Vec<Option<Duration>>,
}

impl Moment {
    pub fn now(usage: Usage, caches: &[PathBuf]) -> Self {
        let disks = caches.iter().map(|cache| of_device(cache).map(|device| device.busy)).collect();
        Self { at: clock::monotonic(), processor: usage.processor, disks }
    }

    pub fn disks(&self) -> usize {
        self.disks.len()
    }

    pub fn until(&self, later: &Self) -> Spent {
        let disks = self.disks.iter().zip(&later.disks);
        let disks = disks.map(|(&before, &after)| Some(after?.saturating_sub(before?)));
        Spent {
            elapsed: later.at.since(self.at),
            processor: later.processor.saturating_sub(self.processor),
            disks: disks.collect(),
        }
    }
}

impl Spent {
    /// Adds two measured intervals. Both must have the same devices.
    pub fn and(&self, other: &Self) -> Self {
        let disks = self.disks.iter().zip(&other.disks).map(|(&one, &more)| Some(one? + more?));
        Self {
            elapsed: self.elapsed + other.elapsed,
            processor: self.processor + other.processor,
            disks: disks.collect(),
        }
    }

    pub fn cores(&self) -> f64 {
        self.processor.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
    pub fn each(&self, requests: u64) -> Option<f64> {
        (requests > 0).then(|| self.processor.as_secs_f64() * 1e6 / requests as f64)
    }

    /// Returns for each cache folder the share of time for which its device was busy. The share is
    /// `None` if the device is unknown, and at most 1.0. The kernel counts in ticks, so it can
    /// count one tick too many.
    pub fn disks(&self) -> impl Iterator<Item = Option<f64>> {
        let elapsed = self.elapsed.as_secs_f64().max(1e-9);
        self.disks.iter().map(move |busy| Some((busy.as_ref()?.as_secs_f64() / elapsed).min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_what_has_ended_uses_nothing() {
        let own = Process::own().expect("it runs");
        assert!(of(&[own]).is_some_and(|usage| usage.resident > 0));
        let mut ended = own;
        ended.ended = true;
        assert_eq!(of(&[ended, own]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn block_statistics_are_read_by_their_places() {
        let text = "  10  1  80  5  20  2  160  9  0  13  14  0 0 0 0\n";
        let busy = Duration::from_millis(13);
        let expected = DeviceUsage { reads: 10, read: 80 * 512, written: 160 * 512, busy };
        assert_eq!(device_usage(text), Some(expected));
        assert_eq!(device_usage("10 1"), None);
    }

    #[test]
    fn a_folder_takes_what_its_files_take() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("below")).expect("made");
        let before = size_on_disk(folder.path());
        std::fs::write(folder.path().join("below/file"), vec![1; 100_000]).expect("written");
        std::fs::File::open(folder.path().join("below/file"))
            .and_then(|file| file.sync_all())
            .expect("synced");
        assert!(size_on_disk(folder.path()) >= before + 98_304);
    }

    fn moment(at: u64, processor: u64, disks: &[Option<u64>]) -> Moment {
        let disks = disks.iter().map(|busy| busy.map(Duration::from_millis)).collect();
        Moment { at: Instant(at * 1_000_000), processor: Duration::from_millis(processor), disks }
    }

    #[test]
    fn what_was_used_between_moments_is_a_share_of_the_time_between_them() {
        let [first, second, third] = [
            moment(1000, 100, &[Some(7), None]),
            moment(3000, 3100, &[Some(507), None]),
            moment(5000, 3100, &[Some(2600), None]),
        ];
        let (one, two) = (first.until(&second), second.until(&third));
        assert_eq!((one.cores(), one.each(1000)), (1.5, Some(3000.0)));
        assert_eq!(one.disks().collect::<Vec<_>>(), [Some(0.25), None]);
        assert_eq!(
            two.disks().next(),
            Some(Some(1.0)),
            "a tick too many is not more than all the time"
        );
        assert_eq!((two.cores(), two.each(0)), (0.0, None));
        assert_eq!(one.and(&two), first.until(&third));
        assert_eq!(one.and(&two).cores(), 0.75);
    }
}
