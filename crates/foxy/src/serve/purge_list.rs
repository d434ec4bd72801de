//! One copy of the list of purges, in a store's folder: read, appended to, written anew. Written is
//! only what the next start finds: the file must be there by its name, and no other process's.

use foxy_proxy::cache::purge::Rule;
use foxy_proxy::cache::purge::journal::{self, Journal, Series, Unreliable};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The list's name in a store's folder.
pub const NAME: &str = "foxy.purges";
/// Its name while it is written anew.
const NEW: &str = "foxy.purges.new";
/// Bytes it may grow by before it is written anew, beyond what it had then.
pub const GROWTH: u64 = 1 << 20;
/// A list larger than this is none of ours.
const SIZE_LIMIT: u64 = 256 << 20;
/// Who may read it: nobody but its owner.
const PRIVATE: u32 = 0o600;

/// What is in a folder.
#[derive(Debug)]
pub enum FoundList {
    /// No list.
    Nothing,
    /// One that cannot be relied on.
    Unsound(Unsound),
    /// A list.
    Sound(Journal),
}

/// Why a list cannot be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// It is no file, or far too large.
    NotOurs,
    /// It cannot be read.
    Unreadable(Cause),
    /// What it says may not be all.
    Unreliable(Unreliable),
}

/// Why a list cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// Another process has it.
    InUse,
    /// It was removed or replaced while it was written.
    Lost,
    /// Another folder is there than when foxy started, or none. What is written there is not beside
    /// the store.
    OtherFolder,
    /// The system has something against it.
    Failed(Cause),
}

/// What the system has against it, in its own words where it has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The system's error number.
    Number(i32),
    /// The kind of an error that has none.
    Kind(ErrorKind),
}

impl Cause {
    fn of(error: &io::Error) -> Self {
        error.raw_os_error().map_or_else(|| Self::Kind(error.kind()), Self::Number)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => io::Error::from_raw_os_error(*number).fmt(f),
            Self::Kind(kind) => kind.fmt(f),
        }
    }
}

impl FoundList {
    /// The list, if it is one.
    pub const fn sound(&self) -> Option<&Journal> {
        if let Self::Sound(journal) = self { Some(journal) } else { None }
    }

    /// What is wrong with it, if something is.
    pub const fn unsound(&self) -> Option<Unsound> {
        if let Self::Unsound(why) = self { Some(*why) } else { None }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => f.write_str("it is not a file of foxy's"),
            Self::Unreadable(cause) => cause.fmt(f),
            Self::Unreliable(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use by another foxy"),
            Self::Lost => f.write_str("removed or replaced while it was written"),
            Self::OtherFolder => {
                f.write_str("its folder was removed, moved or unmounted while in use")
            }
            Self::Failed(cause) => cause.fmt(f),
        }
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Failed(Cause::of(&error))
    }
}

/// Reads the list in a folder.
///
/// # Errors
/// [`Unwritten::InUse`]: another process has it.
pub fn read(folder: &Path) -> Result<FoundList, Unwritten> {
    let path = folder.join(NAME);
    let unreadable = |error: &io::Error| FoundList::Unsound(Unsound::Unreadable(Cause::of(error)));
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FoundList::Nothing),
        Err(error) => return Ok(unreadable(&error)),
    };
    if !metadata.is_file() || metadata.len() > SIZE_LIMIT {
        return Ok(FoundList::Unsound(Unsound::NotOurs));
    }
    refuse_another(&path)?;
    Ok(match fs::read(&path) {
        Err(error) => unreadable(&error),
        Ok(bytes) => journal::read(&bytes)
            .map_or_else(|why| FoundList::Unsound(Unsound::Unreliable(why)), FoundList::Sound),
    })
}

/// Refuses a list that another process has open.
fn refuse_another(path: &Path) -> Result<(), Unwritten> {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    match is_file.then(|| File::open(path)) {
        Some(Ok(file)) if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) => {
            Err(Unwritten::InUse)
        }
        _ => Ok(()),
    }
}

/// The list in one folder, to be written.
pub struct List {
    folder: PathBuf,
    /// The folder as it was when this began.
    home: io::Result<File>,
    series: Series,
    /// None while the file cannot be relied on; it is written anew then.
    open: Option<Open>,
}

struct Open {
    file: File,
    /// The number of its next block.
    next: u32,
    /// Its length.
    bytes: u64,
    /// Its length when it was written anew.
    anew: u64,
}

impl List {
    /// The list of that series in a folder; it is written anew first.
    pub fn new(folder: PathBuf, series: Series) -> Self {
        Self { home: File::open(&folder), folder, series, open: None }
    }

    /// Another series for it; it is written anew first.
    pub fn begin(&mut self, series: Series) {
        self.series = series;
        self.open = None;
    }

    /// Where its store is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether what was written is what the next start finds.
    pub fn is_there(&self) -> bool {
        self.is_at_home()
            && self.open.as_ref().is_some_and(|open| open.is_at(&self.folder.join(NAME)))
    }

    fn is_at_home(&self) -> bool {
        let home = self.home.as_ref().ok().and_then(|home| home.metadata().ok());
        home.zip(self.folder.metadata().ok()).is_some_and(|(home, named)| is_one(&home, &named))
    }

    /// Makes these rules durable, which follow `before`; `latest` is the number of the last.
    ///
    /// # Errors
    /// They may be durable or not.
    pub fn keep(
        &mut self,
        before: impl FnOnce() -> Vec<Rule>,
        latest: u64,
        rules: &[Rule],
    ) -> Result<(), Unwritten> {
        if self.is_there()
            && let Some(open) = self.open.take()
            && open.bytes <= 2 * open.anew + GROWTH
        {
            self.open = Some(open.append(self.series, latest, rules)?);
            if self.is_there() {
                return Ok(());
            }
        }
        self.open = None;
        if !self.is_at_home() {
            return Err(Unwritten::OtherFolder);
        }
        let mut all = before();
        all.extend_from_slice(rules);
        self.open = Some(self.write_anew(latest, &all)?);
        if self.is_there() { Ok(()) } else { Err(Unwritten::Lost) }
    }

    fn write_anew(&self, latest: u64, rules: &[Rule]) -> Result<Open, Unwritten> {
        let (new, path) = (self.folder.join(NEW), self.folder.join(NAME));
        refuse_another(&path)?;
        let mut bytes = Vec::new();
        let next = journal::append(&mut bytes, 0, self.series, latest, rules);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&new)?;
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Unwritten::InUse);
        }
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        File::open(&self.folder)?.sync_all()?;
        let length = bytes.len() as u64;
        Ok(Open { file, next, bytes: length, anew: length })
    }

    /// Removes the list durably, so that nobody relies on it. None is as good.
    ///
    /// # Errors
    /// It is still there.
    pub fn remove(&mut self) -> io::Result<()> {
        self.open = None;
        match fs::remove_file(self.folder.join(NAME)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => File::open(&self.folder)?.sync_all(),
        }
    }
}

pub fn is_one(one: &Metadata, other: &Metadata) -> bool {
    one.dev() == other.dev() && one.ino() == other.ino()
}

impl Open {
    fn append(mut self, series: Series, latest: u64, rules: &[Rule]) -> io::Result<Self> {
        let mut bytes = Vec::new();
        self.next = journal::append(&mut bytes, self.next, series, latest, rules);
        self.file.write_all_at(&bytes, self.bytes)?;
        self.file.sync_data()?;
        self.bytes += bytes.len() as u64;
        Ok(self)
    }

    /// Whether that is its name, and it is as long as was written.
    fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), path.symlink_metadata()) {
            (Ok(ours), Ok(named)) => is_one(&ours, &named) && named.len() >= self.bytes,
            _ => false,
        }
    }
}
