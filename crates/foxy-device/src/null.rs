//! A device without a disk: takes every write, reads as zeros, finishes at once. For measuring what is above it.

use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use foxy_base::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// The device that keeps nothing but the sizes of its files.
#[derive(Debug, Default)]
pub struct Null {
    sizes: HashMap<FileId, u64>,
    finished: Vec<IoDone>,
    parker: Parker,
}

impl Device for Null {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        let (result, buffer) = match op {
            IoOp::Open { .. } | IoOp::Remove { .. } => (Err(IoError::NotFound), None),
            IoOp::Create { file, size, .. } => {
                self.sizes.insert(file, size);
                (Ok(IoOutput::Done), None)
            }
            IoOp::Close { file } => {
                (self.sizes.remove(&file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen), None)
            }
            IoOp::Read { file, offset, mut buffer } => {
                let left =
                    self.sizes.get(&file).map(|size| size.saturating_sub(offset)).ok_or(IoError::NotOpen);
                let length = buffer.len();
                buffer.as_mut().fill(0);
                let moved = left.map(|left| IoOutput::Moved {
                    count: usize::try_from(left).unwrap_or(length).min(length),
                });
                (moved, Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                let end = offset + buffer.len() as u64;
                let moved =
                    self.sizes.get_mut(&file).map(|size| *size = end.max(*size)).ok_or(IoError::NotOpen);
                (moved.map(|()| IoOutput::Moved { count: buffer.len() }), Some(buffer))
            }
            IoOp::Sync { .. } | IoOp::MakeDir { .. } | IoOp::Trim { .. } => (Ok(IoOutput::Done), None),
            IoOp::List { .. } => (Ok(IoOutput::Listing(Vec::new())), None),
        };
        self.finished.push(IoDone { id, result, buffer });
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.finished);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.finished.len()
    }
}

impl BlockingDevice for Null {
    fn wait(&mut self, timeout: Option<Duration>) {
        if self.finished.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}
