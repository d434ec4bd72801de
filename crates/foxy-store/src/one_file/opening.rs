//! The first steps of a store that is one file: the file is opened, synced and its superblocks are
//! read, or it is created. Where a block device is in place of the file, that is taken as it is. It
//! does no IO: it says which operation comes next. What follows the superblocks is each scheme's
//! own.

use crate::beginning::{AnewReason, Beginning};
use crate::completion;
use crate::layout::PAGE;
use crate::observe::Observer;
use crate::one_file::medium::{Medium, first_written};
use crate::one_file::superblock::{Found, Superblock};
use crate::settings::{MINIMUM_SIZE, SizeWish, StoreSettings};
use crate::status::OpenStoreError;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};

/// Whether a store may be on a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumWish {
    /// Its file must be one.
    File,
    /// A block device will do as well.
    FileOrBlockDevice,
}

/// When the file that is found is synced: what a killed process wrote may be readable and yet be
/// lost when the power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSync {
    /// Before anything is read.
    Now,
    /// By the scheme, before it writes anything.
    Later,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpeningStep {
    /// The file is being opened.
    Open,
    /// There is no file at its place; a block device is being opened.
    OpenBlockDevice,
    /// The file is being synced.
    FirstSync,
    /// The superblocks are being read.
    Superblocks,
    /// A file that begins with zeros is being read on, from this byte.
    Blank(u64),
    /// A file of this size is being created.
    Create(u64),
}

/// What follows a step.
#[derive(Debug)]
pub enum OpeningTurn {
    /// This operation.
    Next(IoOp),
    /// The file begins anew, and what it held is given up: it is let go of, and another created.
    Anew {
        /// Lets go of it.
        close: IoOp,
        /// Creates the other; its completion goes on here.
        create: IoOp,
    },
    /// There is a fresh file of that many bytes.
    Created(u64),
    /// There is a store.
    Found(Superblock),
    /// It cannot be opened.
    Failed(OpenStoreError),
}

/// The opening of one file.
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
    /// How it begins where nothing but zeros is.
    blank: Beginning,
    observer: Observer,
}

impl Opening {
    /// The opening of the file of that name, as large as the settings say if it must be created.
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

    /// What the file is called in operations.
    pub const fn file(&self) -> FileId {
        self.file
    }

    /// Bytes that the file has.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is not known yet what is there, so that this is no failure of the disk.
    pub fn looks_for(&self, error: IoError) -> bool {
        match self.step {
            OpeningStep::Open => {
                error == IoError::NotFound
                    || error == IoError::WrongKind && self.place == MediumWish::FileOrBlockDevice
            }
            _ => false,
        }
    }

    /// Whether a store of `size` bytes can be there: a file can be made longer, a device cannot.
    pub fn can_have(&self, size: u64) -> bool {
        self.medium == Medium::File || size <= self.size
    }

    /// Bytes that lie behind a store of `size` bytes and were its own.
    pub const fn left_behind(&self, size: u64) -> u64 {
        match self.medium {
            Medium::File => self.size.saturating_sub(size),
            Medium::BlockDevice => 0,
        }
    }

    /// The first operation.
    pub fn begin(&self) -> IoOp {
        IoOp::Open { file: self.file, path: StorePath::new(self.name) }
    }

    /// Begins the file anew, for this reason.
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

    /// The store begins where it is, at the size that is wanted or else the device's.
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

    /// Takes the completion of the step under way.
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
            // A link that leads nowhere.
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

    /// A disk without room for the whole store may have room for a smaller one, where that is
    /// welcome.
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

    /// A file that begins with zeros is foxy's, begun and never stamped, only if there is nothing
    /// else in all of it. Files with anything further on are somebody else's and are left alone. Of
    /// a device both ends are looked at.
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
