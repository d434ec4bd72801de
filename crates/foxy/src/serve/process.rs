//! What the system says of this process and lets it do: its CPU time, memory and open files, and
//! the service manager's notification.

use crate::process_table::Process;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Raises the limit on open files to the most this user may have. Returns the limit in force; none
/// for no limit.
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, wanted).is_ok() { limit.maximum } else { limit.current }
}

/// Files that this process has open now; 0 where the system does not say.
pub fn open_files_now() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Tells the service manager that asked for it how foxy is doing (sd_notify(3)): `READY=1`,
/// `STOPPING=1`. Whether it listens changes nothing for foxy, so a failure is not reported.
pub fn notify(state: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let _nobody_listens = send(&address, state);
}

fn send(address: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match address.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(address)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// Adds the process's own figures, under the names Prometheus' clients share. Those that cannot be
/// read are 0 or left out.
pub fn expose(exposition: &mut Exposition) {
    let help = "User and system CPU time spent in seconds.";
    exposition.single(
        "process_cpu_seconds_total",
        FamilyKind::Counter,
        help,
        own_cpu_time().as_secs_f64(),
    );
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

/// Bytes of memory that this process has resident; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    Process::own().map_or(0, |own| own.resident())
}

/// CPU time that this process has spent; zero where the system does not say.
pub fn own_cpu_time() -> Duration {
    Process::own().map_or(Duration::ZERO, |own| own.processor_time())
}

/// CPU time that this thread has spent.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).expect("bound");
        send(path.as_os_str(), "READY=1").expect("sent");
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).expect("received");
        assert_eq!(&buffer[..length], b"READY=1");
    }

    #[test]
    fn the_limit_on_open_files_ends_up_at_its_maximum() {
        let limit = raise_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }
}
