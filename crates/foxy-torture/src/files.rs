//! The files of the simulated disk: their current content, and the content after a power failure.
//! This module knows no operations and no time.
//!
//! A write is volatile (lost if the power fails) until a sync succeeds that started after the write
//! completed. The name of a new file is volatile until a sync of the file. After a power failure, a
//! removed or replaced file may come back with its durable content.

use foxy_base::Random;
use foxy_device::DirectoryEntry;
use std::collections::{BTreeMap, BTreeSet};

/// Size in bytes of a sector. A power failure keeps or loses a sector of a volatile write as a
/// whole.
const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
struct Inode {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Whether the file still has a name.
    linked: bool,
    /// Whether the file's name certainly survives a power failure.
    named: bool,
    unsynced: BTreeMap<u64, UnsyncedFile>,
}

#[derive(Clone, Debug)]
struct UnsyncedFile {
    offset: usize,
    bytes: Vec<u8>,
    completed: bool,
    /// Whether a sync that covered this write failed. Linux then drops the write, so no later sync
    /// makes it durable.
    given_up: bool,
}

/// All directories and files of the simulated disk, by name.
#[derive(Debug, Default)]
pub(crate) struct Files {
    names: BTreeMap<String, u64>,
    directories: BTreeSet<String>,
    inodes: BTreeMap<u64, Inode>,
    ghosts: BTreeMap<String, Vec<u8>>,
    next_inode: u64,
    next_write: u64,
    bytes: u64,
}

impl Files {
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn find(&self, path: &str) -> Option<u64> {
        self.names.get(path).copied()
    }

    pub(crate) fn size(&self, inode: u64) -> u64 {
        self.inodes.get(&inode).map_or(0, |inode| inode.current.len() as u64)
    }

    pub(crate) fn has_directory(&self, path: &str) -> bool {
        path.is_empty() || self.directories.contains(path)
    }

    pub(crate) fn has_parent(&self, path: &str) -> bool {
        path.rsplit_once('/').is_none_or(|(parent, _)| self.has_directory(parent))
    }

    pub(crate) fn make_directory(&mut self, path: &str) {
        self.directories.insert(path.to_owned());
    }

    /// Creates a file of `size` zero bytes. Replaces an earlier file of that name. If the earlier
    /// file was durable, it may come back after a power failure.
    pub(crate) fn create(&mut self, path: &str, size: usize) -> u64 {
        self.unlink(path);
        self.next_inode += 1;
        let inode = Inode {
            current: vec![0; size],
            durable: vec![0; size],
            linked: true,
            ..Inode::default()
        };
        self.bytes += size as u64;
        self.inodes.insert(self.next_inode, inode);
        self.names.insert(path.to_owned(), self.next_inode);
        self.next_inode
    }

    /// Removes a name. Processes with the file open can still use it. Returns whether the name
    /// existed.
    pub(crate) fn unlink(&mut self, path: &str) -> bool {
        let Some(number) = self.names.remove(path) else { return false };
        if let Some(inode) = self.inodes.get_mut(&number) {
            inode.linked = false;
            self.bytes -= inode.current.len() as u64;
            if inode.named {
                self.ghosts.insert(path.to_owned(), inode.durable.clone());
            }
        }
        true
    }

    pub(crate) fn list(&self, directory: &str) -> Vec<DirectoryEntry> {
        let within = |path: &str| -> Option<String> {
            let rest = if directory.is_empty() {
                path
            } else {
                path.strip_prefix(directory)?.strip_prefix('/')?
            };
            (!rest.contains('/')).then(|| rest.to_owned())
        };
        let files = self.names.iter().filter_map(|(path, &inode)| {
            let size = self.size(inode);
            within(path).map(|name| DirectoryEntry { name, is_directory: false, size })
        });
        let directories = self.directories.iter().filter_map(|path| {
            within(path).map(|name| DirectoryEntry { name, is_directory: true, size: 0 })
        });
        let mut entries: Vec<_> = files.chain(directories).collect();
        entries.sort();
        entries
    }

    /// Fills `out` from the file. Returns the number of bytes read.
    pub(crate) fn read(&self, inode: u64, offset: u64, out: &mut [u8]) -> usize {
        let Some(file) = self.inodes.get(&inode) else { return 0 };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.current.len());
        let count = out.len().min(file.current.len() - start);
        out[..count].copy_from_slice(&file.current[start..start + count]);
        count
    }

    /// Writes to the system's cache; the write is not durable. Returns the number of the write,
    /// which is unique on the disk.
    pub(crate) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> u64 {
        self.next_write += 1;
        let Some(file) = self.inodes.get_mut(&inode) else { return self.next_write };
        let offset = usize::try_from(offset).unwrap_or(0);
        let before = file.current.len();
        put(&mut file.current, offset, bytes);
        if file.linked {
            self.bytes += (file.current.len() - before) as u64;
        }
        let unsynced =
            UnsyncedFile { offset, bytes: bytes.to_vec(), completed: false, given_up: false };
        file.unsynced.insert(self.next_write, unsynced);
        self.next_write
    }

    /// Notes that the process has received the completion of the write. A later sync then makes it
    /// durable.
    pub(crate) fn complete(&mut self, inode: u64, write: u64) {
        let file = self.inodes.get_mut(&inode);
        if let Some(unsynced) = file.and_then(|file| file.unsynced.get_mut(&write)) {
            unsynced.completed = true;
        }
    }

    /// Returns the numbers of the writes that a sync must make durable if it starts now.
    pub(crate) fn completed_writes(&self, inode: u64) -> Vec<u64> {
        let Some(file) = self.inodes.get(&inode) else { return Vec::new() };
        file.unsynced
            .iter()
            .filter(|(_, write)| write.completed)
            .map(|(&number, _)| number)
            .collect()
    }

    pub(crate) fn make_durable(&mut self, inode: u64, writes: &[u64]) {
        let Some(file) = self.inodes.get_mut(&inode) else { return };
        file.named = true;
        for number in writes {
            if file.unsynced.get(number).is_some_and(|write| !write.given_up)
                && let Some(write) = file.unsynced.remove(number)
            {
                put(&mut file.durable, write.offset, &write.bytes);
                for (_, older) in file.unsynced.range_mut(..number) {
                    older.overlay(&write);
                }
            }
        }
    }

    /// Makes the writes of a random file durable without a sync, as operating systems do after some
    /// time.
    pub(crate) fn write_back(&mut self, random: &mut Random) {
        let which = random.below(self.inodes.len() as u64);
        let number =
            usize::try_from(which).ok().and_then(|which| self.inodes.keys().nth(which).copied());
        if let Some(number) = number {
            let writes: Vec<u64> = self.inodes[&number].unsynced.keys().copied().collect();
            self.make_durable(number, &writes);
        }
    }

    pub(crate) fn fail_sync(&mut self, inode: u64, writes: &[u64]) {
        let Some(file) = self.inodes.get_mut(&inode) else { return };
        for number in writes {
            if let Some(write) = file.unsynced.get_mut(number) {
                write.given_up = true;
            }
        }
    }

    /// Drops files without a name. The caller must have ended the process, so that no file is open.
    pub(crate) fn forget_unlinked(&mut self) {
        self.inodes.retain(|_, inode| inode.linked);
    }

    pub(crate) fn power_fails(&mut self, random: &mut Random) {
        for (path, content) in std::mem::take(&mut self.ghosts) {
            let taken = self
                .names
                .get(&path)
                .and_then(|number| self.inodes.get(number))
                .is_some_and(|i| i.named);
            if !taken && random.chance(0.5) {
                let number = self.create(&path, 0);
                let back = self.inodes.entry(number).or_default();
                (back.durable, back.named) = (content, true);
            }
        }
        self.forget_unlinked();
        let inodes = &mut self.inodes;
        self.names.retain(|_, number| {
            let kept = inodes.get(number).is_some_and(|inode| inode.named) || random.chance(0.5);
            if !kept {
                inodes.remove(number);
            }
            kept
        });
        for inode in self.inodes.values_mut() {
            inode.lose_volatile(random);
        }
        self.bytes = self.inodes.values().map(|inode| inode.current.len() as u64).sum();
    }
}

impl UnsyncedFile {
    /// Replaces the bytes of this write that the write `newer` overwrites. The system's cache keeps
    /// only the newest bytes, so a sync of the older write cannot store older bytes.
    fn overlay(&mut self, newer: &Self) {
        let start = self.offset.max(newer.offset);
        let end = (self.offset + self.bytes.len()).min(newer.offset + newer.bytes.len());
        if start < end {
            let bytes = &newer.bytes[start - newer.offset..end - newer.offset];
            self.bytes[start - self.offset..end - self.offset].copy_from_slice(bytes);
        }
    }
}

impl Inode {
    /// Simulates a power failure: keeps, loses or tears each write without a sync. A torn write
    /// loses some of its sectors.
    fn lose_volatile(&mut self, random: &mut Random) {
        if !self.named && random.chance(0.3) {
            let kept = random.below(self.durable.len() as u64 + 1);
            self.durable.truncate(usize::try_from(kept).unwrap_or(0));
        }
        self.named = true;
        for write in std::mem::take(&mut self.unsynced).into_values() {
            match random.below(3) {
                0 => {}
                1 => put(&mut self.durable, write.offset, &write.bytes),
                _ => {
                    let mut at = 0;
                    while at < write.bytes.len() {
                        let boundary = SECTOR - (write.offset + at) % SECTOR;
                        let end = (at + boundary).min(write.bytes.len());
                        if random.chance(0.5) {
                            put(&mut self.durable, write.offset + at, &write.bytes[at..end]);
                        }
                        at = end;
                    }
                }
            }
        }
        self.current.clone_from(&self.durable);
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
