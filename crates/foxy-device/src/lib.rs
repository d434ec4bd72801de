//! Disk work as data ([`IoOp`], [`IoDone`]) and the devices that carry it out.
//! Devices know nothing of objects, keys or HTTP; this is the only crate that touches disks or has `unsafe`.

pub mod buffer;
pub mod io;

pub use buffer::IoBuffer;
pub use io::{Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
