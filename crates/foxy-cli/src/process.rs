//! Reads CPU time and memory of this process, and raises its limit on open files.

use crate::process_table::Process;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Raises the process's limit on open files as far as the system permits. Returns the new limit;
/// `None` means unlimited.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, wanted).is_ok() { limit.maximum } else { limit.current }
}

/// Returns the resident memory of this process in bytes, or 0 if unknown.
pub fn resident_bytes() -> u64 {
    Process::own().map_or(0, |own| own.resident())
}

/// Returns the CPU time that this process has used, or zero if unknown.
pub fn own_cpu_time() -> Duration {
    Process::own().map_or(Duration::ZERO, |own| own.processor_time())
}

/// Returns the CPU time that this thread has used.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_on_open_files_ends_up_at_its_maximum() {
        let limit = raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }
}
