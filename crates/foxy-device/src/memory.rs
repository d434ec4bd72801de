//! A device in memory: a whole file tree, every operation finished at once, nothing lost while it lives.
//! Faults and crashes are the business of decorators and of the torture tests.

use crate::io::{
    Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath, range_end,
};
use crate::park::{BlockingDevice, Parker, Waker};
use foxy_base::Instant;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The device.
#[derive(Debug, Default)]
pub struct Memory {
    names: BTreeMap<String, u64>,
    directories: BTreeSet<String>,
    files: HashMap<u64, Vec<u8>>,
    open: HashMap<FileId, u64>,
    created: u64,
    finished: Vec<IoDone>,
    parker: Parker,
}

impl Memory {
    /// Bytes in all files that have a name.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.names.values().filter_map(|inode| self.files.get(inode)).map(|data| data.len() as u64).sum()
    }

    /// Lets go of every open file, as the end of a process does.
    pub fn close_all(&mut self) {
        self.open.clear();
        self.finished.clear();
        self.drop_unnamed();
    }

    fn drop_unnamed(&mut self) {
        let named: BTreeSet<u64> = self.names.values().chain(self.open.values()).copied().collect();
        self.files.retain(|inode, _| named.contains(inode));
    }

    fn carry_out(&mut self, op: IoOp) -> (Result<IoOutput, IoError>, Option<crate::IoBuffer>) {
        match op {
            IoOp::Open { file, path } => (self.open_file(file, &path), None),
            IoOp::Create { file, path, size } => (self.create(file, &path, size), None),
            IoOp::Close { file } => {
                let result = self.open.remove(&file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen);
                self.drop_unnamed();
                (result, None)
            }
            IoOp::Read { file, offset, mut buffer } => {
                let result = self.data(file).and_then(|data| {
                    range_end(offset, buffer.len() as u64)?;
                    let start = usize::try_from(offset).map_or(data.len(), |offset| offset.min(data.len()));
                    let count = buffer.len().min(data.len() - start);
                    buffer.as_mut()[..count].copy_from_slice(&data[start..start + count]);
                    Ok(IoOutput::Moved { count })
                });
                (result, Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                let result = self.data(file).and_then(|data| {
                    range_end(offset, buffer.len() as u64)?;
                    let start = usize::try_from(offset).map_err(|_| IoError::NoSpace)?;
                    let end = start + buffer.len();
                    data.resize(data.len().max(end), 0);
                    data[start..end].copy_from_slice(buffer.as_ref());
                    Ok(IoOutput::Moved { count: buffer.len() })
                });
                (result, Some(buffer))
            }
            IoOp::Sync { file } => (self.data(file).map(|_| IoOutput::Done), None),
            IoOp::Remove { path } => {
                let result =
                    self.names.remove(path.as_str()).map(|_| IoOutput::Done).ok_or(IoError::NotFound);
                self.drop_unnamed();
                (result, None)
            }
            IoOp::MakeDir { path } => (self.make_directory(&path), None),
            IoOp::List { path } => (self.list(path.as_str()), None),
            IoOp::Trim { file, offset, length } => (self.trim(file, offset, length), None),
        }
    }

    fn data(&mut self, file: FileId) -> Result<&mut Vec<u8>, IoError> {
        let inode = self.open.get(&file).ok_or(IoError::NotOpen)?;
        self.files.get_mut(inode).ok_or(IoError::NotOpen)
    }

    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.directories.contains(path)
    }

    fn parent_exists(&self, path: &str) -> bool {
        path.rsplit_once('/').is_none_or(|(parent, _)| self.is_directory(parent))
    }

    fn open_file(&mut self, file: FileId, path: &StorePath) -> Result<IoOutput, IoError> {
        let inode = *self.names.get(path.as_str()).ok_or(IoError::NotFound)?;
        self.open.insert(file, inode);
        Ok(IoOutput::Opened { size: self.data(file)?.len() as u64 })
    }

    fn create(&mut self, file: FileId, path: &StorePath, size: u64) -> Result<IoOutput, IoError> {
        if !self.parent_exists(path.as_str()) {
            return Err(IoError::NotFound);
        }
        let size = usize::try_from(size).map_err(|_| IoError::NoSpace)?;
        let created = &mut self.created;
        let inode = *self.names.entry(path.as_str().to_owned()).or_insert_with(|| {
            *created += 1;
            *created
        });
        self.files.insert(inode, vec![0; size]);
        self.open.insert(file, inode);
        Ok(IoOutput::Done)
    }

    fn make_directory(&mut self, path: &StorePath) -> Result<IoOutput, IoError> {
        if !self.parent_exists(path.as_str()) {
            return Err(IoError::NotFound);
        }
        self.directories.insert(path.as_str().to_owned());
        Ok(IoOutput::Done)
    }

    fn list(&self, path: &str) -> Result<IoOutput, IoError> {
        if !self.is_directory(path) {
            return Err(IoError::NotFound);
        }
        let child = |full: &str| {
            let (parent, name) = full.rsplit_once('/').unwrap_or(("", full));
            (parent == path).then(|| name.to_owned())
        };
        let directories = self.directories.iter().filter_map(|full| child(full));
        let mut entries: Vec<DirectoryEntry> =
            directories.map(|name| DirectoryEntry { name, is_directory: true, size: 0 }).collect();
        for (full, inode) in &self.names {
            let size = self.files.get(inode).map_or(0, |data| data.len() as u64);
            entries.extend(child(full).map(|name| DirectoryEntry { name, is_directory: false, size }));
        }
        entries.sort();
        Ok(IoOutput::Listing(entries))
    }

    fn trim(&mut self, file: FileId, offset: u64, length: u64) -> Result<IoOutput, IoError> {
        let data = self.data(file)?;
        let bound = |at: u64| usize::try_from(at).map_or(data.len(), |at| at.min(data.len()));
        let (start, end) = (bound(offset), bound(offset.saturating_add(length)));
        data[start..end].fill(0);
        Ok(IoOutput::Done)
    }
}

impl Device for Memory {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        let (result, buffer) = self.carry_out(op);
        self.finished.push(IoDone { id, result, buffer });
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.finished);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.finished.len()
    }
}

impl BlockingDevice for Memory {
    fn wait(&mut self, timeout: Option<Duration>) {
        if self.finished.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}
