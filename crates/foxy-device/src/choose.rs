//! Chooses the device that accesses the files of a real folder: io_uring if it works, otherwise a
//! pool of threads. A device with blocking calls is used only on request.

use crate::blocking::Blocking;
use crate::park::BlockingDevice;
use crate::root::Root;
use crate::threads::{DirectIo, Threads, Writes};
use crate::uring::{Uring, UringError};
use std::fmt;

/// The kind of device that the caller prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// io_uring if it works, otherwise threads.
    Fastest,
    /// A pool of threads, even where io_uring works.
    Threads,
    /// Blocking calls in the thread that submits the operation. foxy's lab measures some storage
    /// schemes with blocking calls.
    Blocking,
}

/// Settings of a device that accesses a real disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The kind of device that the caller prefers. If io_uring is preferred but does not work,
    /// threads replace it.
    pub preference: Preference,
    /// Maximum number of reads, writes and syncs in the kernel at once. Only the device with
    /// io_uring uses this setting.
    pub depth: u32,
    /// Number of threads in the pool. Used only by the device with threads.
    pub threads: usize,
    /// The thread that performs writes: a thread of the pool or the submitting thread. Used only by
    /// the device with threads.
    pub writes: Writes,
    /// Whether IO bypasses the page cache.
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

/// The kind of device that [`open_device`] opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The opened device uses io_uring.
    Uring,
    /// The device with a pool of threads, as requested.
    Threads,
    /// The opened device makes blocking calls, as the caller requested.
    Blocking,
    /// The device with a pool of threads. The value says why io_uring is unavailable.
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

/// Opens a device for the files in the folder `root`. If io_uring was preferred but is missing or
/// forbidden, the device uses threads.
///
/// # Errors
/// Returns an error if no thread can be started.
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
    fn threads_replace_an_unavailable_ring() {
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
