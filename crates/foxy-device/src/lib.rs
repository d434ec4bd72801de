//! Disk operations as plain data ([`IoOp`], [`IoDone`]), and the devices that perform them. A
//! device does not know objects, keys or HTTP. Only this crate accesses disks. Only this crate
//! contains `unsafe`.

mod block_device;
pub mod blocking;
pub mod buffer;
pub mod choose;
pub mod faulty;
pub mod helper;
pub mod io;
mod locked_file;
pub mod mechanical;
pub mod memory;
mod open_file;
pub mod park;
pub mod read_only;
pub mod reader;
pub mod root;
pub mod threads;
pub mod traced;
mod tree;
pub mod uring;

pub use blocking::Blocking;
pub use buffer::{IoBuffer, release_freed_memory};
pub use choose::{DeviceKind, DeviceSettings, Preference, open_device};
pub use faulty::{FaultCounts, FaultKind, FaultPlan, Faulty};
pub use helper::Helper;
pub use io::{
    Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, OpKind, StorePath,
};
pub use locked_file::{BlockDevice, FileFault, LockedFile};
pub use mechanical::{
    AccessTimes, Calibration, DiskProfile, Mechanical, MechanicalCounts, MetadataMode, RawDisk,
    RequestKind, Scheduling, ServiceRecord, SystemProfile, calibrate,
};
pub use memory::{CrashPolicy, Memory};
pub use open_file::FileKind;
pub use park::{BlockingDevice, Waker};
pub use read_only::{ReadOnlyDevice, ReadOnlyFile, ReadOnlyFolder};
pub use reader::{KeptFiles, Reader};
pub use root::{Root, RootError};
pub use threads::{DirectIo, Threads, Writes};
pub use traced::{KindCounts, Trace, TraceCounts, TraceRecord, Traced};
pub use uring::{ReadRing, Uring, UringError};
