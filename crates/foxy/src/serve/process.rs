//! Metrics of this process, its room for open files, and its messages to the service manager
//! (systemd).

use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::settings::Settings;
use crate::terminal::{self, Level};
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

/// Numbers of connections for which the process has file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorRoom {
    limit: usize,
    /// Number of client connections at a time. Each may also need a connection to its origin.
    pub clients: usize,
    /// Number of idle connections to origins that each worker may keep.
    pub idle: usize,
}

impl DescriptorRoom {
    pub fn of(max_open_files: Option<u64>, open_now: usize, settings: &Settings) -> Self {
        // Number of file descriptors for name lookups, files of stores, and connections that are
        // closing.
        const FOR_ITSELF: usize = 64;
        const PER_WORKER: usize = 8;
        let limit =
            max_open_files.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (workers, limits) = (settings.network.workers, &settings.limits);
        let used = open_now + FOR_ITSELF + workers.saturating_mul(PER_WORKER);
        let free = limit.saturating_sub(used);
        let idle = limits.idle_connections.saturating_mul(workers).min(free / 5);
        Self { limit, clients: ((free - idle) / 2).max(1), idle: idle / workers.max(1) }
    }

    /// Returns the room that this process has now. Warns if it is too small for the settings.
    pub fn now(max_open_files: Option<u64>, settings: &Settings) -> Self {
        let room = Self::of(max_open_files, open_files_now(), settings);
        room.report_shortage(settings.limits.connections);
        room
    }

    fn report_shortage(self, connections: usize) {
        let Self { limit, clients, .. } = self;
        if clients < connections {
            let text = format!(
                "foxy: the limit on open files is {limit}, so foxy serves {} at a time, not \
                 {connections}, and others wait; raise the limit (ulimit -n) or lower \
                 limits.connections",
                counted_clients(clients),
            );
            terminal::report(Level::Warning, &text);
        }
    }
}

/// Writes a number of clients.
pub fn counted_clients(clients: usize) -> String {
    if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use foxy_cli::machine::Machine;

    #[test]
    fn connections_fit_the_limit_on_open_files() {
        let machine = Machine { cores: 2, ..Machine::default() };
        let settings =
            settings::load(None, None, &machine).unwrap_or_else(|all| panic!("{all}")).settings;
        let room = |open_files| {
            let room = DescriptorRoom::of(open_files, 44, &settings);
            (room.clients, room.idle)
        };
        assert_eq!(room(Some(1 << 20)), (523_202, 1024));
        assert_eq!(room(Some(1024)), (360, 90));
        assert_eq!(room(Some(10)), (1, 0));
        assert!(room(None).0 > settings.limits.connections);
    }
}
