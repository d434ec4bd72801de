//! Stores the bodies of answers in blocks of `BLOCK` bytes: in memory up to a limit, then in a file
//! (the spool file).

use crate::leap::collector::SpoolFile;
use crate::leap::collector::failure::Failure;
use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

pub const BLOCK: usize = 64 << 10;

/// The file for the blocks of bodies that exceed the memory limit.
pub trait BlockFile: Send + Sync {
    /// Reads exactly `to.len()` bytes at `offset`.
    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()>;

    /// Writes all of `from` at `offset`.
    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()>;
}

impl BlockFile for File {
    fn read(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(to, offset)
    }

    fn write(&self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.write_all_at(from, offset)
    }
}

pub struct Spool {
    file: Option<Arc<dyn BlockFile>>,
    room: RefCell<Room>,
}

#[derive(Debug)]
struct Room {
    memory: usize,
    blocks: u32,
    fresh: u32,
    free: Vec<u32>,
}

impl fmt::Debug for Spool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.room.borrow().fmt(formatter)
    }
}

impl Spool {
    pub fn new(memory: usize, file: Option<SpoolFile>) -> Self {
        let blocks = file.as_ref().map_or(0, |(_, bytes)| bytes / BLOCK as u64);
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        let room = RefCell::new(Room { memory, blocks, fresh: 0, free: Vec::new() });
        Self { file: file.map(|(file, _)| file), room }
    }

    #[cfg(test)]
    pub fn left(&self) -> (usize, usize) {
        let room = self.room.borrow();
        (room.memory, room.free.len())
    }

    fn claim_memory(&self, bytes: usize) -> bool {
        let mut room = self.room.borrow_mut();
        let left = room.memory.checked_sub(bytes);
        room.memory = left.unwrap_or(room.memory);
        left.is_some()
    }

    fn claim_block(&self) -> Option<u32> {
        let mut room = self.room.borrow_mut();
        if let Some(block) = room.free.pop() {
            return Some(block);
        }
        let block = room.fresh;
        (block < room.blocks).then(|| {
            room.fresh += 1;
            block
        })
    }

    fn release(&self, block: &Block) {
        let mut room = self.room.borrow_mut();
        match block {
            Block::Memory(bytes, true) => room.memory += bytes.len(),
            Block::Memory(_, false) => {}
            Block::File(number) => room.free.push(*number),
        }
    }
}

#[derive(Debug)]
enum Block {
    /// A block in memory. The flag states whether its bytes count towards the memory limit. They do
    /// not count while the block is being written to the file.
    Memory(Bytes, bool),
    File(u32),
}

/// A body in blocks of `BLOCK` bytes. The last block may be smaller. Dropping the body frees its
/// blocks.
#[derive(Debug)]
pub struct Body {
    spool: Rc<Spool>,
    held: RefCell<Held>,
}

#[derive(Debug, Default)]
struct Held {
    blocks: Vec<Block>,
    tail: BytesMut,
    length: u64,
}

impl Body {
    pub fn new(spool: &Rc<Spool>) -> Self {
        Self { spool: Rc::clone(spool), held: RefCell::default() }
    }

    pub fn length(&self) -> u64 {
        self.held.borrow().length
    }

    /// Appends bytes. If memory and file are full, the function calls `evict`, which removes a
    /// stored answer and returns false if none is left. Only one caller may append to a body.
    pub async fn add(&self, mut data: Bytes, evict: &dyn Fn() -> bool) -> Result<(), Failure> {
        while !data.is_empty() {
            let whole = {
                let mut held = self.held.borrow_mut();
                let taken = data.split_to(data.len().min(BLOCK - held.tail.len()));
                held.tail.extend_from_slice(&taken);
                held.length += taken.len() as u64;
                held.tail.len() == BLOCK
            };
            if whole {
                self.settle(evict).await?;
            }
        }
        Ok(())
    }

    pub async fn finish(&self, evict: &dyn Fn() -> bool) -> Result<(), Failure> {
        if self.held.borrow().tail.is_empty() { Ok(()) } else { self.settle(evict).await }
    }

    /// Moves the bytes after the last full block into a block of their own. They stay readable
    /// during the move.
    async fn settle(&self, evict: &dyn Fn() -> bool) -> Result<(), Failure> {
        let bytes = Bytes::copy_from_slice(&self.held.borrow().tail);
        let number = loop {
            if self.spool.claim_memory(bytes.len()) {
                break None;
            }
            match self.spool.claim_block() {
                Some(number) => break Some(number),
                None if evict() => {}
                None => return Err(Failure::NoRoom),
            }
        };
        let place = {
            let mut held = self.held.borrow_mut();
            held.tail = BytesMut::new();
            held.blocks.push(Block::Memory(bytes.clone(), number.is_none()));
            held.blocks.len() - 1
        };
        let Some((number, file)) = number.zip(self.spool.file.clone()) else { return Ok(()) };
        let offset = u64::from(number) * BLOCK as u64;
        let written = tokio::task::spawn_blocking(move || file.write(offset, &bytes)).await;
        if !matches!(written, Ok(Ok(()))) {
            self.spool.release(&Block::File(number));
            return Err(Failure::SpoolFailed);
        }
        self.held.borrow_mut().blocks[place] = Block::File(number);
        Ok(())
    }

    /// Reads bytes from `position` up to `end`. Returns no bytes beyond the block that contains
    /// `position`. Both positions must be within the body.
    pub async fn read(&self, position: u64, end: u64) -> Result<Bytes, Failure> {
        let place = usize::try_from(position / BLOCK as u64).unwrap_or(usize::MAX);
        let within = (position % BLOCK as u64) as usize;
        let most = usize::try_from(end - position).unwrap_or(usize::MAX).min(BLOCK - within);
        let number = {
            let held = self.held.borrow();
            match held.blocks.get(place) {
                None => return Ok(Bytes::copy_from_slice(&held.tail[within..within + most])),
                Some(Block::Memory(bytes, _)) => return Ok(bytes.slice(within..within + most)),
                Some(Block::File(number)) => *number,
            }
        };
        let file = self.spool.file.clone().ok_or(Failure::SpoolFailed)?;
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; most];
            file.read(u64::from(number) * BLOCK as u64 + within as u64, &mut bytes)
                .map(|()| Bytes::from(bytes))
        });
        read.await.ok().and_then(Result::ok).ok_or(Failure::SpoolFailed)
    }

    pub fn is_in_memory(&self) -> bool {
        self.held.borrow().blocks.iter().all(|block| matches!(block, Block::Memory(..)))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        for block in &self.held.borrow().blocks {
            self.spool.release(block);
        }
    }
}
