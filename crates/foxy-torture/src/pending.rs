//! The simulated disk's operations between their submission and their completion.

use foxy_device::{IoBuffer, IoDone, IoError, IoId, IoOp};

/// An operation in flight. The disk decides at random whether to carry it out at submission
/// (`Carried`) or at completion (`ToDo`).
#[derive(Debug)]
pub(crate) enum Work {
    Carried(IoDone, Option<Written>),
    ToDo(IoId, IoOp, Option<Covered>),
}

/// The result of an operation that the disk has carried out.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) done: IoDone,
    pub(crate) written: Option<Written>,
}

/// Identifies a write that is in the system's cache and not durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) inode: u64,
    pub(crate) write: u64,
}

/// The writes that a sync will make durable: the writes that completed before its submission.
#[derive(Debug)]
pub(crate) struct Covered {
    pub(crate) inode: u64,
    pub(crate) writes: Vec<u64>,
}

impl Finished {
    pub(crate) const fn failed(id: IoId, error: IoError, buffer: Option<IoBuffer>) -> Self {
        Self { done: IoDone { id, result: Err(error), buffer }, written: None }
    }
}
