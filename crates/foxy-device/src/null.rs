//! A device that keeps names and sizes but no bytes: writes are accepted, reads give zeros. For
//! measuring everything but the disk.

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput, range_end};
use crate::memory::Memory;
use crate::park::{BlockingDevice, Waker};
use foxy_base::Instant;
use std::time::Duration;

/// A device without content; completes everything at once.
#[derive(Debug, Default)]
pub struct Null {
    names: Memory,
}

impl Null {
    fn read(&self, file: FileId, offset: u64, buffer: &mut IoBuffer) -> Result<IoOutput, IoError> {
        let left = self.names.size(file)?.saturating_sub(offset);
        range_end(offset, buffer.len() as u64)?;
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        buffer.as_mut()[..count].fill(0);
        Ok(IoOutput::Moved { count })
    }

    fn write(&mut self, file: FileId, offset: u64, buffer: &IoBuffer) -> Result<IoOutput, IoError> {
        let end = range_end(offset, buffer.len() as u64)?;
        self.names.extend(file, if buffer.is_empty() { 0 } else { end })?;
        Ok(IoOutput::Moved { count: buffer.len() })
    }
}

impl Device for Null {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        let (result, buffer) = match op {
            IoOp::Read { file, offset, mut buffer } => {
                (self.read(file, offset, &mut buffer), Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                (self.write(file, offset, &buffer), Some(buffer))
            }
            other => return self.names.submit(id, other, now),
        };
        self.names.finish(IoDone { id, result, buffer }, now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.names.reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.names.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.names.in_flight()
    }
}

impl BlockingDevice for Null {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.names.wait(timeout);
    }

    fn waker(&self) -> Waker {
        self.names.waker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::StorePath;

    #[test]
    fn sizes_and_names_are_kept_and_bytes_are_not() {
        let mut device = Null::default();
        let file = FileId(0);
        let path = StorePath::new("a");
        let operations = [
            IoOp::Create { file, path: path.clone(), size: 2 },
            IoOp::Write { file, offset: 1, buffer: IoBuffer::copy_of(b"fox") },
            IoOp::Close { file },
            IoOp::Open { file, path },
            IoOp::Read { file, offset: 1, buffer: IoBuffer::copy_of(b"dirty") },
        ];
        for (id, op) in (0..).map(IoId).zip(operations) {
            device.submit(id, op, Instant::ZERO);
        }
        let mut done = Vec::new();
        device.reap(Instant::ZERO, &mut done);
        assert!(matches!(done[3].result, Ok(IoOutput::Opened { size: 4 })), "{done:?}");
        assert!(matches!(done[4].result, Ok(IoOutput::Moved { count: 3 })), "{done:?}");
        assert_eq!(done[4].buffer.as_ref().map(AsRef::as_ref), Some(&b"\0\0\0ty"[..]));
    }
}
