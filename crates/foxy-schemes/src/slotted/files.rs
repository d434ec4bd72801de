//! The data files, which contain the records. A file is opened at its first use. The layout
//! abandons a file that has no more records, and the file is then removed. A file with a single
//! record is closed after each use.

use super::Slotted;
use super::layout::FileKind;
use super::work::Job;
use foxy_base::Instant;
use foxy_device::{FileId, IoBuffer, IoError, IoOp, StorePath};
use foxy_store::contract::Outbox;
use std::collections::{HashMap, HashSet};

/// A read, write or sync of a data file. It waits if the file is not open yet.
#[derive(Debug)]
pub enum Access {
    /// Reads `length` bytes of the data file, from byte `offset` on.
    Read {
        offset: u64,
        length: usize,
    },
    Write {
        offset: u64,
        buffer: IoBuffer,
    },
    Sync,
}

#[derive(Debug)]
struct OpenFile {
    id: FileId,
    is_open: bool,
    /// Whether the storage scheme already created the folder of the file, because it was missing.
    has_new_folder: bool,
    waiting: Vec<(Access, Job)>,
    in_flight: u32,
}

#[derive(Debug, Default)]
pub struct Files {
    open: HashMap<u64, OpenFile>,
    /// Numbers of the data files that exist on disk.
    existing: HashSet<u64>,
    /// Numbers of the files that were written since their last sync.
    dirty: HashSet<u64>,
    free_ids: Vec<u32>,
    next_id: u32,
}

impl Files {
    /// Notes that data file number `file` exists, from an earlier run of the store.
    pub fn adopt(&mut self, file: u64) {
        self.existing.insert(file);
    }

    pub fn exists(&self, file: u64) -> bool {
        self.existing.contains(&file)
    }

    /// Returns the number of a file that was written since its last sync. The caller must sync this
    /// file now.
    pub fn take_dirty(&mut self) -> Option<u64> {
        let file = self.dirty.iter().next().copied()?;
        self.dirty.take(&file)
    }

    /// Returns the identifier of a data file that is open.
    pub fn open_id(&self, file: u64) -> Option<FileId> {
        self.open.get(&file).filter(|open| open.is_open).map(|open| open.id)
    }

    fn take_id(&mut self) -> FileId {
        FileId(self.free_ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id
        }))
    }
}

impl Slotted {
    pub(super) fn directory(&self) -> StorePath {
        StorePath::new(format!("{}.d", self.plan.name))
    }

    pub(super) fn path_of(&self, file: u64) -> StorePath {
        let directory = self.directory();
        match self.layout.folder_number(file) {
            None => StorePath::new(format!("{}/{file:x}", directory.as_str())),
            Some(number) => {
                let folder = self.settings.ufs_mapping.folder(number);
                StorePath::new(format!("{}/{}/{file:x}", directory.as_str(), folder.as_str()))
            }
        }
    }

    /// Reads or writes a data file. Opens the file first if needed. `job` says what to do with the
    /// result.
    pub(super) fn access(&mut self, file: u64, access: Access, job: Job, out: &mut Outbox) {
        if let Some(open) = self.files.open.get_mut(&file) {
            if open.is_open {
                open.in_flight += 1;
                let id = open.id;
                return self.submit_access(file, id, access, job, out);
            }
            return open.waiting.push((access, job));
        }
        let id = self.files.take_id();
        let open = OpenFile {
            id,
            is_open: false,
            has_new_folder: false,
            waiting: vec![(access, job)],
            in_flight: 0,
        };
        self.files.open.insert(file, open);
        if self.files.exists(file) {
            let op = IoOp::Open { file: id, path: self.path_of(file) };
            self.submit(op, Job::OpenData(file), out);
        } else {
            self.create_data(file, id, out);
        }
    }

    fn create_data(&mut self, file: u64, id: FileId, out: &mut Outbox) {
        let size = match self.layout.kind(file) {
            FileKind::Shared(size) => size,
            FileKind::Single => 0,
        };
        let op = IoOp::Create { file: id, path: self.path_of(file), size };
        self.submit(op, Job::OpenData(file), out);
    }

    /// Creates the missing parent folders in `left`, from last to first. Then creates the file.
    pub(super) fn make_folders(&mut self, file: u64, mut left: Vec<StorePath>, out: &mut Outbox) {
        match left.pop() {
            Some(path) => self.submit(IoOp::MakeDir { path }, Job::MakeFolder(file, left), out),
            None => {
                if let Some(open) = self.files.open.get(&file) {
                    self.create_data(file, open.id, out);
                }
            }
        }
    }

    fn submit_access(&mut self, file: u64, id: FileId, access: Access, job: Job, out: &mut Outbox) {
        let op = match access {
            Access::Read { offset, length } => {
                IoOp::Read { file: id, offset, buffer: IoBuffer::zeroed(length) }
            }
            Access::Write { offset, buffer } => {
                self.files.dirty.insert(file);
                IoOp::Write { file: id, offset, buffer }
            }
            Access::Sync => IoOp::Sync { file: id },
        };
        self.submit(op, job, out);
    }

    /// Handles the result of opening a file. After a failure, all accesses that wait for the file
    /// fail.
    pub(super) fn data_opened(
        &mut self,
        file: u64,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        let lacks_folder = result == Err(IoError::NotFound)
            && !self.files.exists(file)
            && self.layout.folder_number(file).is_some();
        let path = self.path_of(file);
        let Some(open) = self.files.open.get_mut(&file) else { return };
        if lacks_folder && !open.has_new_folder {
            open.has_new_folder = true;
            let folder = path.parent();
            let above = folder.parent();
            return self.make_folders(file, vec![folder, above], out);
        }
        let waiting = std::mem::take(&mut open.waiting);
        let id = open.id;
        match result {
            Ok(()) => {
                open.is_open = true;
                open.in_flight += u32::try_from(waiting.len()).unwrap_or(u32::MAX);
                self.files.existing.insert(file);
                for (access, job) in waiting {
                    self.submit_access(file, id, access, job, out);
                }
            }
            Err(error) => {
                self.files.open.remove(&file);
                self.files.free_ids.push(id.0);
                for (_, job) in waiting {
                    self.failed(job, error, now, out);
                }
            }
        }
    }

    /// Notes that an access finished. Closes the file after its last access if it is abandoned or
    /// has a single record.
    pub(super) fn accessed(&mut self, file: u64, out: &mut Outbox) {
        let is_abandoned = !self.files.exists(file);
        let Some(open) = self.files.open.get_mut(&file) else { return };
        open.in_flight -= 1;
        if open.in_flight == 0 && (is_abandoned || self.layout.kind(file) == FileKind::Single) {
            self.close_data(file, out);
        }
    }

    fn close_data(&mut self, file: u64, out: &mut Outbox) {
        if let Some(open) = self.files.open.remove(&file) {
            self.submit(IoOp::Close { file: open.id }, Job::Close(open.id), out);
        }
    }

    pub(super) fn data_closed(&mut self, id: FileId) {
        self.files.free_ids.push(id.0);
    }

    /// Removes the files that the layout abandoned. The space of a file becomes free when it is
    /// removed. Returns true if the space of a file became free at once, because the file was never
    /// created on disk.
    pub(super) fn remove_abandoned(&mut self, out: &mut Outbox) -> bool {
        let mut gone_at_once = false;
        for file in self.layout.take_abandoned() {
            self.files.dirty.remove(&file);
            if self.files.existing.remove(&file) {
                if self
                    .files
                    .open
                    .get(&file)
                    .is_some_and(|open| open.is_open && open.in_flight == 0)
                {
                    self.close_data(file, out);
                }
                self.submit(IoOp::Remove { path: self.path_of(file) }, Job::Remove(file), out);
            } else {
                self.layout.removed(file);
                gone_at_once = true;
            }
        }
        gone_at_once
    }

    pub(super) fn close_all_data(&mut self, out: &mut Outbox) {
        let open: Vec<u64> = self.files.open.keys().copied().collect();
        for file in open {
            self.close_data(file, out);
        }
    }
}
