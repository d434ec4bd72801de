//! Disk work as data ([`IoOp`], [`IoDone`]) and the devices that carry it out. Devices know nothing
//! of objects, keys or HTTP; this is the only crate that touches disks or has `unsafe`.

pub mod allocator;
mod block_device;
pub mod blocking;
pub mod buffer;
pub mod choose;
mod errno;
pub mod faulty;
mod files;
pub mod held;
pub mod helper;
pub mod io;
pub mod kind;
pub mod mechanical;
pub mod memory;
pub mod null;
pub mod park;
pub mod read_only;
pub mod reader;
pub mod root;
pub mod threads;
pub mod traced;
mod transfer;
mod tree;
pub mod uring;
mod usage;

pub use blocking::Blocking;
pub use buffer::IoBuffer;
pub use choose::{DeviceKind, DeviceSettings, Preference, open_device};
pub use faulty::{FaultCounts, FaultKind, FaultPlan, Faulty};
pub use held::{BlockDevice, FileTrouble, HeldFile};
pub use helper::Helper;
pub use io::{Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
pub use kind::OpKind;
pub use mechanical::{
    AccessTimes, Calibration, DiskProfile, Mechanical, MechanicalCounts, MetadataMode, RequestKind,
    Scheduling, ServiceRecord, SystemProfile, calibrate,
};
pub use memory::{CrashPolicy, Memory};
pub use null::Null;
pub use park::{BlockingDevice, Waker};
pub use read_only::{ReadOnlyFile, ReadOnlyFolder};
pub use reader::Reader;
pub use root::{Root, RootError};
pub use threads::{DirectIo, Threads, Writes};
pub use traced::{KindCounts, Trace, TraceCounts, TraceRecord, Traced};
pub use tree::Place;
pub use uring::{Uring, UringError};
