//! The file of a store: its superblock and secret, the operations in flight, and the steps to open
//! and close the file.

use crate::beginning::AnewReason;
use crate::contract::Outbox;
use crate::observe::Observer;
use crate::one_file::opening::{FirstSync, MediumWish, Opening, OpeningTurn};
use crate::one_file::superblock::Superblock;
use crate::record::Secret;
use crate::settings::StoreSettings;
use crate::status::OpenStoreError;
use foxy_device::{FileId, IoBuffer, IoDone, IoId, IoOp};
use std::collections::BTreeMap;

/// The purpose of a disk operation in flight.
enum Task<P> {
    Open,
    Close,
    Scheme(P),
}

/// The result of opening the file.
#[derive(Debug)]
pub enum Opened {
    /// An empty file of this size in bytes was created.
    Created(u64),
    /// The file contains a store with this superblock.
    Found(Superblock),
    /// The store cannot be opened.
    Failed(OpenStoreError),
}

/// The meaning of a finished disk operation for the storage scheme.
#[derive(Debug)]
pub enum Completion<P> {
    /// The opening of the file is finished.
    Opened(Opened),
    /// An operation of the storage scheme is finished. Contains the purpose that the scheme gave to
    /// the operation, and the operation's result.
    Done(P, IoDone),
}

/// The file of a store. `P` is the purpose that the storage scheme gives to each operation, to
/// recognise its result.
pub struct StoreFile<P> {
    opening: Opening,
    observer: Observer,
    superblock: Superblock,
    secret: Secret,
    next_io: u64,
    pending: BTreeMap<u64, Task<P>>,
    bytes_written: u64,
    is_closed: bool,
}

impl<P> StoreFile<P> {
    /// Prepares to open the file `name`. If the file is missing, it is created with the size in the
    /// settings.
    pub fn new(
        name: &'static str,
        settings: &StoreSettings,
        observer: &Observer,
        first_sync: FirstSync,
        medium: MediumWish,
    ) -> Self {
        Self {
            opening: Opening::new(name, settings, observer, first_sync, medium),
            observer: observer.clone(),
            superblock: Superblock::default(),
            secret: Secret::new(0),
            next_io: 0,
            pending: BTreeMap::new(),
            bytes_written: 0,
            is_closed: false,
        }
    }

    /// Returns the number that identifies the open file in disk operations.
    pub const fn id(&self) -> FileId {
        self.opening.file()
    }

    /// Returns the progress of opening the file, which includes the size of the file.
    pub const fn opening(&self) -> &Opening {
        &self.opening
    }

    /// Returns the superblock that describes the store now.
    pub const fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Returns the secret of the superblock that describes the store now.
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Replaces the superblock that describes the store, in memory only.
    pub fn set_superblock(&mut self, superblock: Superblock) {
        if superblock.salt != self.secret.salt() {
            self.secret = superblock.secret();
        }
        self.superblock = superblock;
    }

    /// Returns the superblock to write when the journal moves to its other half. The journal has
    /// two halves, and the superblock names the active half.
    pub const fn next_superblock(&self) -> Superblock {
        let generation = self.superblock.generation + 1;
        Superblock {
            generation,
            journal_half: 1 - self.superblock.journal_half,
            journal_generation: generation,
            ..self.superblock
        }
    }

    /// Returns the number of bytes in all writes submitted so far.
    pub const fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn submit_task(&mut self, op: IoOp, task: Task<P>, out: &mut Outbox) -> IoId {
        if let IoOp::Write { buffer, .. } = &op {
            self.bytes_written += buffer.len() as u64;
        }
        self.next_io += 1;
        self.pending.insert(self.next_io, task);
        out.submit(IoId(self.next_io), op);
        IoId(self.next_io)
    }

    /// Submits a disk operation. `purpose` tells what its result means.
    pub fn submit(&mut self, op: IoOp, purpose: P, out: &mut Outbox) -> IoId {
        self.submit_task(op, Task::Scheme(purpose), out)
    }

    /// Submits a read of `length` bytes at byte `offset` of the file.
    pub fn read(&mut self, offset: u64, length: usize, purpose: P, out: &mut Outbox) {
        let op = IoOp::Read { file: self.id(), offset, buffer: IoBuffer::for_read(length) };
        self.submit(op, purpose, out);
    }

    /// Submits a write of `buffer` at byte `offset` of the file.
    pub fn write(&mut self, offset: u64, buffer: IoBuffer, purpose: P, out: &mut Outbox) -> IoId {
        self.submit(IoOp::Write { file: self.id(), offset, buffer }, purpose, out)
    }

    /// Submits a sync of the file.
    pub fn sync(&mut self, purpose: P, out: &mut Outbox) {
        self.submit(IoOp::Sync { file: self.id() }, purpose, out);
    }

    /// Starts to open the file. [`StoreFile::complete`] reports the result.
    pub fn open(&mut self, out: &mut Outbox) {
        self.submit_task(self.opening.begin(), Task::Open, out);
    }

    /// Discards the content and creates an empty store, in a new file or on the same device.
    /// Returns the result if it is already known.
    pub fn begin_anew(&mut self, reason: AnewReason, out: &mut Outbox) -> Option<Opened> {
        let turn = self.opening.anew(reason);
        self.follow(turn, out)
    }

    fn follow(&mut self, turn: OpeningTurn, out: &mut Outbox) -> Option<Opened> {
        match turn {
            OpeningTurn::Next(op) => {
                self.submit_task(op, Task::Open, out);
            }
            OpeningTurn::Anew { close, create } => {
                self.submit_task(close, Task::Close, out);
                self.submit_task(create, Task::Open, out);
            }
            OpeningTurn::Created(size) => return Some(Opened::Created(size)),
            OpeningTurn::Found(superblock) => return Some(Opened::Found(superblock)),
            OpeningTurn::Failed(error) => return Some(Opened::Failed(error)),
        }
        None
    }

    /// Closes the file. The results of operations that finish later are ignored.
    pub fn close(&mut self, out: &mut Outbox) {
        self.submit_task(IoOp::Close { file: self.id() }, Task::Close, out);
        self.is_closed = true;
    }

    /// Removes the operations in flight for whose purpose `select` returns true, and returns their
    /// purposes. The results of these operations are ignored when they arrive.
    pub fn take(&mut self, mut select: impl FnMut(&P) -> bool) -> Vec<P> {
        let mut taken = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        for (id, task) in pending {
            match task {
                Task::Scheme(purpose) if select(&purpose) => taken.push(purpose),
                task => {
                    self.pending.insert(id, task);
                }
            }
        }
        taken
    }

    /// Processes a finished disk operation. A failure that the current step does not expect is
    /// counted as a device error. Returns `None` if the storage scheme has nothing to do.
    pub fn complete(&mut self, done: IoDone, out: &mut Outbox) -> Option<Completion<P>> {
        let task = self.pending.remove(&done.id.0)?;
        let is_expected = |&error: &_| match task {
            Task::Open => self.opening.looks_for(error),
            Task::Close => true,
            Task::Scheme(_) => false,
        };
        if done.result.as_ref().is_err_and(|error| !is_expected(error)) {
            self.observer.statistics.device_errors.add(1);
        }
        if self.is_closed {
            return None;
        }
        match task {
            Task::Open => {
                let turn = self.opening.advance(done);
                self.follow(turn, out).map(Completion::Opened)
            }
            Task::Close => None,
            Task::Scheme(purpose) => Some(Completion::Done(purpose, done)),
        }
    }
}
