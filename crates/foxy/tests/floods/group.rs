//! A control group with a limit on memory, for one foxy, and what it says of its memory.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where groups may be, the file with their limit, and the lines of `memory.stat` that count memory
/// without page cache.
const PLACES: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "total_rss "),
    ("/sys/fs/cgroup", "memory.max", "anon "),
];

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The group. It is removed when it is dropped; its processes must have ended.
pub struct Group {
    folder: PathBuf,
    line: &'static str,
}

impl Group {
    /// Makes one with this limit.
    ///
    /// # Errors
    /// Why there can be none here.
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
            // A file that is not there is not made: then these are groups of another kind.
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

    /// The file that takes processes into the group.
    pub fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Bytes that its processes hold now, without page cache.
    pub fn resident(&self) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.folder.join("memory.stat"))?;
        let value = text.lines().find_map(|line| line.strip_prefix(self.line));
        value.and_then(|value| value.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that have just ended leave the group a moment later.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
