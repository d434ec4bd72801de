//! Whole transfers with blocking system calls: resumed when short, until all is moved or the file
//! ends.

use crate::buffer::IoBuffer;
use crate::io::IoOutput;
use crate::tree::{OpenFile, Place};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread, pwrite};

pub(crate) fn read(file: &OpenFile, offset: u64, buffer: &mut IoBuffer) -> Result<IoOutput, Errno> {
    let length = buffer.len();
    let mut count = 0;
    while count < length {
        let at = offset + count as u64;
        let rest = &mut buffer.as_mut()[count..];
        match file.transfer(at, rest.len(), |descriptor| pread(descriptor, &mut *rest, at))? {
            0 => break,
            moved => count += moved,
        }
    }
    Ok(IoOutput::Moved { count })
}

pub(crate) fn write(file: &OpenFile, offset: u64, buffer: &IoBuffer) -> Result<IoOutput, Errno> {
    let length = buffer.len();
    let mut count = 0;
    while count < length {
        let at = offset + count as u64;
        let rest = &buffer.as_ref()[count..];
        match file.transfer(at, rest.len(), |descriptor| pwrite(descriptor, rest, at))? {
            0 => return Err(Errno::IO),
            moved => count += moved,
        }
    }
    Ok(IoOutput::Moved { count })
}

pub(crate) fn trim(file: &OpenFile, offset: u64, length: u64) -> Result<IoOutput, Errno> {
    // A trim is advice, and a block device is not given any: what lies behind a store on it may be
    // anybody's.
    if length == 0 || file.place == Place::BlockDevice {
        return Ok(IoOutput::Done);
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(&file.buffered, flags, offset, length) {
        // A trim is advice; a file system that cannot take it loses nothing.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(IoOutput::Done),
        Err(error) => Err(error),
    }
}
