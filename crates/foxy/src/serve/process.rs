//! Metrics and open files of this process, and messages to the service manager (systemd).

use crate::serve::admin::metrics::{Exposition, FamilyKind};
use foxy_cli::process::{own_cpu_time, resident_bytes};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Returns the number of open files of this process, or 0 if unknown.
pub fn open_files_now() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Sends a state such as `READY=1` or `STOPPING=1` to the service manager (sd_notify(3)). Ignores
/// errors, because foxy also works without a service manager.
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
}
