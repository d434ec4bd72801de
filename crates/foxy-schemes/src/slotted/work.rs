//! The purpose of each operation in flight, and the function that passes a result to the code for
//! this purpose.

use super::Slotted;
use super::entries::EntryId;
use foxy_base::Instant;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use foxy_store::completion::written;
use foxy_store::contract::Outbox;

/// The purpose of a disk operation in flight.
#[derive(Debug)]
pub enum Job {
    /// A step of opening the store.
    Open,
    /// A step of closing the store.
    CloseStep,
    /// Opens or creates a data file.
    OpenData(u64),
    /// Creates a folder for a new data file. The list contains the folders to create afterwards,
    /// from last to first.
    MakeFolder(u64, Vec<StorePath>),
    Read {
        file: u64,
        read: u64,
        part: usize,
    },
    Write {
        file: u64,
        bytes: usize,
        records: Vec<EntryId>,
    },
    /// Syncs a data file before the index is written.
    Settle(u64),
    /// Closes a file.
    Close(FileId),
    /// Removes a data file that contains no more records.
    Remove(u64),
    /// Removes a data file that an earlier run left. The index has no record in this file.
    RemoveStale,
}

impl Slotted {
    pub(super) fn submit(&mut self, op: IoOp, job: Job, out: &mut Outbox) {
        self.next_io += 1;
        self.jobs.insert(IoId(self.next_io), job);
        out.submit(IoId(self.next_io), op);
    }

    /// Handles a read, write or sync that fails before it reaches the device, because its file did
    /// not open.
    pub(super) fn failed(&mut self, job: Job, error: IoError, now: Instant, out: &mut Outbox) {
        match job {
            Job::Read { read, part, .. } => self.part_read(read, part, Err(error), now, out),
            Job::Write { bytes, records, .. } => {
                self.batch_written(bytes, records, Err(error), out)
            }
            Job::Settle(_) => self.settled(Err(error), out),
            Job::Open
            | Job::CloseStep
            | Job::OpenData(_)
            | Job::MakeFolder(..)
            | Job::Close(_)
            | Job::Remove(_)
            | Job::RemoveStale => {}
        }
    }

    pub(super) fn dispatch(&mut self, job: Job, done: IoDone, now: Instant, out: &mut Outbox) {
        match job {
            Job::Open => self.opening_step(done, out),
            Job::CloseStep => self.closing_step(written(&done), out),
            Job::OpenData(file) => self.data_opened(file, done.result.map(|_| ()), now, out),
            Job::MakeFolder(file, left) => self.make_folders(file, left, out),
            Job::Read { file, read, part } => {
                self.accessed(file, out);
                self.part_read(read, part, filled(done), now, out);
            }
            Job::Write { file, bytes, records } => {
                self.accessed(file, out);
                self.batch_written(bytes, records, written(&done), out);
            }
            Job::Settle(file) => {
                self.accessed(file, out);
                self.settled(done.result.map(|_| ()), out);
            }
            Job::Close(id) => self.data_closed(id),
            Job::Remove(file) => {
                self.layout.removed(file);
                self.place_waiting(now, out);
            }
            Job::RemoveStale => self.removed_stale(out),
        }
    }
}

/// Returns the bytes of a read. A read that returned fewer bytes than requested is an error.
pub fn filled(done: IoDone) -> Result<IoBuffer, IoError> {
    match (done.result?, done.buffer) {
        (IoOutput::Moved { count }, Some(buffer)) if count == buffer.len() => Ok(buffer),
        _ => Err(IoError::Device),
    }
}
