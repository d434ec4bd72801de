//! Operations of the disk under torture between their submission and their completion. Data only.

use foxy_device::{IoBuffer, IoDone, IoError, IoId, IoOp};

/// An operation is carried out when it is submitted or when it completes; nobody can tell before.
#[derive(Debug)]
pub(crate) enum Work {
    Carried(IoDone, Option<Written>),
    ToDo(IoId, IoOp, Option<Covered>),
}

/// What carrying an operation out gave.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) done: IoDone,
    pub(crate) written: Option<Written>,
}

/// A write in the volatile cache of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) inode: u64,
    pub(crate) write: u64,
}

/// The writes that a sync will make durable: those completed when it was submitted.
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
