//! The steps that open the file of a store and read its superblocks, or create the file. A block
//! device keeps its size. This module does no IO: each call returns the next operation to submit.

use crate::beginning::{AnewReason, Beginning};
use crate::completion;
use crate::layout::PAGE;
use crate::observe::Observer;
use crate::one_file::medium::{Medium, first_written};
use crate::one_file::superblock::{Found, Superblock};
use crate::settings::{MINIMUM_SIZE, SizeWish, StoreSettings};
use crate::status::OpenStoreError;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};

/// The kinds of medium on which the store may be created or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumWish {
    File,
    FileOrBlockDevice,
}

/// When to sync an existing file for the first time. The sync is needed because an earlier process
/// may have been killed: a power failure could still lose data that is readable now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSync {
    /// Sync the file before any read.
    Now,
    /// Do not sync now, because the storage scheme syncs before its first write.
    Later,
}

/// The operation whose result the opening waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningStep {
    Open,
    /// Opens a block device, because the path does not lead to a regular file.
    OpenBlockDevice,
    FirstSync,
    Superblocks,
    /// Reads a part of a file whose pages before this byte are zero. The file is blank if all its
    /// pages are zero.
    Blank(u64),
    /// Creates a file of this size in bytes.
    Create(u64),
}

/// The result of a step of the opening: the next operations, or how the opening ended.
#[derive(Debug)]
pub enum OpeningTurn {
    Next(IoOp),
    /// Closes the file. Then creates a new, empty file in its place.
    Anew {
        close: IoOp,
        create: IoOp,
    },
    /// An empty file of this size in bytes was created.
    Created(u64),
    Found(Superblock),
    Failed(OpenStoreError),
}

/// The progress of the steps that open or create the file of a store.
#[derive(Debug)]
pub struct Opening {
    name: &'static str,
    wanted: u64,
    wish: SizeWish,
    first_sync: FirstSync,
    place: MediumWish,
    medium: Medium,
    file: FileId,
    size: u64,
    step: OpeningStep,
    /// The outcome to report if the file is blank (contains only zeros).
    blank: Beginning,
    observer: Observer,
}

impl Opening {
    /// Prepares to open the file `name`. If the file is missing, it is created with the size in the
    /// settings.
    pub fn new(
        name: &'static str,
        settings: &StoreSettings,
        observer: &Observer,
        first_sync: FirstSync,
        place: MediumWish,
    ) -> Self {
        let (wanted, wish, observer) = (settings.size, settings.size_wish, observer.clone());
        let (medium, file, size, step) = (Medium::File, FileId(0), 0, OpeningStep::Open);
        let blank = Beginning::of_blank(settings);
        Self { name, wanted, wish, first_sync, place, medium, file, size, step, blank, observer }
    }

    pub const fn file(&self) -> FileId {
        self.file
    }

    /// Returns the size of the file in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether the current step expects this error. An expected error (such as a missing
    /// file) is not a failure of the disk.
    pub fn looks_for(&self, error: IoError) -> bool {
        match self.step {
            OpeningStep::Open => {
                error == IoError::NotFound
                    || error == IoError::WrongKind && self.place == MediumWish::FileOrBlockDevice
            }
            _ => false,
        }
    }

    /// Returns whether the file or block device can contain a store of `size` bytes. A file can
    /// grow, but a device cannot.
    pub fn can_have(&self, size: u64) -> bool {
        self.medium == Medium::File || size <= self.size
    }

    /// Returns how many bytes of the file lie after the end of a store of `size` bytes.
    pub const fn left_behind(&self, size: u64) -> u64 {
        match self.medium {
            Medium::File => self.size.saturating_sub(size),
            Medium::BlockDevice => 0,
        }
    }

    pub fn begin(&self) -> IoOp {
        IoOp::Open { file: self.file, path: StorePath::new(self.name) }
    }

    /// Discards the content and starts to create an empty store.
    pub fn anew(&mut self, reason: AnewReason) -> OpeningTurn {
        self.again(Beginning::Anew(reason))
    }

    fn again(&mut self, beginning: Beginning) -> OpeningTurn {
        self.observer.begins(beginning);
        if self.medium == Medium::BlockDevice {
            return self.on_block_device();
        }
        let close = IoOp::Close { file: self.file };
        OpeningTurn::Anew { close, create: self.create(self.wanted) }
    }

    /// Prepares an empty store on the block device. The store has the requested size if this size
    /// fits, otherwise the size of the device.
    fn on_block_device(&self) -> OpeningTurn {
        let [there, wanted] =
            [self.size, self.wanted].map(|bytes| bytes / PAGE as u64 * PAGE as u64);
        let fits = wanted <= there || self.wish == SizeWish::AtMost && there >= MINIMUM_SIZE;
        if fits {
            OpeningTurn::Created(wanted.min(there))
        } else {
            OpeningTurn::Failed(OpenStoreError::NoSpace)
        }
    }

    /// Processes the result of a step of the opening, and returns the next step.
    pub fn advance(&mut self, done: IoDone) -> OpeningTurn {
        match self.step {
            OpeningStep::Open => self.opened(&done.result),
            OpeningStep::OpenBlockDevice => self.block_device_opened(&done.result),
            OpeningStep::FirstSync => match done.result {
                Ok(_) => self.read(OpeningStep::Superblocks, 0, 2 * PAGE as u64),
                Err(error) => OpeningTurn::Failed(OpenStoreError::Device(error)),
            },
            OpeningStep::Superblocks => self.superblocks_read(completion::read(done)),
            OpeningStep::Blank(from) => self.blank_read(from, completion::read(done)),
            OpeningStep::Create(size) => self.created(size, &done.result),
        }
    }

    fn opened(&mut self, result: &Result<IoOutput, IoError>) -> OpeningTurn {
        match *result {
            Ok(IoOutput::Opened { size: 0 }) => self.again(self.blank),
            Ok(IoOutput::Opened { size }) => {
                self.size = size;
                if self.first_sync == FirstSync::Later {
                    return self.read(OpeningStep::Superblocks, 0, 2 * PAGE as u64);
                }
                self.step = OpeningStep::FirstSync;
                OpeningTurn::Next(IoOp::Sync { file: self.file })
            }
            Ok(_) => OpeningTurn::Failed(OpenStoreError::Device(IoError::Device)),
            Err(IoError::NotFound) => {
                self.observer.begins(Beginning::New);
                OpeningTurn::Next(self.create(self.wanted))
            }
            Err(IoError::WrongKind) if self.place == MediumWish::FileOrBlockDevice => {
                self.step = OpeningStep::OpenBlockDevice;
                OpeningTurn::Next(IoOp::OpenBlockDevice {
                    file: self.file,
                    path: StorePath::new(self.name),
                })
            }
            Err(error) => OpeningTurn::Failed(OpenStoreError::opening(error)),
        }
    }

    fn block_device_opened(&mut self, result: &Result<IoOutput, IoError>) -> OpeningTurn {
        match *result {
            Ok(IoOutput::Opened { size }) => {
                (self.medium, self.size) = (Medium::BlockDevice, size);
                match size {
                    0 => OpeningTurn::Failed(OpenStoreError::NoSpace),
                    _ => self.read(OpeningStep::Superblocks, 0, 2 * PAGE as u64),
                }
            }
            Ok(_) => OpeningTurn::Failed(OpenStoreError::Device(IoError::Device)),
            // The path is a symbolic link without a target.
            Err(IoError::NotFound) => OpeningTurn::Failed(OpenStoreError::NotAFile),
            Err(error) => OpeningTurn::Failed(OpenStoreError::opening(error)),
        }
    }

    fn create(&mut self, size: u64) -> IoOp {
        let size = size / PAGE as u64 * PAGE as u64;
        self.file = FileId(self.file.0 + 1);
        self.step = OpeningStep::Create(size);
        IoOp::Create { file: self.file, path: StorePath::new(self.name), size }
    }

    /// Processes the result of creating the file. If the disk lacks space and the settings allow
    /// it, creates a smaller file.
    fn created(&mut self, size: u64, result: &Result<IoOutput, IoError>) -> OpeningTurn {
        match *result {
            Ok(_) => {
                self.size = size;
                OpeningTurn::Created(size)
            }
            Err(IoError::NoSpace) if self.wish == SizeWish::AtMost && size / 2 >= MINIMUM_SIZE => {
                OpeningTurn::Next(self.create(size / 2))
            }
            Err(IoError::NoSpace) => OpeningTurn::Failed(OpenStoreError::NoSpace),
            Err(error) => OpeningTurn::Failed(OpenStoreError::Device(error)),
        }
    }

    fn read(&mut self, step: OpeningStep, offset: u64, length: u64) -> OpeningTurn {
        self.step = step;
        let length = usize::try_from(length).expect("at most a mebibyte");
        OpeningTurn::Next(IoOp::Read { file: self.file, offset, buffer: IoBuffer::zeroed(length) })
    }

    fn superblocks_read(&mut self, result: Result<IoBuffer, IoError>) -> OpeningTurn {
        let buffer = match result {
            Ok(buffer) => buffer,
            Err(error) => return OpeningTurn::Failed(OpenStoreError::Device(error)),
        };
        let bytes = buffer.as_ref();
        if (bytes.len() as u64) < self.size.min(2 * PAGE as u64) {
            return OpeningTurn::Failed(OpenStoreError::Device(IoError::Device));
        }
        match self.medium.judge(bytes) {
            Err(error) => OpeningTurn::Failed(error),
            Ok(Found::Blank) => self.read_blank(2 * PAGE as u64),
            Ok(Found::Damaged) => self.anew(AnewReason::SuperblocksDamaged),
            Ok(Found::Ours(superblock)) => {
                self.observer.begins(Beginning::Kept);
                OpeningTurn::Found(superblock)
            }
        }
    }

    /// Reads the next part of a file that starts with zeros. The file counts as blank only if all
    /// of it is zero. A file with other content stays unchanged.
    fn read_blank(&mut self, from: u64) -> OpeningTurn {
        match self.medium.next_blank(from, self.size) {
            None => self.again(self.blank),
            Some(part) => {
                self.read(OpeningStep::Blank(part.start), part.start, part.end - part.start)
            }
        }
    }

    fn blank_read(&mut self, from: u64, result: Result<IoBuffer, IoError>) -> OpeningTurn {
        match result {
            Err(error) => OpeningTurn::Failed(OpenStoreError::Device(error)),
            Ok(bytes) if bytes.is_empty() => {
                OpeningTurn::Failed(OpenStoreError::Device(IoError::Device))
            }
            Ok(bytes) => match first_written(bytes.as_ref()) {
                None => self.read_blank(from + bytes.len() as u64),
                Some(at) => OpeningTurn::Failed(self.medium.foreign(from + at as u64)),
            },
        }
    }
}
