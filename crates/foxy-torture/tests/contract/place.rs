//! Disk storage for the store under test, on each kind of device. The content of the storage stays
//! after the store is closed.

use foxy_base::Instant;
use foxy_device::{
    BlockingDevice, Device, DirectIo, FaultPlan, Faulty, Helper, IoDone, IoId, IoOp, Memory, Root,
    Threads, Uring, Waker,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Memory,
    /// The device that injects faults, here without faults. It completes operations in any order.
    Faulty,
    Threads,
    /// The helper device. A thread serves it over a socket, as a helper process would.
    Helper,
    /// The io_uring device. The tests skip it if the kernel has no io_uring.
    Uring,
    /// A device that keeps no bytes, for the storage scheme `null`.
    Null,
}

/// Devices that keep written bytes.
pub const KINDS: [Kind; 5] = [Kind::Memory, Kind::Faulty, Kind::Threads, Kind::Helper, Kind::Uring];

/// A place on one kind of device where a test creates a store.
pub struct Place {
    kind: Kind,
    memory: Kept,
    folder: TempDir,
}

impl Place {
    pub fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { kind, memory: Kept::default(), folder }
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Opens the device as a new process would. The caller must have closed the earlier device.
    /// Returns `None` if this machine cannot use this kind of device.
    pub fn open(&self) -> Option<Box<dyn BlockingDevice>> {
        let root = || Root::open(self.folder.path()).expect("a folder nobody uses");
        Some(match self.kind {
            Kind::Memory => {
                self.memory.lock().close_all();
                Box::new(self.memory.clone())
            }
            Kind::Faulty => {
                self.memory.lock().close_all();
                let latency = (Duration::from_micros(10), Duration::from_millis(2));
                Box::new(Faulty::new(
                    self.memory.clone(),
                    FaultPlan { latency, ..FaultPlan::default() },
                    7,
                ))
            }
            Kind::Threads => {
                Box::new(Threads::new(&root(), 3, DirectIo::WhenAligned).expect("threads"))
            }
            Kind::Helper => Box::new(helper(&root())),
            Kind::Uring => Box::new(Uring::new(&root(), 32, DirectIo::WhenAligned).ok()?),
            Kind::Null => Box::new(Memory::null()),
        })
    }

    /// Returns the total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Null => 0,
            Kind::Memory | Kind::Faulty => self.memory.lock().bytes(),
            Kind::Threads | Kind::Helper | Kind::Uring => bytes_below(self.folder.path()),
        }
    }
}

fn helper(root: &Root) -> Helper {
    let folder = root.path().to_owned();
    let start = move |socket| -> std::io::Result<foxy_device::helper::Ending> {
        let folder = folder.clone();
        let thread =
            std::thread::spawn(move || foxy_device::helper::serve(socket, &folder, DirectIo::Off));
        Ok(Box::new(move || thread.join().expect("no panic").expect("served to the end")))
    };
    Helper::new(72, start).expect("a socket and a thread")
}

fn bytes_below(path: &std::path::Path) -> u64 {
    let size = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            Some(bytes_below(&entry.path()))
        } else {
            Some(entry.metadata().ok()?.len())
        }
    };
    std::fs::read_dir(path).map_or(0, |entries| entries.filter_map(size).sum())
}

/// A memory device that keeps its bytes after its store ends.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Memory>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device for Kept {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        self.lock().submit(id, op, now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.lock().reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.lock().next_completion()
    }

    fn in_flight(&self) -> usize {
        self.lock().in_flight()
    }
}

impl BlockingDevice for Kept {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.lock().wait(timeout);
    }

    fn waker(&self) -> Waker {
        self.lock().waker()
    }
}
