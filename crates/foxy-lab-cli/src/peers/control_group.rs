//! Limits the memory or the CPU time of a proxy's processes with a control group (version 1 or 2).
//! A memory limit includes the page cache. Without it, the page cache could hold the whole disk
//! cache, and the lab would measure memory. A CPU limit makes the proxy slower than the load
//! generator on the same machine.

use foxy_base::ByteSize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Mount point of control groups version 2.
const UNIFIED: &str = "/sys/fs/cgroup";
/// The shortest CPU time per period that the kernel accepts, in µs. [`PERIOD`] is the period in µs.
const SHORTEST_SHARE: f64 = 1000.0;
const PERIOD: f64 = 20_000.0;

#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Memory(ByteSize),
    Cores(f64),
}

impl Limit {
    fn places(self) -> [(&'static str, Vec<(&'static str, String)>); 2] {
        match self {
            Self::Memory(size) => [
                (UNIFIED, vec![("memory.max", size.0.to_string())]),
                ("/sys/fs/cgroup/memory", vec![("memory.limit_in_bytes", size.0.to_string())]),
            ],
            Self::Cores(cores) => {
                let period = PERIOD.max(SHORTEST_SHARE / cores).round();
                let share = (period * cores).round();
                [
                    (UNIFIED, vec![("cpu.max", format!("{share} {period}"))]),
                    (
                        "/sys/fs/cgroup/cpu",
                        vec![
                            ("cpu.cfs_period_us", period.to_string()),
                            ("cpu.cfs_quota_us", share.to_string()),
                        ],
                    ),
                ]
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Cores(_) => "the processor",
        }
    }
}

/// A control group with a limit. Dropping this value removes the group, so its processes must have
/// ended.
#[derive(Debug)]
pub struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    pub fn new(limit: Limit) -> Result<Self, String> {
        let mut why = format!("this system has no control groups for {}", limit.name());
        for (place, files) in limit.places() {
            match Self::below(Path::new(place), &files) {
                Ok(group) => return Ok(group),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    why = "this needs root".to_owned();
                }
                Err(_) => {}
            }
        }
        Err(why)
    }

    fn below(place: &Path, files: &[(&str, String)]) -> io::Result<Self> {
        let folder = place.join(format!("foxy-lab-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let group = Self { folder };
        for (name, text) in files {
            // Opens the file without creating it. If the kernel has no such limit, the file does
            // not exist and the open fails. Then the drop of `group` removes the group.
            std::fs::OpenOptions::new().write(true).open(group.folder.join(name)).and_then(
                |mut file| {
                    use std::io::Write;
                    file.write_all(text.as_bytes())
                },
            )?;
        }
        Ok(group)
    }

    pub fn hold(&self, process: u32) -> io::Result<()> {
        std::fs::write(self.folder.join("cgroup.procs"), process.to_string())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The kernel removes a group only after all ended processes have left it. So this code
        // tries for two seconds.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_of_the_processor_is_shorter_than_the_kernel_gives() {
        for (cores, quota, period) in [
            (0.05, "1000", "20000"),
            (0.01, "1000", "100000"),
            (0.5, "10000", "20000"),
            (3.0, "60000", "20000"),
        ] {
            let [(_, second), (_, first)] = Limit::Cores(cores).places();
            assert_eq!(second, [("cpu.max", format!("{quota} {period}"))], "{cores}");
            let expected =
                [("cpu.cfs_period_us", period.to_owned()), ("cpu.cfs_quota_us", quota.to_owned())];
            assert_eq!(first, expected, "{cores}");
        }
    }
}
