//! A copy of the list of purges in a store's folder: read, appended to, written anew. A write
//! counts only when the next start would find it: under the file's name, and no other process's.

use foxy_proxy::cache::purge::Rule;
use foxy_proxy::cache::purge::journal::{self, Journal, Series, Unreliable};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The list's name in a store's folder.
pub const NAME: &str = "foxy.purges";
/// The name of a list that is being written anew.
const NEW_NAME: &str = "foxy.purges.new";
/// Growth beyond twice its first length after which a list is written anew.
pub const MAX_GROWTH_BYTES: u64 = 1 << 20;
/// foxy never writes a larger list.
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

/// Why a list cannot be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The list is not a regular file, or far too large.
    NotOurs,
    Unreadable(SystemError),
    /// The content is damaged or may be incomplete.
    Unreliable(Unreliable),
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("it is not a file of foxy's"),
            Self::Unreadable(error) => error.fmt(f),
            Self::Unreliable(why) => why.fmt(f),
        }
    }
}

/// Why a list cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Another process has it open.
    InUse,
    /// The list was removed or replaced while foxy wrote it.
    Lost,
    /// The folder is not the one that foxy opened at start-up, so the list would not lie beside the
    /// store.
    OtherFolder,
    System(SystemError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use by another foxy"),
            Self::Lost => f.write_str("removed or replaced while it was written"),
            Self::OtherFolder => {
                f.write_str("its folder was removed, moved or unmounted while in use")
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

/// An [`io::Error`] that can be copied and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemError {
    Number(i32),
    /// The kind of an error without a number.
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

/// Reads the list in a folder. Fails with [`WriteError::InUse`] only.
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

/// The list in one folder, to be written.
pub struct PurgeList {
    folder: PathBuf,
    /// The folder as it was at start-up.
    home: io::Result<File>,
    series: Series,
    /// `None` while the file cannot be relied on; the next write is anew.
    open: Option<OpenList>,
}

struct OpenList {
    file: File,
    next_block: u32,
    length: u64,
    /// Length when the list was written anew.
    first_length: u64,
}

impl PurgeList {
    /// The list of `series` in `folder`. The first write is anew.
    pub fn new(folder: PathBuf, series: Series) -> Self {
        Self { home: File::open(&folder), folder, series, open: None }
    }

    /// Changes the series. The next write is anew.
    pub fn begin(&mut self, series: Series) {
        self.series = series;
        self.open = None;
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the next start would find what was written.
    pub fn is_there(&self) -> bool {
        self.is_at_home()
            && self.open.as_ref().is_some_and(|open| open.is_at(&self.folder.join(NAME)))
    }

    fn is_at_home(&self) -> bool {
        let home = self.home.as_ref().ok().and_then(|home| home.metadata().ok());
        home.zip(self.folder.metadata().ok())
            .is_some_and(|(home, named)| is_same_file(&home, &named))
    }

    /// Makes `rules` durable, which follow the rules that `before` returns; `latest` is the number
    /// of the last rule. After an error they may be durable or not.
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

    /// Removes the list durably, so that nobody relies on it. A missing list is a success.
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

    /// Whether `path` names this file, with all that was written.
    fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), path.symlink_metadata()) {
            (Ok(ours), Ok(named)) => is_same_file(&ours, &named) && named.len() >= self.length,
            _ => false,
        }
    }
}
