//! File names and files of the device in memory: their current state, their durable state, and the
//! effect of a crash.

use super::file::{CrashPolicy, MemoryFile};
use crate::io::{DirectoryEntry, IoError, StorePath};
use foxy_base::Random;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Identifies a file while it has a name or is open.
pub(crate) type FileNumber = u64;

/// Maximum number of removed names that a crash can bring back. Limits the memory for removed
/// files.
const REMOVED_LIMIT: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Directory,
    File(FileNumber),
}

impl Node {
    const fn file(self) -> Option<FileNumber> {
        match self {
            Self::Directory => None,
            Self::File(number) => Some(number),
        }
    }
}

/// The names and files of the device in memory.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    names: BTreeMap<StorePath, Node>,
    /// Names that survive every crash, with their files. Directories are not in this map, because
    /// they are always durable.
    durable: BTreeMap<StorePath, FileNumber>,
    /// Names that were removed and that a crash can bring back, oldest first.
    removed: VecDeque<StorePath>,
    files: BTreeMap<FileNumber, MemoryFile>,
    next: FileNumber,
    /// Limit in bytes of the changes to one file that a crash can undo. With 0, every change is
    /// durable at once.
    pub(crate) limit: u64,
}

impl Tree {
    pub(crate) fn new(limit: u64) -> Self {
        let (names, durable, files) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { names, durable, removed: VecDeque::new(), files, next: 0, limit }
    }

    pub(crate) fn file(&self, number: FileNumber) -> &MemoryFile {
        self.files.get(&number).expect("a referenced file exists")
    }

    pub(crate) fn file_mut(&mut self, number: FileNumber) -> &mut MemoryFile {
        self.files.get_mut(&number).expect("a referenced file exists")
    }

    pub(crate) const fn next_number(&self) -> FileNumber {
        self.next
    }

    /// Returns the size of a file in bytes, or `None` if the file no longer exists.
    pub(crate) fn size_of(&self, number: FileNumber) -> Option<u64> {
        self.files.get(&number).map(|file| file.current().size())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.names
            .values()
            .filter_map(|node| node.file())
            .map(|number| self.file(number).current().size())
            .sum()
    }

    pub(crate) fn find(&self, path: &StorePath) -> Result<FileNumber, IoError> {
        match self.node(path)? {
            Some(Node::File(number)) => Ok(number),
            Some(Node::Directory) => Err(Errno::ISDIR.into()),
            None => Err(IoError::NotFound),
        }
    }

    /// Returns the file at `path`. Creates the file if it is missing.
    pub(crate) fn create(&mut self, path: StorePath) -> Result<FileNumber, IoError> {
        match self.find(&path) {
            Err(IoError::NotFound) => {}
            found => return found,
        }
        self.require_directory(&path.parent())?;
        let number = self.next;
        self.next += 1;
        let file = MemoryFile::named(path.clone());
        self.files.insert(number, file);
        self.names.insert(path, Node::File(number));
        if self.limit == 0 {
            self.sync(number);
        }
        Ok(number)
    }

    pub(crate) fn remove(&mut self, path: StorePath) -> Result<(), IoError> {
        let number = self.find(&path)?;
        self.names.remove(&path);
        if self.durable.contains_key(&path) {
            self.removed.push_back(path);
        }
        let limit = if self.limit == 0 { 0 } else { REMOVED_LIMIT };
        while self.removed.len() > limit {
            let Some(oldest) = self.removed.pop_front() else { break };
            let named = self.names.get(&oldest).and_then(|node| node.file());
            if self.durable.get(&oldest).copied() != named
                && let Some(gone) = self.durable.remove(&oldest)
            {
                self.release(gone);
            }
        }
        self.release(number);
        Ok(())
    }

    pub(crate) fn make_directory(&mut self, path: StorePath) -> Result<(), IoError> {
        match self.node(&path)? {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => {
                self.names.insert(path, Node::Directory);
                Ok(())
            }
        }
    }

    pub(crate) fn list(&self, path: &StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
        self.require_directory(path)?;
        let prefix =
            if *path == StorePath::root() { String::new() } else { format!("{}/", path.as_str()) };
        let mut entries: Vec<DirectoryEntry> = self
            .names
            .range(path..)
            .skip_while(|(full, _)| *full == path)
            .take_while(|(full, _)| full.as_str().starts_with(path.as_str()))
            .filter_map(|(full, node)| Some((full.as_str().strip_prefix(&prefix)?, node)))
            .filter(|(name, _)| !name.contains('/'))
            .map(|(name, node)| DirectoryEntry {
                name: name.into(),
                is_directory: *node == Node::Directory,
                size: node.file().map_or(0, |number| self.file(number).current().size()),
            })
            .collect();
        entries.sort();
        Ok(entries)
    }

    pub(crate) fn sync(&mut self, number: FileNumber) {
        let file = self.file_mut(number);
        file.sync();
        let Some(path) = file.new_name.take() else { return };
        if self.names.get(&path) != Some(&Node::File(number)) {
            return;
        }
        self.acquire(number);
        if let Some(old) = self.durable.insert(path, number) {
            self.release(old);
        }
    }

    pub(crate) fn acquire(&mut self, number: FileNumber) {
        self.file_mut(number).references += 1;
    }

    /// Drops a reference to a file. When the last reference is gone, frees the content.
    pub(crate) fn release(&mut self, number: FileNumber) {
        let file = self.file_mut(number);
        file.references -= 1;
        if file.references == 0 {
            self.files.remove(&number);
        }
    }

    /// Simulates a crash of the machine. After the crash, no file is open.
    pub(crate) fn crash(&mut self, policy: &CrashPolicy, random: &mut Random) {
        let named = self.names.iter().filter_map(|(path, node)| Some((path.clone(), node.file()?)));
        let named: BTreeMap<StorePath, FileNumber> = named.collect();
        let paths: BTreeSet<&StorePath> = named.keys().chain(self.durable.keys()).collect();
        let mut left = BTreeMap::new();
        for path in paths {
            let (now, durable) = (named.get(path), self.durable.get(path));
            let found =
                if now == durable || random.chance(policy.keep_name) { now } else { durable };
            left.extend(found.map(|&number| (path.clone(), number)));
        }
        self.names.retain(|_, node| *node == Node::Directory);
        self.names.extend(left.iter().map(|(path, &number)| (path.clone(), Node::File(number))));
        self.removed.clear();
        let kept: BTreeSet<FileNumber> = left.values().copied().collect();
        self.durable = left;
        self.files.retain(|number, _| kept.contains(number));
        for file in self.files.values_mut() {
            file.references = 2;
            file.new_name = None;
            file.crash(policy, random, self.limit);
        }
    }

    fn node(&self, path: &StorePath) -> Result<Option<Node>, IoError> {
        if *path == StorePath::root() {
            return Ok(Some(Node::Directory));
        }
        match self.names.get(path) {
            Some(&node) => Ok(Some(node)),
            None => self.require_directory(&path.parent()).map(|()| None),
        }
    }

    fn require_directory(&self, path: &StorePath) -> Result<(), IoError> {
        match self.node(path)? {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(IoError::NotFound),
        }
    }
}
