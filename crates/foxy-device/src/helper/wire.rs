//! Encodes and decodes the messages between a device and its helper process, and runs the helper's
//! loop. A message contains its length, the operation's number, a tag (its kind), numeric fields
//! and bytes. All numbers are little-endian. Neither side trusts the messages of the other process.

use crate::blocking::Blocking;
use crate::buffer::IoBuffer;
use crate::io::{Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use crate::threads::DirectIo;
use foxy_base::Instant;
use rustix::fs::{Mode, OFlags, open};
use std::io::{BufReader, Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Maximum accepted length of a message in bytes. Real messages are far shorter.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// All errors except [`IoError::Other`]. A message states an error by its index in this list.
const ERRORS: [Option<IoError>; 13] = [
    Some(IoError::NotFound),
    Some(IoError::NoSpace),
    Some(IoError::Device),
    Some(IoError::Denied),
    Some(IoError::Exhausted),
    Some(IoError::NotOpen),
    None,
    Some(IoError::WrongKind),
    Some(IoError::ReadOnly),
    Some(IoError::InUse),
    Some(IoError::LargeBlocks),
    Some(IoError::ReadOnlyDevice),
    Some(IoError::NoMedium),
];

/// The number that stands for [`IoError::Other`] in a message. The operating system's error number
/// follows it.
const OTHER_ERROR: u64 = 6;

/// The result of an operation, as the helper reports it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: IoId,
    pub(super) result: std::result::Result<IoOutput, IoError>,
    /// The bytes that a read returned; empty for other operations.
    pub(super) content: Vec<u8>,
}

impl Answer {
    /// Builds the answer for a finished operation. `reads` says whether the operation was a read,
    /// because only the answer to a read contains bytes.
    pub(super) fn of(done: IoDone, reads: bool) -> Self {
        let content = match (&done.result, done.buffer) {
            (Ok(IoOutput::Moved { count }), Some(buffer)) if reads => {
                buffer.as_ref()[..(*count).min(buffer.len())].to_vec()
            }
            _ => Vec::new(),
        };
        Self { id: done.id, result: done.result, content }
    }
}

struct Message(Vec<u8>);

impl Message {
    fn new(id: IoId, tag: u8) -> Self {
        Self([&[0; 4][..], &id.0.to_le_bytes(), &[tag]].concat())
    }

    fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn end(mut self) -> Vec<u8> {
        let length = self.0.len() - 4;
        assert!(length <= MAX_MESSAGE_BYTES, "no operation of ours is that long");
        self.0[..4].copy_from_slice(&(length as u32).to_le_bytes());
        self.0
    }
}

/// The part of a message that is not decoded yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(invalid)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64> {
        let mut field = [0; 8];
        field.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(field))
    }

    fn size(&mut self) -> Result<usize> {
        usize::try_from(self.number()?)
            .ok()
            .filter(|&size| size <= MAX_MESSAGE_BYTES)
            .ok_or_else(invalid)
    }

    fn file(&mut self) -> Result<FileId> {
        u32::try_from(self.number()?).map(FileId).map_err(|_| invalid())
    }

    fn text(&mut self, count: usize) -> Result<String> {
        String::from_utf8(self.take(count)?.to_vec()).map_err(|_| invalid())
    }

    fn path(&mut self) -> Result<StorePath> {
        let text = self.text(self.0.len())?;
        let plain = text.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        match text.is_empty() {
            true => Ok(StorePath::root()),
            false if plain => Ok(StorePath::new(text)),
            false => Err(invalid()),
        }
    }
}

fn invalid() -> Error {
    Error::new(ErrorKind::InvalidData, "the message is neither an operation nor an answer")
}

fn read_message(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(invalid());
    }
    let mut message = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut message)?;
    if read == length { Ok(message) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

fn begin(message: &[u8]) -> Result<(IoId, u8, Rest<'_>)> {
    let mut rest = Rest(message);
    let id = IoId(rest.number()?);
    let tag = rest.take(1)?[0];
    Ok((id, tag, rest))
}

/// Encodes an operation for the helper as a message.
pub(super) fn operation(id: IoId, op: &IoOp) -> Vec<u8> {
    let start = |tag| Message::new(id, tag);
    let named = |tag, path: &StorePath| start(tag).bytes(path.as_str().as_bytes());
    let on = |tag, file: FileId| start(tag).number(file.0.into());
    match op {
        IoOp::Open { file, path } => on(0, *file).bytes(path.as_str().as_bytes()),
        IoOp::Create { file, path, size } => {
            on(1, *file).number(*size).bytes(path.as_str().as_bytes())
        }
        IoOp::Close { file } => on(2, *file),
        IoOp::Read { file, offset, buffer } => {
            on(3, *file).number(*offset).number(buffer.len() as u64)
        }
        IoOp::Write { file, offset, buffer } => on(4, *file).number(*offset).bytes(buffer.as_ref()),
        IoOp::Sync { file } => on(5, *file),
        IoOp::Remove { path } => named(6, path),
        IoOp::MakeDir { path } => named(7, path),
        IoOp::List { path } => named(8, path),
        IoOp::Trim { file, offset, length } => on(9, *file).number(*offset).number(*length),
        IoOp::OpenBlockDevice { file, path } => on(10, *file).bytes(path.as_str().as_bytes()),
    }
    .end()
}

/// Reads one message from `from` and decodes its operation.
pub(super) fn read_operation(from: &mut impl Read) -> Result<(IoId, IoOp)> {
    let message = read_message(from)?;
    let (id, tag, mut rest) = begin(&message)?;
    let op = match tag {
        0 => IoOp::Open { file: rest.file()?, path: rest.path()? },
        1 => IoOp::Create { file: rest.file()?, size: rest.number()?, path: rest.path()? },
        2 => IoOp::Close { file: rest.file()? },
        3 => {
            let (file, offset) = (rest.file()?, rest.number()?);
            IoOp::Read { file, offset, buffer: IoBuffer::zeroed(rest.size()?) }
        }
        4 => {
            let (file, offset) = (rest.file()?, rest.number()?);
            IoOp::Write { file, offset, buffer: IoBuffer::copy_of(rest.0) }
        }
        5 => IoOp::Sync { file: rest.file()? },
        6 => IoOp::Remove { path: rest.path()? },
        7 => IoOp::MakeDir { path: rest.path()? },
        8 => IoOp::List { path: rest.path()? },
        9 => IoOp::Trim { file: rest.file()?, offset: rest.number()?, length: rest.number()? },
        10 => IoOp::OpenBlockDevice { file: rest.file()?, path: rest.path()? },
        _ => return Err(invalid()),
    };
    Ok((id, op))
}

/// Encodes the helper's answer to an operation as a message.
pub(super) fn answer(answer: &Answer) -> Vec<u8> {
    let start = |tag| Message::new(answer.id, tag);
    match &answer.result {
        Ok(IoOutput::Done) => start(0),
        Ok(IoOutput::Opened { size }) => start(1).number(*size),
        Ok(IoOutput::Moved { count }) => start(2).number(*count as u64).bytes(&answer.content),
        Ok(IoOutput::Listing(entries)) => entries.iter().fold(start(3), |message, entry| {
            let kind = u64::from(entry.is_directory);
            message
                .number(kind)
                .number(entry.size)
                .number(entry.name.len() as u64)
                .bytes(entry.name.as_bytes())
        }),
        Err(error) => {
            let (kind, number) = match *error {
                IoError::Other(number) => (OTHER_ERROR, number),
                error => {
                    let kind = ERRORS.iter().position(|known| *known == Some(error));
                    (kind.expect("every error has a number") as u64, 0)
                }
            };
            start(4).number(kind).bytes(&number.to_le_bytes())
        }
    }
    .end()
}

/// Reads one message from `from` and decodes its answer.
pub(super) fn read_answer(from: &mut impl Read) -> Result<Answer> {
    let message = read_message(from)?;
    let (id, tag, mut rest) = begin(&message)?;
    let result = match tag {
        0 => Ok(IoOutput::Done),
        1 => Ok(IoOutput::Opened { size: rest.number()? }),
        2 => {
            let count = rest.size()?;
            return Ok(Answer {
                id,
                result: Ok(IoOutput::Moved { count }),
                content: rest.0.to_vec(),
            });
        }
        3 => {
            let mut entries = Vec::new();
            while !rest.0.is_empty() {
                let (is_directory, size, length) =
                    (rest.number()? != 0, rest.number()?, rest.size()?);
                entries.push(DirectoryEntry { name: rest.text(length)?, is_directory, size });
            }
            Ok(IoOutput::Listing(entries))
        }
        4 => Err(error(&mut rest)?),
        _ => return Err(invalid()),
    };
    Ok(Answer { id, result, content: Vec::new() })
}

fn error(rest: &mut Rest<'_>) -> Result<IoError> {
    let kind = rest.number()?;
    if kind == OTHER_ERROR {
        let mut field = [0; 4];
        field.copy_from_slice(rest.take(4)?);
        return Ok(IoError::Other(i32::from_le_bytes(field)));
    }
    let kind = usize::try_from(kind).map_err(|_| invalid())?;
    ERRORS.get(kind).copied().flatten().ok_or_else(invalid)
}

/// Performs the operations from `socket` on the files in `folder` until the other end closes the
/// socket.
///
/// # Errors
/// Returns an error if the folder cannot be opened or the other end sends an invalid message.
pub fn serve(socket: UnixStream, folder: &Path, direct: DirectIo) -> Result<()> {
    let directory = open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut device = Blocking::on(std::sync::Arc::new(directory), direct);
    let mut answers = socket.try_clone()?;
    let mut operations = BufReader::new(socket);
    let mut done: Vec<IoDone> = Vec::new();
    loop {
        let reads;
        match read_operation(&mut operations) {
            Ok((id, op)) => {
                reads = matches!(op, IoOp::Read { .. });
                device.submit(id, op, Instant::ZERO);
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        device.reap(Instant::ZERO, &mut done);
        for finished in done.drain(..) {
            if answers.write_all(&answer(&Answer::of(finished, reads))).is_err() {
                return Ok(());
            }
        }
    }
}
