//! Writes a ring (log file of fixed size).

use super::{BLOCK, BLOCK_HEAD, BlockHead, Geometry, HEAD, NEXT_AT, record};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Writes a ring (log file of fixed size). The writer fills each of its blocks from start to end.
#[derive(Debug)]
pub struct RingWriter {
    file: File,
    geometry: Geometry,
    /// The head of the block that the writer fills, and the number of bytes that the block already
    /// has in the file.
    block: Option<(BlockHead, usize)>,
}

impl RingWriter {
    /// Opens a ring of about `size` bytes, but of at least [`super::MIN_SIZE`]. The file must be
    /// open for reading and writing. If the file is not a ring of this size, makes it an empty
    /// ring.
    pub fn open(file: File, size: u64) -> io::Result<Self> {
        let geometry = Geometry::of_size(size);
        file.lock()?;
        let prepared = prepare(&file, geometry);
        file.unlock()?;
        prepared.map(|()| Self { file, geometry, block: None })
    }

    /// Appends `records` to the ring. They must be whole records from [`record::encode`], in the
    /// order of their times.
    pub fn append(&mut self, mut records: &[u8]) -> io::Result<()> {
        let mut pending = Vec::new();
        while let Some(next) = record::first(records) {
            records = &records[next.len()..];
            let time = record::time(next);
            let room = |used: usize| used + pending.len() + next.len() <= BLOCK as usize;
            let mut block = match self.block {
                Some((block, used)) if room(used) => block,
                _ => {
                    self.flush(&mut pending)?;
                    self.begin_block(time)?
                }
            };
            let begin = pending.len();
            pending.extend_from_slice(next);
            record::seal(&mut pending[begin..], block.number);
            block.first = block.first.min(time);
            block.last = block.last.max(time);
            if let Some((current, _)) = &mut self.block {
                *current = block;
            }
        }
        self.flush(&mut pending)
    }

    /// Writes the pending records into the current block, after the records that are already there.
    /// Then writes the head of the block.
    fn flush(&mut self, pending: &mut Vec<u8>) -> io::Result<()> {
        let Some((block, used)) = &mut self.block else { return Ok(()) };
        if pending.is_empty() {
            return Ok(());
        }
        let position = self.geometry.position(block.number);
        self.file.write_all_at(pending, position + *used as u64)?;
        *used += pending.len();
        pending.clear();
        self.file.write_all_at(&block.encode(), position)
    }

    /// Reserves the next block of the file for this writer, so that other processes take later
    /// blocks. If somebody has emptied the file, also writes the file's head again.
    fn begin_block(&mut self, time: u64) -> io::Result<BlockHead> {
        self.file.lock()?;
        let head = ensure_head(&self.file, self.geometry);
        let taken = head.and_then(|()| take_number(&self.file));
        self.file.unlock()?;
        let block = BlockHead { number: taken?, first: time, last: time };
        self.block = Some((block, BLOCK_HEAD));
        Ok(block)
    }
}

/// Makes the file an empty ring, unless it is a ring of this size already.
fn prepare(file: &File, geometry: Geometry) -> io::Result<()> {
    if Geometry::read(file)? == Some(geometry) {
        return Ok(());
    }
    file.set_len(0)?;
    file.set_len(HEAD + geometry.blocks * BLOCK)?;
    file.write_all_at(&geometry.head(), 0)
}

/// Writes the head of a ring, unless the file has a head.
fn ensure_head(file: &File, geometry: Geometry) -> io::Result<()> {
    match Geometry::read(file)? {
        Some(_) => Ok(()),
        None => prepare(file, geometry),
    }
}

fn take_number(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, NEXT_AT)?;
    let number = u64::from_le_bytes(bytes).max(1);
    file.write_all_at(&number.wrapping_add(1).to_le_bytes(), NEXT_AT)?;
    Ok(number)
}
