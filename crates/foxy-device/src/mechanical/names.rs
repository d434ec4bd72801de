//! The directories and files on the simulated disks, with their places and pending writes. The
//! [`Memory`](crate::Memory) that stores the content has the same directories and files.

use super::layout::{DiskFull, Extents, Inode, Layout, sector_of};
use super::spindle::RequestId;
use crate::io::StorePath;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;

/// Size of a directory entry in bytes. The value assumes names as long as the file names of a
/// cache.
pub(super) const ENTRY: u32 = 20;

/// Identifies a directory. Directories are never removed.
pub(super) type DirectoryId = usize;

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) volume: usize,
    pub(super) inode: Inode,
    /// The first fragment on the disk of each block of the directory.
    blocks: Vec<u32>,
    block_entries: u32,
    /// Number of entries in the directory, used and free together.
    entries: u32,
    /// Numbers of the free entries. A new name takes the entry with the lowest number.
    free: BinaryHeap<Reverse<u32>>,
    /// Number of the entry at which the last search for a name ended. The next search starts there.
    looked_up: u32,
}

/// The blocks of a directory that a search for a name reads, and the number of entries that it
/// examines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) directory: DirectoryId,
    /// Numbers of the blocks that the search still has to read. A number beyond the last block
    /// means a block from the start of the directory.
    pub(super) blocks: Range<usize>,
    pub(super) entries: u32,
}

impl Directory {
    pub(super) fn new(volume: usize, layout: &mut Layout) -> Result<Self, DiskFull> {
        let inode = layout.take_directory_inode()?;
        match layout.take_block(inode.group) {
            Ok(block) => Ok(Self {
                volume,
                inode,
                blocks: vec![block],
                block_entries: layout.page_fragments() * 1024 / ENTRY,
                entries: 0,
                free: BinaryHeap::new(),
                looked_up: 0,
            }),
            Err(full) => {
                layout.give_inode(inode);
                Err(full)
            }
        }
    }

    /// Takes a directory entry for a new name. Returns the number of the entry, counted from the
    /// start of the directory.
    pub(super) fn take_entry(&mut self, layout: &mut Layout) -> Result<u32, DiskFull> {
        if let Some(Reverse(entry)) = self.free.pop() {
            return Ok(entry);
        }
        let entry = self.entries;
        if self.block_of(entry) == self.blocks.len() {
            self.blocks.push(layout.take_block(self.inode.group)?);
        }
        self.entries += 1;
        Ok(entry)
    }

    pub(super) fn give_entry(&mut self, entry: u32) {
        self.free.push(Reverse(entry));
    }

    const fn block_of(&self, entry: u32) -> usize {
        (entry / self.block_entries) as usize
    }

    /// Returns the first sector of a block of the directory. Numbers beyond the last block start
    /// again at the first block.
    pub(super) fn sector(&self, block: usize) -> u64 {
        sector_of(self.blocks[block % self.blocks.len()])
    }

    pub(super) fn entry_sector(&self, entry: u32) -> u64 {
        self.sector(self.block_of(entry))
    }
}

/// The position of a file on its disk, and its pending writes.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) volume: usize,
    pub(super) inode: Inode,
    pub(super) directory: DirectoryId,
    /// Number of the file's entry in its directory.
    pub(super) entry: u32,
    pub(super) extents: Extents,
    /// Identifies the file's content in the page cache. Each truncation gives the content a new
    /// number, so that old cached pages are not found.
    pub(super) content: u64,
    /// Numbers of the changed pages that will be written together.
    pub(super) collected: Range<u64>,
    /// Disk requests in flight that write pages of the file.
    pub(super) in_flight: Vec<RequestId>,
    /// Byte offset at which a sequential read would continue. A read at this offset causes
    /// read-ahead.
    pub(super) next_read: u64,
    /// Whether the file's inode and name are on disk, or the model writes them with each change. If
    /// so, a `Sync` need not write them.
    pub(super) settled: bool,
}

#[derive(Debug)]
pub(super) struct Directories {
    all: Vec<Directory>,
    found: HashMap<StorePath, DirectoryId>,
    volumes: usize,
    next_directory: usize,
    next_file: usize,
}

impl Directories {
    pub(super) fn new(roots: Vec<Directory>) -> Self {
        let volumes = roots.len();
        Self { all: roots, found: HashMap::new(), volumes, next_directory: 0, next_file: 0 }
    }

    pub(super) fn get(&self, directory: DirectoryId) -> &Directory {
        &self.all[directory]
    }

    pub(super) fn get_mut(&mut self, directory: DirectoryId) -> &mut Directory {
        &mut self.all[directory]
    }

    pub(super) fn search(&self, directory: DirectoryId) -> Search {
        let Directory { ref blocks, entries, .. } = self.all[directory];
        Search { directory, blocks: 0..blocks.len(), entries }
    }

    pub(super) fn search_to(&self, directory: DirectoryId, entry: u32) -> Search {
        Search { directory, blocks: 0..self.all[directory].block_of(entry) + 1, entries: entry + 1 }
    }

    /// Returns which blocks and how many entries a search for the name in entry `entry` examines.
    /// The search starts where the last search ended, and wraps around.
    pub(super) fn look_up(&mut self, directory: DirectoryId, entry: u32) -> Search {
        let Search { blocks, entries, .. } = self.search(directory);
        let place = &mut self.all[directory];
        let from = std::mem::replace(&mut place.looked_up, entry);
        let (first, last) = (place.block_of(from), place.block_of(entry));
        let around = entry < from;
        let end = if around { last + blocks.end } else { last };
        let looked_at = if around { entry + entries - from } else { entry - from };
        Search { directory, blocks: first..end + 1, entries: looked_at + 1 }
    }

    pub(super) fn find(&self, path: &StorePath) -> Option<DirectoryId> {
        if path.as_str().is_empty() { Some(0) } else { self.found.get(path).copied() }
    }

    /// Returns the directory of a new file. Each disk has its own part of the root directory, and
    /// new root files go to the disks in turn.
    pub(super) fn for_file(&mut self, path: &StorePath) -> Option<DirectoryId> {
        let parent = path.parent();
        if !parent.as_str().is_empty() {
            return self.find(&parent);
        }
        self.next_file += 1;
        Some((self.next_file - 1) % self.volumes)
    }

    /// Returns the directory that receives the name of a new directory. Each disk has its own part
    /// of the root directory, and new directories go to the disks in turn.
    pub(super) fn for_directory(&mut self, path: &StorePath) -> Option<DirectoryId> {
        let parent = path.parent();
        if !parent.as_str().is_empty() {
            return self.find(&parent);
        }
        self.next_directory += 1;
        Some((self.next_directory - 1) % self.volumes)
    }

    pub(super) fn add(&mut self, path: StorePath, directory: Directory) {
        self.all.push(directory);
        self.found.insert(path, self.all.len() - 1);
    }
}
