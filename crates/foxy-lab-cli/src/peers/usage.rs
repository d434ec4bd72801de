//! Resource use of any process family, from `/proc`, and of the block device below a folder, from
//! `/sys`.

use foxy_cli::process_table::{Process, processor_time};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub processor: Duration,
    /// Proportional set size in bytes.
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

/// Parses Documentation/block/stat: reads, merges, sectors of 512 bytes, …; the tenth field is the
/// busy time in ms.
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
}
