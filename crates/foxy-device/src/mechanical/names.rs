//! Which directories and files there are on the modelled disks, and what of them waits to be written. It mirrors the
//! tree that holds the content, and adds places.

use super::extents::Extents;
use super::layout::{DiskFull, Inode, Layout, sector_of};
use super::queue::RequestId;
use crate::io::StorePath;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of a directory entry, for the names caches give files.
const ENTRY: u32 = 20;

/// Names a directory; they are never removed.
pub(super) type DirectoryId = usize;

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) volume: usize,
    pub(super) inode: Inode,
    /// First fragments of its blocks.
    blocks: Vec<u32>,
    /// Entries in its last block.
    used: u32,
    /// Blocks in which entries were freed, once for each.
    free: Vec<u32>,
}

impl Directory {
    pub(super) fn new(volume: usize, layout: &mut Layout) -> Result<Self, DiskFull> {
        let inode = layout.take_directory_inode()?;
        match layout.take_block(inode.group) {
            Ok(block) => Ok(Self { volume, inode, blocks: vec![block], used: 0, free: Vec::new() }),
            Err(full) => {
                layout.give_inode(inode);
                Err(full)
            }
        }
    }

    /// Finds room for one more name, and gives the sector of the block it is in.
    pub(super) fn take_entry(&mut self, layout: &mut Layout) -> Result<u32, DiskFull> {
        if let Some(block) = self.free.pop() {
            return Ok(block);
        }
        if self.used == layout.page_fragments() * 1024 / ENTRY {
            self.blocks.push(layout.take_block(self.inode.group)?);
            self.used = 0;
        }
        self.used += 1;
        Ok(self.blocks[self.blocks.len() - 1])
    }

    pub(super) fn give_entry(&mut self, block: u32) {
        self.free.push(block);
    }

    /// The sector of its first block.
    pub(super) fn first_block(&self) -> u64 {
        sector_of(self.blocks[0])
    }

    /// The sectors of its blocks.
    pub(super) fn block_sectors(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().map(|&block| sector_of(block))
    }
}

/// A file's place, and its writes on the way.
#[derive(Debug)]
pub(super) struct PlacedFile {
    pub(super) volume: usize,
    pub(super) inode: Inode,
    pub(super) directory: DirectoryId,
    /// The directory block with its name, by its first fragment.
    pub(super) entry: u32,
    pub(super) extents: Extents,
    /// Names its content in the page cache; another one after each truncation.
    pub(super) content: u64,
    /// Pages collected for one write.
    pub(super) collected: Range<u64>,
    /// Writes of it under way.
    pub(super) under_way: Vec<RequestId>,
    /// Where a read would go on from the last one, in bytes.
    pub(super) next_read: u64,
    /// Its inode and name are on the disk as far as a `Sync` is to make them.
    pub(super) settled: bool,
}

impl PlacedFile {
    pub(super) fn new(
        volume: usize,
        directory: DirectoryId,
        inode: Inode,
        entry: u32,
        extents: Extents,
        content: u64,
        settled: bool,
    ) -> Self {
        let (under_way, next_read) = (Vec::new(), 0);
        Self {
            volume,
            inode,
            directory,
            entry,
            extents,
            content,
            collected: 0..0,
            under_way,
            next_read,
            settled,
        }
    }
}

/// The directories by path.
#[derive(Debug)]
pub(super) struct Directories {
    all: Vec<Directory>,
    found: HashMap<StorePath, DirectoryId>,
    volumes: usize,
    next_directory: usize,
    next_file: usize,
}

impl Directories {
    /// One root directory on each volume.
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

    pub(super) fn find(&self, path: &StorePath) -> Option<DirectoryId> {
        if path.as_str().is_empty() { Some(0) } else { self.found.get(path).copied() }
    }

    /// The directory a new file's name goes to: in the root, that of one volume after the other.
    pub(super) fn for_file(&mut self, path: &StorePath) -> Option<DirectoryId> {
        let parent = path.parent();
        if !parent.as_str().is_empty() {
            return self.find(&parent);
        }
        self.next_file += 1;
        Some((self.next_file - 1) % self.volumes)
    }

    /// The directory a new directory's name goes to: in the root, that of one volume after the other.
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
