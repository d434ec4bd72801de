//! A control group (cgroup) that limits the memory of a foxy process, and reports how much memory
//! the process uses.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Possible folders for control groups, in version 2 and version 1. Each has the file for the
/// limit, and the line of `memory.stat` that counts memory without the page cache.
const PLACES: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss "),
    ("/sys/fs/cgroup", "memory.max", "anon "),
];

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The control group. Drop removes it, for which its processes must have ended.
pub struct Group {
    folder: PathBuf,
    line: &'static str,
}

impl Group {
    /// Creates a control group with a memory limit of `bytes` bytes.
    ///
    /// # Errors
    /// The reason why this machine cannot create the control group.
    pub fn new(bytes: u64) -> Result<Self, String> {
        let mut why = "there are no control groups for memory".to_owned();
        for (place, limit, line) in PLACES {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("foxy-floods-{}-{number}", std::process::id());
            let folder = PathBuf::from(place).join(name);
            let made = std::fs::create_dir(&folder);
            if let Err(error) = made {
                why = format!("{place}: {error}");
                continue;
            }
            let group = Self { folder, line };
            // Without this file, the folder belongs to the other version of control groups.
            if !group.folder.join(limit).exists() {
                continue;
            }
            match std::fs::write(group.folder.join(limit), bytes.to_string()) {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{limit}: {error}"),
            }
        }
        Err(why)
    }

    /// Returns the file to which the id of a new member process is written.
    pub fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Returns the memory in bytes that the processes use now, without the page cache.
    pub fn resident(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.folder.join("memory.stat"))?;
        let value = text.lines().find_map(|line| line.strip_prefix(self.line));
        value.and_then(|value| value.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel refuses to remove the group until ended processes have left it, so Drop
        // retries.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
