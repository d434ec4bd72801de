//! Which device to run on a real folder: io_uring where it works, else threads; or blocking calls.
//! The choice says its reason.

use crate::blocking::Blocking;
use crate::park::BlockingDevice;
use crate::root::Root;
use crate::threads::{DirectIo, Threads, Writes};
use crate::uring::{Uring, UringError};
use std::fmt;

/// What is wished for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// io_uring where it works, else threads.
    Fastest,
    /// Threads, whatever else there is.
    Threads,
    /// Blocking calls in the owner's own thread, as schemes do that are measured for it.
    Blocking,
}

/// How to run a real device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// Which device is wished for.
    pub preference: Preference,
    /// Transfers at the kernel at once, for io_uring.
    pub depth: u32,
    /// Threads to start, where it comes to threads.
    pub threads: usize,
    /// Who writes, where it comes to threads.
    pub writes: Writes,
    /// Whether to go past the page cache.
    pub direct: DirectIo,
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self {
            preference: Preference::Fastest,
            depth: 128,
            threads: 4,
            writes: Writes::Queued,
            direct: DirectIo::Off,
        }
    }
}

/// Which device it became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// io_uring.
    Uring,
    /// Threads, because they were asked for.
    Threads,
    /// Blocking calls, because they were asked for.
    Blocking,
    /// Threads, because there is no io_uring to use.
    ThreadsInstead(UringError),
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uring => f.write_str("io_uring"),
            Self::Threads => f.write_str("threads"),
            Self::Blocking => f.write_str("blocking"),
            Self::ThreadsInstead(reason) => write!(f, "threads ({reason})"),
        }
    }
}

/// Opens a device on `root`. A kernel without io_uring, or a container that forbids it, gets
/// threads.
///
/// # Errors
/// When not even a thread can be started.
pub fn open_device(
    root: &Root,
    settings: DeviceSettings,
) -> std::io::Result<(Box<dyn BlockingDevice>, DeviceKind)> {
    let kind = match settings.preference {
        Preference::Threads => DeviceKind::Threads,
        Preference::Blocking => {
            return Ok((Box::new(Blocking::new(root, settings.direct)), DeviceKind::Blocking));
        }
        Preference::Fastest => match Uring::new(root, settings.depth, settings.direct) {
            Ok(device) => return Ok((Box::new(device), DeviceKind::Uring)),
            Err(reason) => DeviceKind::ThreadsInstead(reason),
        },
    };
    Ok((
        Box::new(Threads::new(root, settings.threads, settings.direct)?.writing(settings.writes)),
        kind,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(settings: DeviceSettings) -> DeviceKind {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("a new folder");
        open_device(&root, settings).expect("threads can be started").1
    }

    #[test]
    fn a_ring_that_cannot_be_had_becomes_threads() {
        let kind = kind_of(DeviceSettings { depth: u32::MAX, ..DeviceSettings::default() });
        assert!(matches!(kind, DeviceKind::ThreadsInstead(UringError::Setup(_))), "{kind:?}");
        assert!(kind.to_string().starts_with("threads (io_uring cannot be set up"), "{kind}");
    }

    #[test]
    fn threads_and_blocking_calls_can_be_asked_for() {
        for (preference, kind) in [
            (Preference::Threads, DeviceKind::Threads),
            (Preference::Blocking, DeviceKind::Blocking),
        ] {
            assert_eq!(kind_of(DeviceSettings { preference, ..DeviceSettings::default() }), kind);
        }
    }
}
