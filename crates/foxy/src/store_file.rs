//! Opens store files read-only at a path that a command's argument names. Finds the possible
//! schemes by the file's name, and checks the superblocks.

use crate::failure::Failure;
use crate::serve::listeners::patiently;
use crate::serve::purge::list::NAME as PURGE_LIST;
use foxy_device::{IoError, ReadOnlyDevice, ReadOnlyFile, ReadOnlyFolder, RootError, StorePath};
use foxy_schemes::stream_packetizer::{self, open::judge_size};
use foxy_schemes::{SCHEMES, SchemeName};
use foxy_store::OpenStoreError;
use foxy_store::layout::PAGE;
use foxy_store::medium::Medium;
use foxy_store::superblock::{CopyState, Superblock};
use foxy_store::webcosm;
use foxy_store::webcosm::check::{
    CheckScope, Refused, Report, TakeRecord, check, list, superblocks,
};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub struct StoreFile {
    pub path: PathBuf,
    /// File name. Each scheme has a fixed file name.
    pub name: &'static str,
    medium: Medium,
    file: ReadOnlyFile,
    folder: Rc<ReadOnlyFolder>,
}

/// Opens the files of all stores in a folder, or the single file at `path`.
pub fn open(path: &Path) -> Result<Vec<StoreFile>, Failure> {
    let unusable = |text: String| Failure::Unusable(format!("store {}: {text}", path.display()));
    let kind = path
        .metadata()
        .map_err(|error| unusable(format!("{error}; name a store's folder or its file")))?;
    let (folder, wanted) = if kind.is_dir() {
        (path, None)
    } else {
        let wanted = path.file_name().and_then(|name| names().find(|known| *known == name));
        let known: Vec<_> = names().collect();
        let wrong = || {
            unusable(if kind.file_type().is_block_device() {
                "a block device; name the store's folder, which contains a link to the device"
                    .into()
            } else {
                format!("not a store's file, whose name is {}", known.join(", "))
            })
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        (folder.unwrap_or(Path::new(".")), Some(wanted.ok_or_else(wrong)?))
    };
    let is_in_use = |error: &RootError| matches!(error, RootError::InUse(_));
    let opened = patiently(is_in_use, || ReadOnlyFolder::open(folder));
    let opened = opened.map_err(|error| match error {
        RootError::InUse(_) => unusable("in use by a running foxy; stop that foxy first".into()),
        RootError::Denied(_) => {
            unusable("no permission to read; run this command as the user of foxy".into())
        }
        other => Failure::Unusable(other.to_string()),
    })?;
    let opened = Rc::new(opened);
    let mut files = Vec::new();
    for name in names().filter(|name| wanted.is_none_or(|wanted| wanted == *name)) {
        let at = folder.join(name);
        let is_in_use = |error: &IoError| *error == IoError::InUse;
        match patiently(is_in_use, || open_file(&opened, name)) {
            Ok((medium, file)) => {
                files.push(StoreFile { path: at, name, medium, file, folder: Rc::clone(&opened) });
            }
            Err(IoError::NotFound) => {}
            Err(IoError::InUse) => {
                let text = "in use by a running foxy, by this or another name of the file, or the \
                            device is mounted; stop that foxy or unmount the device first";
                return Err(Failure::Unusable(format!("store {}: {text}", at.display())));
            }
            Err(IoError::NoMedium) => {
                return Err(Failure::Unusable(RootError::NoMedium(at).to_string()));
            }
            Err(error @ (IoError::Denied | IoError::WrongKind | IoError::LargeBlocks)) => {
                return Err(Failure::Unusable(format!("store {}: {error}", at.display())));
            }
            Err(error) => return Err(Failure::Failed(format!("store {}: {error}", at.display()))),
        }
    }
    if files.is_empty() {
        let known: Vec<_> = names().collect();
        return Err(unusable(format!(
            "this folder contains no store; a store's file is named {}",
            known.join(", ")
        )));
    }
    Ok(files)
}

/// Opens the store file `name` in the folder. For webcosm, `name` may also be a link to a block
/// device.
fn open_file(folder: &ReadOnlyFolder, name: &str) -> Result<(Medium, ReadOnlyFile), IoError> {
    let path = StorePath::new(name);
    match folder.file(&path) {
        Err(IoError::WrongKind) if name == webcosm::FILE_NAME => match folder.block_device(&path) {
            Err(IoError::NotFound) => Err(IoError::WrongKind),
            found => Ok((Medium::BlockDevice, found?)),
        },
        found => Ok((Medium::File, found?)),
    }
}

/// Returns the names of all store files that foxy knows.
fn names() -> impl Iterator<Item = &'static str> {
    let mut known: Vec<&'static str> = Vec::new();
    for name in SCHEMES.iter().filter_map(|row| row.control) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known.into_iter()
}

impl StoreFile {
    /// Returns whether the file is a webcosm store. Only such a store can be checked byte by byte.
    pub fn is_webcosm(&self) -> bool {
        self.name == webcosm::FILE_NAME
    }

    /// Returns the schemes that use this file name.
    pub fn schemes(&self) -> Vec<SchemeName> {
        SCHEMES.iter().filter(|row| row.control == Some(self.name)).map(|row| row.name).collect()
    }

    /// Returns the scheme that uses this file name, or the first of several.
    pub fn scheme(&self) -> SchemeName {
        let row = SCHEMES.iter().find(|row| row.control == Some(self.name));
        row.map_or(SchemeName::Null, |row| row.name)
    }

    /// Returns whether many records of the store share a file, so that the store has a map.
    pub fn has_layout(&self) -> bool {
        self.scheme().row().has_layout()
    }

    /// Returns a device that reads the files of the store's folder, and changes nothing.
    pub fn read_only_device(&self) -> ReadOnlyDevice {
        ReadOnlyDevice::new(Rc::clone(&self.folder))
    }

    /// Explains why the store has no map.
    pub fn without_layout(&self) -> String {
        let schemes: Vec<_> = self.schemes().iter().map(ToString::to_string).collect();
        format!(
            "store {}: the scheme ({}) keeps each object in a file of its own, so the store has no \
             segments and no map",
            self.path.display(),
            schemes.join(" or ")
        )
    }

    pub const fn size(&self) -> u64 {
        self.file.size()
    }

    /// Checks a webcosm store. Calls `progress` with the number of bytes read so far.
    pub fn check(
        &self,
        scope: CheckScope,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Report, Refused> {
        let found = check(self.medium, self.file.size(), scope, &mut self.reader(progress));
        found.map_err(|refused| self.judged_by_folder(refused))
    }

    /// Passes records of a webcosm store to `take`: each record that a get would find. Calls
    /// `progress` with the number of bytes read so far.
    pub fn list(
        &self,
        progress: &mut dyn FnMut(u64),
        take: &mut TakeRecord<'_>,
    ) -> Result<Report, Refused> {
        let found = list(self.medium, self.file.size(), &mut self.reader(progress), take);
        found.map_err(|refused| self.judged_by_folder(refused))
    }

    /// Returns a function that reads bytes of the file at a position.
    fn reader(
        &self,
        progress: &mut dyn FnMut(u64),
    ) -> impl FnMut(u64, &mut [u8]) -> Result<usize, IoError> {
        let mut done = 0;
        move |offset, buffer: &mut [u8]| {
            let count = self.file.read(offset, buffer)?;
            done += count as u64;
            progress(done);
            Ok(count)
        }
    }

    /// Distinguishes a new store from a store that lost its content. Both contain only zeros, but a
    /// purge list in the folder means that foxy has used the store.
    fn judged_by_folder(&self, refused: Refused) -> Refused {
        let begun = || self.path.with_file_name(PURGE_LIST).is_file();
        if refused == Refused::Blank && begun() { Refused::ContentLost } else { refused }
    }

    /// Returns the states of both superblock copies, and the superblock that foxy would use.
    pub fn superblocks(&self) -> Result<([CopyState; 2], Superblock), Refused> {
        let size = self.file.size();
        let found = superblocks(self.medium, size, &mut |offset, buffer: &mut [u8]| {
            self.file.read(offset, buffer)
        });
        match found {
            Ok((_, superblock)) if self.name == stream_packetizer::FILE_NAME => {
                judge_size(&superblock, size).map_err(Refused::Unusable)?;
            }
            // Schemes without preallocation write both superblocks before the file grows. So a
            // larger file without superblocks is not a foxy store.
            Err(Refused::Blank) if !self.is_preallocated() && size > 2 * PAGE as u64 => {
                return Err(Refused::Unusable(OpenStoreError::Foreign));
            }
            _ => {}
        }
        found.map_err(|refused| self.judged_by_folder(refused))
    }

    /// Returns whether the scheme creates the file with its full size.
    pub fn is_preallocated(&self) -> bool {
        self.is_webcosm() || self.name == stream_packetizer::FILE_NAME
    }
}

/// Returns the failure of a command whose store cannot be checked. The kind of failure determines
/// the exit code.
pub fn refusal(path: &Path, refused: Refused) -> Failure {
    let text = format!("store {}: {refused}", path.display());
    match refused {
        Refused::Unusable(OpenStoreError::Device(_)) => Failure::Failed(text),
        Refused::Unusable(OpenStoreError::Truncated { .. } | OpenStoreError::ImpossibleSize(_))
        | Refused::ContentLost
        | Refused::BothDamaged => Failure::Missed(text),
        _ => Failure::Unusable(text),
    }
}
