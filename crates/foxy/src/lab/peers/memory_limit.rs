//! A limit on the memory that a proxy's processes take together with their page cache: a control group of its own, of
//! either version. Without it a disk cache that fits the page cache is measured as a memory cache.

use foxy_base::ByteSize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where control groups are mounted, and the file in a group that holds the limit.
const PLACES: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// A control group with a limit; dropped, it is removed. Processes must have left it by then.
#[derive(Debug)]
pub struct MemoryLimit {
    folder: PathBuf,
}

impl MemoryLimit {
    /// Makes the group.
    ///
    /// # Errors
    /// Why it cannot be had here, in a few words.
    pub fn new(limit: ByteSize) -> Result<Self, String> {
        let mut why = "there are no control groups for memory here".to_owned();
        for (place, file) in PLACES {
            match Self::below(Path::new(place), file, limit) {
                Ok(group) => return Ok(group),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    why = "that takes root".to_owned();
                }
                Err(_) => {}
            }
        }
        Err(why)
    }

    fn below(place: &Path, file: &str, limit: ByteSize) -> io::Result<Self> {
        let folder = place.join(format!("foxy-compare-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let group = Self { folder };
        // A file that is not there is not made: the kernel says so, and the group is removed again.
        std::fs::OpenOptions::new().write(true).open(group.folder.join(file)).and_then(|mut file| {
            use std::io::Write;
            file.write_all(limit.0.to_string().as_bytes())
        })?;
        Ok(group)
    }

    /// Puts a process into the group, and with it all that it starts from now on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn hold(&self, process: u32) -> io::Result<()> {
        std::fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }
}

impl Drop for MemoryLimit {
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
