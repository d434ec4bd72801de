//! The devices that the conformance tests compare. A handle runs an operation on a device and waits
//! for its result.

use foxy_base::Instant;
use foxy_device::{
    Blocking, BlockingDevice, DirectIo, DirectoryEntry, DiskProfile, FaultPlan, Faulty, FileId,
    Helper, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput, Mechanical, Memory, Root, StorePath,
    Threads, Traced, Uring,
};
use tempfile::TempDir;

/// A device under test, and the folder that contains its files.
pub struct Subject {
    pub name: &'static str,
    pub device: Box<dyn BlockingDevice>,
    pub folder: Option<TempDir>,
}

/// Creates a device on a new folder. Returns `None` if `make` returns `None`, because the device
/// cannot run on this machine.
fn real<D: BlockingDevice + 'static>(
    name: &'static str,
    make: impl FnOnce(&Root) -> Option<D>,
) -> Option<Subject> {
    let folder = TempDir::new().expect("a temporary folder");
    let root = Root::open(folder.path()).expect("a new folder");
    let device = Box::new(make(&root)?);
    Some(Subject { name, device, folder: Some(folder) })
}

fn decorated() -> impl BlockingDevice {
    Traced::new(Faulty::new(Memory::volatile(), FaultPlan::default(), 1), 10)
}

fn modelled() -> impl BlockingDevice {
    Mechanical::new(DiskProfile::default(), 2, 1)
}

/// Starts a helper in a thread instead of a process. Like a real helper process, it shares only the
/// socket with the device.
fn helper(root: &Root, direct: DirectIo) -> Helper {
    let folder = root.path().to_owned();
    let start = move |socket| -> std::io::Result<foxy_device::helper::Ending> {
        let folder = folder.clone();
        let serve = move || foxy_device::helper::serve(socket, &folder, direct);
        let thread = std::thread::spawn(serve);
        Ok(Box::new(move || thread.join().expect("no panic").expect("served to the end")))
    };
    Helper::new(3, start).expect("a socket and a thread")
}

/// Creates all devices under test. Leaves out io_uring if the kernel or a container's filter
/// forbids it.
pub fn subjects() -> Vec<Subject> {
    let mut subjects = vec![
        Subject { name: "memory", device: Box::new(Memory::default()), folder: None },
        Subject { name: "mechanical", device: Box::new(modelled()), folder: None },
        Subject { name: "decorated volatile memory", device: Box::new(decorated()), folder: None },
    ];
    for (direct, names) in [
        (DirectIo::Off, ["blocking", "threads", "uring", "helper"]),
        (
            DirectIo::WhenAligned,
            ["blocking, direct", "threads, direct", "uring, direct", "helper, direct"],
        ),
    ] {
        subjects.extend(real(names[0], |root| Some(Blocking::new(root, direct))));
        subjects.extend(real(names[1], |root| {
            Some(Threads::new(root, 2, direct).expect("threads start"))
        }));
        subjects.extend(real(names[2], |root| Uring::new(root, 4, direct).ok()));
        subjects.extend(real(names[3], |root| Some(helper(root, direct))));
    }
    subjects
}

impl Subject {
    pub fn run(&mut self, op: IoOp) -> IoDone {
        self.device.submit(IoId(1), op, Instant::ZERO);
        let mut done = Vec::new();
        self.reap_until(1, &mut done);
        assert_eq!(self.device.in_flight(), 0);
        done.pop().expect("one completion")
    }

    /// Waits until `done` contains `count` results. If the device uses simulated time, moves the
    /// time forward.
    pub fn reap_until(&mut self, count: usize, done: &mut Vec<IoDone>) {
        while done.len() < count {
            let virtual_time = self.device.next_completion();
            if virtual_time.is_none() {
                self.device.wait(None);
            }
            self.device.reap(virtual_time.unwrap_or(Instant::ZERO), done);
        }
    }

    pub fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<usize, IoError> {
        let done =
            self.run(IoOp::Write { file: FileId(file), offset, buffer: IoBuffer::copy_of(bytes) });
        moved(&done)
    }

    pub fn read(&mut self, file: u32, offset: u64, length: usize) -> Result<Vec<u8>, IoError> {
        let done =
            self.run(IoOp::Read { file: FileId(file), offset, buffer: IoBuffer::zeroed(length) });
        let count = moved(&done)?;
        Ok(done.buffer.expect("reads hand their buffer back").as_ref()[..count].to_vec())
    }

    /// Lists a directory. Leaves out the lock file of real folders.
    pub fn listing(&mut self, path: StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
        match self.run(IoOp::List { path }).result? {
            IoOutput::Listing(entries) => {
                Ok(entries.into_iter().filter(|entry| entry.name != "foxy.lock").collect())
            }
            other => panic!("{}: a list gave {other:?}", self.name),
        }
    }

    pub fn create(&mut self, file: u32, path: &str, size: u64) -> Result<(), IoError> {
        self.run(IoOp::Create { file: FileId(file), path: StorePath::new(path), size })
            .result
            .map(|_| ())
    }
}

fn moved(done: &IoDone) -> Result<usize, IoError> {
    match &done.result {
        Ok(IoOutput::Moved { count }) => Ok(*count),
        Ok(other) => panic!("a transfer gave {other:?}"),
        Err(error) => Err(*error),
    }
}
