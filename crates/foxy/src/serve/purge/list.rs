//! One copy of the purge list, in a store's folder: reads it, appends to it, and rewrites it. A
//! write counts only if the path still names the written file, and no other process has the list
//! open. Otherwise the next start might not find the purge.

use foxy_proxy::cache::purge::Rule;
use foxy_proxy::cache::purge::journal::{self, Journal, Series, Unreliable};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the file in a store's folder that lists the purges.
pub const NAME: &str = "foxy.purges";
/// Name of a new list file before foxy renames it to [`NAME`].
const NEW_NAME: &str = "foxy.purges.new";
/// foxy rewrites a list when it is longer than twice its length after the last rewrite, plus this
/// number of bytes.
pub const MAX_GROWTH_BYTES: u64 = 1 << 20;
/// Size in bytes of the largest list file that foxy reads. foxy never writes a larger file.
const MAX_LIST_BYTES: u64 = 256 << 20;
const OWNER_ONLY: u32 = 0o600;

#[derive(Debug)]
pub enum FoundList {
    Nothing,
    Unsound(Unsound),
    Sound(Journal),
}

impl FoundList {
    pub const fn sound(&self) -> Option<&Journal> {
        if let Self::Sound(journal) = self { Some(journal) } else { None }
    }

    pub const fn unsound(&self) -> Option<Unsound> {
        if let Self::Unsound(reason) = self { Some(*reason) } else { None }
    }
}

/// Reason why foxy cannot rely on a list file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The path is not a regular file, or the file is larger than any file of foxy.
    NotOurs,
    Unreadable(SystemError),
    /// The content is damaged or may be incomplete.
    Unreliable(Unreliable),
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("the file is not a foxy file"),
            Self::Unreadable(error) => error.fmt(f),
            Self::Unreliable(why) => why.fmt(f),
        }
    }
}

/// Reason why a file of the list must be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    Missing,
    /// Another program has replaced or shortened the file.
    Changed,
    /// foxy could not finish the last write.
    Incomplete,
}

impl fmt::Display for ListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "was missing",
            Self::Changed => "was replaced or shortened",
            Self::Incomplete => "was incomplete, because foxy could not write it",
        })
    }
}

/// Reason why foxy cannot write a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Another process has the list of purges open.
    InUse,
    /// Another program removed or replaced the list of purges while foxy wrote it.
    Lost,
    /// The store's folder was replaced after foxy's start, so a list of purges would be in the
    /// wrong folder.
    OtherFolder,
    System(SystemError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use by another foxy"),
            Self::Lost => {
                f.write_str("another program removed or replaced the list while foxy wrote it")
            }
            Self::OtherFolder => {
                f.write_str("the folder was removed, moved or unmounted while in use")
            }
            Self::System(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::System(SystemError::of(&error))
    }
}

/// A copy of an [`io::Error`] that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemError {
    Number(i32),
    /// An error without an error number of the system.
    Kind(ErrorKind),
}

impl SystemError {
    fn of(error: &io::Error) -> Self {
        error.raw_os_error().map_or_else(|| Self::Kind(error.kind()), Self::Number)
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => io::Error::from_raw_os_error(*number).fmt(f),
            Self::Kind(kind) => kind.fmt(f),
        }
    }
}

/// Reads the list of purges in `folder`. [`WriteError::InUse`] is the only possible error.
pub fn read(folder: &Path) -> Result<FoundList, WriteError> {
    let path = folder.join(NAME);
    let unreadable =
        |error: &io::Error| FoundList::Unsound(Unsound::Unreadable(SystemError::of(error)));
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FoundList::Nothing),
        Err(error) => return Ok(unreadable(&error)),
    };
    if !metadata.is_file() || metadata.len() > MAX_LIST_BYTES {
        return Ok(FoundList::Unsound(Unsound::NotOurs));
    }
    refuse_if_in_use(&path)?;
    Ok(match fs::read(&path) {
        Err(error) => unreadable(&error),
        Ok(bytes) => journal::read(&bytes)
            .map_or_else(|why| FoundList::Unsound(Unsound::Unreliable(why)), FoundList::Sound),
    })
}

fn refuse_if_in_use(path: &Path) -> Result<(), WriteError> {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    match is_file.then(|| File::open(path)) {
        Some(Ok(file)) if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) => {
            Err(WriteError::InUse)
        }
        _ => Ok(()),
    }
}

/// The purge list in one folder, open for writing.
pub struct PurgeList {
    folder: PathBuf,
    /// The folder as opened at start-up. It shows whether another folder has replaced it.
    home: io::Result<File>,
    series: Series,
    /// The open list file. `None` if the next write must create a new file.
    open: Option<OpenList>,
}

struct OpenList {
    file: File,
    next_block: u32,
    length: u64,
    /// Length of the purge list in bytes after its last rewrite.
    first_length: u64,
}

impl PurgeList {
    /// Prepares the list in `folder`, with the identity `series` (the numbering of purges, and the
    /// set of stores). The first write creates a new file.
    pub fn new(folder: PathBuf, series: Series) -> Self {
        Self { home: File::open(&folder), folder, series, open: None }
    }

    /// Changes the identity (the [`Series`]) of the list of purges. The next write creates a new
    /// file.
    pub fn begin(&mut self, series: Series) {
        self.series = series;
        self.open = None;
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the folder still has the complete file that foxy has written. Otherwise the
    /// next start would not find all purges.
    pub fn is_there(&self) -> bool {
        self.is_at_home()
            && self.open.as_ref().is_some_and(|open| open.is_at(&self.folder.join(NAME)))
    }

    /// Returns why the folder lacks the complete file that foxy has written.
    pub fn fault(&self) -> ListFault {
        match (self.folder.join(NAME).exists(), &self.open) {
            (false, _) => ListFault::Missing,
            (true, Some(_)) => ListFault::Changed,
            (true, None) => ListFault::Incomplete,
        }
    }

    fn is_at_home(&self) -> bool {
        let home = self.home.as_ref().ok().and_then(|home| home.metadata().ok());
        home.zip(self.folder.metadata().ok())
            .is_some_and(|(home, named)| is_same_file(&home, &named))
    }

    /// Writes the purges `rules` durably. `before` returns all earlier purges, which a rewritten
    /// file must contain. `latest` is the number of the last purge. After an error, the purges may
    /// or may not be on disk.
    pub fn keep(
        &mut self,
        before: impl FnOnce() -> Vec<Rule>,
        latest: u64,
        rules: &[Rule],
    ) -> Result<(), WriteError> {
        if self.is_there()
            && let Some(open) = self.open.take()
            && open.length <= 2 * open.first_length + MAX_GROWTH_BYTES
        {
            self.open = Some(open.append(self.series, latest, rules)?);
            if self.is_there() {
                return Ok(());
            }
        }
        self.open = None;
        if !self.is_at_home() {
            return Err(WriteError::OtherFolder);
        }
        let mut all = before();
        all.extend_from_slice(rules);
        self.open = Some(self.write_anew(latest, &all)?);
        if self.is_there() { Ok(()) } else { Err(WriteError::Lost) }
    }

    fn write_anew(&self, latest: u64, rules: &[Rule]) -> Result<OpenList, WriteError> {
        let (new, path) = (self.folder.join(NEW_NAME), self.folder.join(NAME));
        refuse_if_in_use(&path)?;
        let mut bytes = Vec::new();
        let next_block = journal::append(&mut bytes, 0, self.series, latest, rules);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(&new)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(WriteError::InUse);
        }
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&self.folder)?.sync_all()?;
        let length = bytes.len() as u64;
        Ok(OpenList { file, next_block, length, first_length: length })
    }

    /// Removes the list of purges durably, so that no later start uses it. Succeeds if there is no
    /// list.
    pub fn remove(&mut self) -> io::Result<()> {
        self.open = None;
        match fs::remove_file(self.folder.join(NAME)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => File::open(&self.folder)?.sync_all(),
        }
    }
}

pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    one.dev() == other.dev() && one.ino() == other.ino()
}

impl OpenList {
    fn append(mut self, series: Series, latest: u64, rules: &[Rule]) -> io::Result<Self> {
        let mut bytes = Vec::new();
        self.next_block = journal::append(&mut bytes, self.next_block, series, latest, rules);
        self.file.write_all_at(&bytes, self.length)?;
        self.file.sync_data()?;
        self.length += bytes.len() as u64;
        Ok(self)
    }

    /// Returns whether `path` names this open file, and nothing has shortened the file.
    fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), path.symlink_metadata()) {
            (Ok(ours), Ok(named)) => is_same_file(&ours, &named) && named.len() >= self.length,
            _ => false,
        }
    }
}
