//! The simulated disk of the torture tests: files in memory, and virtual time. The disk behaves as
//! badly as `foxy_device::io` permits. It carries out an operation at any moment before it reports
//! the completion, and completes operations in any order. When the power fails, it keeps, loses or
//! tears each write that is not durable. A torn write is stored in part.

use crate::files::Files;
use crate::pending::{Covered, Finished, Work, Written};
use crate::script::{Death, Faults};
use foxy_base::{Instant, Random};
use foxy_device::{Device, FileId, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A simulated disk in virtual time. It outlives the simulated processes that use it.
#[derive(Debug)]
pub struct Disk {
    files: Files,
    open: HashMap<FileId, u64>,
    pending: BTreeMap<(Instant, u64), Work>,
    submissions: u64,
    random: Random,
    faults: Faults,
    /// Probability per operation that the simulated system makes a file's cached writes durable
    /// without a sync. The value is 0 on some disks.
    write_back: f64,
}

impl Disk {
    /// Makes an empty disk. `seed` decides all its random behaviour.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let write_back = [0.0, 0.0, 0.03, 0.2][usize::try_from(random.below(4)).unwrap_or(0)];
        Self {
            files: Files::default(),
            open: HashMap::new(),
            pending: BTreeMap::new(),
            submissions: 0,
            random,
            faults: Faults::default(),
            write_back,
        }
    }

    /// Sets the probabilities of errors and bit flips for the following operations.
    pub const fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Returns the total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.bytes()
    }

    /// Reads the current content of a file at once, while operations are in flight. Returns `None`
    /// if the file has fewer bytes, or by chance as a simulated fault.
    pub fn read_now(&mut self, file: FileId, offset: u64, length: usize) -> Option<IoBuffer> {
        if self.random.chance(f64::from(self.faults.errors) / 1000.0) {
            return None;
        }
        let inode = self.inode(file).ok()?;
        let mut buffer = IoBuffer::zeroed(length);
        let count = self.files.read(inode, offset, buffer.as_mut());
        self.flip(buffer.as_mut());
        (count == length).then_some(buffer)
    }

    /// Ends the process. Each operation in flight takes effect wholly, partly or not at all. All
    /// files close. A power failure also destroys content that is not durable.
    pub fn die(&mut self, death: Death) {
        for work in std::mem::take(&mut self.pending).into_values() {
            match work {
                Work::ToDo(id, IoOp::Write { file, offset, buffer }, _) => {
                    let kept = self.below(buffer.len() + 1);
                    self.write(id, file, offset, buffer, kept, Ok(IoOutput::Done));
                }
                Work::ToDo(id, op, None) if self.random.chance(0.5) => {
                    self.carry_out(id, op);
                }
                Work::ToDo(..) | Work::Carried(..) => {}
            }
        }
        self.open.clear();
        self.files.forget_unlinked();
        if death == Death::Power {
            self.files.power_fails(&mut self.random);
        }
    }

    /// If `op` is a sync, returns the writes that the sync must make durable if it is submitted
    /// now. Otherwise returns `None`.
    fn coverage(&self, op: &IoOp) -> Option<Covered> {
        let IoOp::Sync { file } = op else { return None };
        let inode = *self.open.get(file)?;
        Some(Covered { inode, writes: self.files.completed_writes(inode) })
    }

    fn attempt(&mut self, id: IoId, op: IoOp, covered: Option<Covered>) -> Finished {
        let fails = self.random.chance(f64::from(self.faults.errors) / 1000.0);
        if let Some(Covered { inode, writes }) = covered {
            let result = if fails { Err(IoError::Device) } else { Ok(IoOutput::Done) };
            if fails {
                self.files.fail_sync(inode, &writes);
            } else {
                self.files.make_durable(inode, &writes);
            }
            return Finished { done: IoDone { id, result, buffer: None }, written: None };
        }
        if fails { self.fail(id, op) } else { self.carry_out(id, op) }
    }

    fn carry_out(&mut self, id: IoId, op: IoOp) -> Finished {
        match op {
            IoOp::Read { file, offset, mut buffer } => {
                let result = self.inode(file).map(|inode| {
                    let count = self.files.read(inode, offset, buffer.as_mut());
                    self.flip(&mut buffer.as_mut()[..count]);
                    IoOutput::Moved { count }
                });
                Finished { done: IoDone { id, result, buffer: Some(buffer) }, written: None }
            }
            IoOp::Write { file, offset, buffer } => {
                let length = buffer.len();
                self.write(id, file, offset, buffer, length, Ok(IoOutput::Moved { count: length }))
            }
            op => {
                let result = self.by_name(op);
                Finished { done: IoDone { id, result, buffer: None }, written: None }
            }
        }
    }

    /// Carries out only the first `kept` bytes of a write. The completion then reports `result`.
    fn write(
        &mut self,
        id: IoId,
        file: FileId,
        offset: u64,
        buffer: IoBuffer,
        kept: usize,
        result: Result<IoOutput, IoError>,
    ) -> Finished {
        let inode = match self.inode(file) {
            Ok(inode) => inode,
            Err(error) => return Finished::failed(id, error, Some(buffer)),
        };
        let mut bytes = buffer.as_ref()[..kept].to_vec();
        self.flip(&mut bytes);
        let write = self.files.write(inode, offset, &bytes);
        Finished {
            done: IoDone { id, result, buffer: Some(buffer) },
            written: Some(Written { inode, write }),
        }
    }

    fn by_name(&mut self, op: IoOp) -> Result<IoOutput, IoError> {
        match op {
            IoOp::Open { file, path } => {
                let inode = self.files.find(path.as_str()).ok_or(IoError::NotFound)?;
                self.open.insert(file, inode);
                return Ok(IoOutput::Opened { size: self.files.size(inode) });
            }
            IoOp::OpenBlockDevice { .. } => return Err(IoError::WrongKind),
            IoOp::Create { file, path, size } => {
                self.parent_of(path.as_str())?;
                let inode =
                    self.files.create(path.as_str(), usize::try_from(size).unwrap_or(usize::MAX));
                self.open.insert(file, inode);
            }
            IoOp::Close { file } => {
                self.open.remove(&file).ok_or(IoError::NotOpen)?;
            }
            IoOp::Remove { path } => {
                self.files.unlink(path.as_str()).then_some(()).ok_or(IoError::NotFound)?;
            }
            IoOp::MakeDir { path } => {
                self.parent_of(path.as_str())?;
                self.files.make_directory(path.as_str());
            }
            IoOp::List { path } => {
                let there = self.files.has_directory(path.as_str());
                there.then_some(()).ok_or(IoError::NotFound)?;
                return Ok(IoOutput::Listing(self.files.list(path.as_str())));
            }
            IoOp::Sync { file }
            | IoOp::Trim { file, .. }
            | IoOp::Read { file, .. }
            | IoOp::Write { file, .. } => {
                self.inode(file)?;
            }
        }
        Ok(IoOutput::Done)
    }

    fn inode(&self, file: FileId) -> Result<u64, IoError> {
        self.open.get(&file).copied().ok_or(IoError::NotOpen)
    }

    fn parent_of(&self, path: &str) -> Result<(), IoError> {
        self.files.has_parent(path).then_some(()).ok_or(IoError::NotFound)
    }

    /// Completes an operation with an error or a short count. A failed write may still take effect,
    /// wholly or partly.
    fn fail(&mut self, id: IoId, op: IoOp) -> Finished {
        match op {
            IoOp::Write { file, offset, buffer } => {
                let kept = self.below(buffer.len() + 1);
                let result = match self.random.below(3) {
                    0 => Err(IoError::Device),
                    1 => Err(IoError::NoSpace),
                    _ => Ok(IoOutput::Moved { count: kept.min(buffer.len().saturating_sub(1)) }),
                };
                self.write(id, file, offset, buffer, kept, result)
            }
            IoOp::Read { file, offset, mut buffer } => {
                let asked = self.below(buffer.len());
                let short = self.random.chance(0.5);
                let result = match self.inode(file) {
                    Ok(inode) if short => {
                        let count = self.files.read(inode, offset, &mut buffer.as_mut()[..asked]);
                        Ok(IoOutput::Moved { count })
                    }
                    _ => Err(IoError::Device),
                };
                Finished { done: IoDone { id, result, buffer: Some(buffer) }, written: None }
            }
            IoOp::Close { .. } => self.carry_out(id, op),
            _ => {
                let error = [IoError::Device, IoError::Exhausted, IoError::NoSpace][self.below(3)];
                Finished::failed(id, error, None)
            }
        }
    }

    fn flip(&mut self, bytes: &mut [u8]) {
        if !bytes.is_empty() && self.random.chance(f64::from(self.faults.flips) / 1000.0) {
            let at = self.below(bytes.len());
            bytes[at] ^= 1 << self.random.below(8);
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap_or(0)
    }
}

impl Device for Disk {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        self.submissions += 1;
        if self.random.chance(self.write_back) {
            self.files.write_back(&mut self.random);
        }
        let covered = self.coverage(&op);
        let early = self.random.chance(0.5) && covered.is_none();
        let work = if early {
            let Finished { done, written } = self.attempt(id, op, None);
            Work::Carried(done, written)
        } else {
            Work::ToDo(id, op, covered)
        };
        let slow = if self.random.chance(0.05) { 50_000 } else { 500 };
        let at = now + Duration::from_micros(10 + self.random.below(slow));
        self.pending.insert((at, self.submissions), work);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        while let Some(entry) = self.pending.first_entry()
            && entry.key().0 <= now
        {
            let finished = match entry.remove() {
                Work::Carried(done, written) => Finished { done, written },
                Work::ToDo(id, op, covered) => self.attempt(id, op, covered),
            };
            if let Some(Written { inode, write }) = finished.written {
                self.files.complete(inode, write);
            }
            done.push(finished.done);
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|(&(at, _), _)| at)
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
