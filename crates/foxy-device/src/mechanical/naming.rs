//! The simulated costs of operations on paths (open, create, remove, list). Such operations read
//! and write inode and directory blocks, or mark the blocks for a later write.

use super::Mechanical;
use super::aging::Aged;
use super::engine::Step;
use super::layout::{DiskFull, Extents};
use super::names::{Directory, DirectoryId, PlacedFile, Search};
use super::profile::MetadataMode;
use crate::io::{FileId, IoError, IoId, IoOp, StorePath, range_end};
use crate::memory::FileNumber;
use std::collections::VecDeque;

impl Mechanical {
    pub(super) fn open(&mut self, id: IoId, file: FileId, path: StorePath) {
        let (replaced, found) = (self.inner.number(file).ok(), self.inner.find(&path).ok());
        let done = self.apply(id, IoOp::Open { file, path });
        self.forget_unless_used(replaced);
        let Some((number, placed)) =
            found.and_then(|number| Some((number, self.files.get(&number)?)))
        else {
            return self.finish(done);
        };
        let (volume, inode) =
            (placed.volume, self.volumes[placed.volume].layout.inode_block(placed.inode));
        let mut steps = self.look_up(number);
        self.names.insert(number, ());
        steps.push_back(Step::Need(inode));
        self.begin(done, volume, steps);
    }

    pub(super) fn create(&mut self, id: IoId, file: FileId, path: StorePath, size: u64) {
        let op = |path| IoOp::Create { file, path, size };
        let replaced = self.inner.number(file).ok();
        let existing = self.inner.find(&path);
        let placed = match (existing, range_end(0, size)) {
            (Ok(number), Ok(_)) => self.truncate(number, size).map(|()| Some(number)),
            (Err(IoError::NotFound), Ok(_)) => match self.directories.for_file(&path) {
                Some(directory) => self.place_file(directory, size).map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        };
        match placed {
            Err(DiskFull) => {
                // Remove the file, because a `Create` that does not fit on the disk must not leave
                // a file.
                self.apply(id, IoOp::Remove { path: path.clone() });
                self.forget_unless_used(existing.ok());
                self.fail(id, op(path), IoError::NoSpace);
            }
            Ok(placed) => {
                let done = self.apply(id, op(path));
                self.forget_unless_used(replaced);
                let Some(number) = placed else { return self.finish(done) };
                let steps =
                    if existing.is_ok() { self.truncation(number) } else { self.creation(number) };
                self.begin(done, self.files[&number].volume, steps);
            }
        }
    }

    pub(super) fn remove(&mut self, id: IoId, path: StorePath) {
        let found = self.inner.find(&path).ok();
        let done = self.apply(id, IoOp::Remove { path });
        let Some(placed) = found.and_then(|number| self.files.get(&number)) else {
            return self.finish(done);
        };
        let (volume, directory, entry) = (placed.volume, placed.directory, placed.entry);
        let inode = self.volumes[volume].layout.inode_block(placed.inode);
        let block = self.directories.get(directory).entry_sector(entry);
        let mut steps = found.map(|number| self.look_up(number)).unwrap_or_default();
        steps.append(&mut self.search(self.directories.search_to(directory, entry), block));
        self.directories.get_mut(directory).give_entry(entry);
        self.forget_unless_used(found);
        self.change_directory(directory);
        self.change_block(volume, inode);
        self.read_then_write(volume, inode, &[block], &mut steps);
        self.begin(done, volume, steps);
    }

    pub(super) fn make_directory(&mut self, id: IoId, path: StorePath) {
        let free = self.inner.find(&path) == Err(IoError::NotFound)
            && self.directories.find(&path).is_none();
        let Some(parent) = free.then(|| self.directories.for_directory(&path)).flatten() else {
            let done = self.apply(id, IoOp::MakeDir { path });
            return self.finish(done);
        };
        let volume = self.directories.get(parent).volume;
        let layout = &mut self.volumes[volume].layout;
        let entry = self.directories.get_mut(parent).take_entry(layout);
        let Ok((entry, made)) =
            entry.and_then(|entry| Ok((entry, Directory::new(volume, layout)?)))
        else {
            return self.fail(id, IoOp::MakeDir { path }, IoError::NoSpace);
        };
        let (inode, first_block) = (layout.inode_block(made.inode), made.sector(0));
        let done = self.apply(id, IoOp::MakeDir { path: path.clone() });
        self.directories.add(path, made);
        self.change_directory(parent);
        let block = self.directories.get(parent).entry_sector(entry);
        let mut steps = self.search(self.directories.search(parent), block);
        self.read_then_write(volume, inode, &[inode, first_block, block], &mut steps);
        self.begin(done, volume, steps);
    }

    pub(super) fn list(&mut self, id: IoId, path: StorePath) {
        let found = self.directories.find(&path);
        let done = self.apply(id, IoOp::List { path });
        let Some(directory) = found else { return self.finish(done) };
        let volume = self.directories.get(directory).volume;
        let whole = Step::Search(self.directories.search(directory));
        self.begin(done, volume, VecDeque::from([whole]));
    }

    /// Frees the space of a file that has no name and is not open.
    pub(super) fn forget_unless_used(&mut self, number: Option<FileNumber>) {
        let Some(number) = number.filter(|&number| self.inner.size_of(number).is_none()) else {
            return;
        };
        if let Some(mut placed) = self.files.remove(&number) {
            self.aging.remove(Aged::File(number));
            let layout = &mut self.volumes[placed.volume].layout;
            layout.release(&mut placed.extents);
            layout.give_inode(placed.inode);
        }
    }

    /// Discards the content of an existing file and assigns disk space for `size` bytes.
    fn truncate(&mut self, number: FileNumber, size: u64) -> Result<(), DiskFull> {
        let content = self.next_number();
        self.aging.remove(Aged::File(number));
        let placed = self.files.get_mut(&number).expect("a file has a place");
        placed.collected = 0..0;
        placed.content = content;
        placed.next_read = 0;
        let layout = &mut self.volumes[placed.volume].layout;
        layout.release(&mut placed.extents);
        layout.preallocate(&mut placed.extents, placed.inode.group, size)
    }

    /// Assigns an inode, a directory entry and disk space for `size` bytes to the file that is
    /// created next.
    fn place_file(&mut self, directory: DirectoryId, size: u64) -> Result<FileNumber, DiskFull> {
        let content = self.next_number();
        let parent = self.directories.get_mut(directory);
        let volume = parent.volume;
        let layout = &mut self.volumes[volume].layout;
        let inode = layout.take_inode(parent.inode.group)?;
        let mut extents = Extents::default();
        let placed = layout.preallocate(&mut extents, inode.group, size);
        let entry = placed.and_then(|()| parent.take_entry(layout)).inspect_err(|_| {
            layout.release(&mut extents);
            layout.give_inode(inode);
        })?;
        let settled = self.profile.system.metadata == MetadataMode::Synchronous;
        let placed = PlacedFile {
            volume,
            inode,
            directory,
            entry,
            extents,
            content,
            collected: 0..0,
            in_flight: Vec::new(),
            next_read: 0,
            settled,
        };
        let number = self.inner.next_number();
        self.files.insert(number, placed);
        Ok(number)
    }

    fn creation(&mut self, number: FileNumber) -> VecDeque<Step> {
        let placed = &self.files[&number];
        let (volume, directory, entry) = (placed.volume, placed.directory, placed.entry);
        let inode = self.volumes[volume].layout.inode_block(placed.inode);
        let block = self.directories.get(directory).entry_sector(entry);
        let whole = || self.search(self.directories.search(directory), block);
        let (mut steps, mut room) = (whole(), whole());
        steps.append(&mut room);
        self.names.insert(number, ());
        self.change_directory(directory);
        self.read_then_write(volume, inode, &[inode, block], &mut steps);
        steps
    }

    fn truncation(&mut self, number: FileNumber) -> VecDeque<Step> {
        let placed = &self.files[&number];
        let volume = placed.volume;
        let inode = self.volumes[volume].layout.inode_block(placed.inode);
        let mut steps = self.look_up(number);
        self.names.insert(number, ());
        self.read_then_write(volume, inode, &[inode], &mut steps);
        steps
    }

    fn look_up(&mut self, number: FileNumber) -> VecDeque<Step> {
        if self.names.get(number).is_some() {
            return VecDeque::new();
        }
        let PlacedFile { directory, entry, .. } = self.files[&number];
        let block = self.directories.get(directory).entry_sector(entry);
        let search = self.directories.look_up(directory, entry);
        self.search(search, block)
    }

    fn search(&self, search: Search, block: u64) -> VecDeque<Step> {
        let looks = self.profile.system.search_rate > 0;
        looks.then_some(Step::Search(search)).into_iter().chain([Step::Need(block)]).collect()
    }

    /// Marks blocks for a later write after a name was added or removed: the directory's inode, and
    /// the bitmaps of its cylinder group.
    fn change_directory(&mut self, directory: DirectoryId) {
        let Directory { volume, inode, .. } = *self.directories.get(directory);
        let layout = &self.volumes[volume].layout;
        let blocks = [layout.inode_block(inode), layout.group_block(inode.group)];
        for block in blocks {
            self.change_block(volume, block);
        }
    }

    /// Adds steps to an operation. The first step reads the block of an inode, unless the block is
    /// cached. With synchronous metadata, further steps write the blocks `writes` one after
    /// another. Otherwise these blocks are marked for a later write.
    fn read_then_write(
        &mut self,
        volume: usize,
        inode: u64,
        writes: &[u64],
        steps: &mut VecDeque<Step>,
    ) {
        steps.push_back(Step::Need(inode));
        match self.profile.system.metadata {
            MetadataMode::Synchronous => steps.extend(writes.iter().copied().map(Step::WriteBlock)),
            MetadataMode::Asynchronous => {
                writes.iter().for_each(|&block| self.change_block(volume, block));
                steps.push_back(Step::Hold);
            }
        }
    }
}
