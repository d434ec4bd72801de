//! Metrics and open files of this process, and messages from it to the service manager (systemd).

use crate::serve::admin::metrics::{Exposition, FamilyKind};
use foxy_cli::process::{own_cpu_time, resident_bytes};
use rustix::process::{Resource, getrlimit};
use sd_notify::NotifyState;

/// Returns the number of open files of this process, or 0 if unknown.
pub fn open_files_now() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Sends states to the service manager (sd_notify(3)). Ignores errors, because foxy also works
/// without a service manager.
pub fn notify(states: &[NotifyState<'_>]) {
    let _nobody_listens = sd_notify::notify(states);
}

/// Tells the service manager the id of the process that serves from now on.
pub fn notify_main(process: u32) {
    notify(&[NotifyState::MainPid(process)]);
}

/// Tells the service manager that a reload begins. The message needs the current time, so that
/// systemd can tell two reloads apart.
pub fn notify_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        notify(&[NotifyState::Reloading, now]);
    }
}

/// Adds the metrics of this process under Prometheus' standard names. A metric that cannot be read
/// is 0 or missing.
pub fn expose(exposition: &mut Exposition) {
    let help = "User and system CPU time spent in seconds.";
    let seconds = own_cpu_time().as_secs_f64();
    exposition.single("process_cpu_seconds_total", FamilyKind::Counter, help, seconds);
    let help = "Resident memory size in bytes.";
    exposition.single("process_resident_memory_bytes", FamilyKind::Gauge, help, resident_bytes());
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        let help = "Number of open file descriptors.";
        exposition.single("process_open_fds", FamilyKind::Gauge, help, entries.count());
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        let help = "Maximum number of open file descriptors.";
        exposition.single("process_max_fds", FamilyKind::Gauge, help, limit);
    }
}
