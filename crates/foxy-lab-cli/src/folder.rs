//! A folder that is lent for measuring: whether a running foxy has it or measures there, and what
//! is wrong with it in words.

use foxy_cli::failure::Failure;
use foxy_device::{IoError, Root, RootError};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Locks a folder that has been a store's, so that none opens there meanwhile; one that never was
/// stays as it is.
///
/// # Errors
/// When a running foxy has it, or it cannot be used.
pub fn store_lock(folder: &Path) -> Result<Option<Root>, RootError> {
    let is_store = folder.join("foxy.lock").exists();
    is_store.then(|| Root::open(folder)).transpose()
}

/// A folder that is lent has to be there: one that was written wrong would be made on another disk
/// than was meant.
///
/// # Errors
/// When it is not, or is no folder.
pub fn existing(option: &str, folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Unusable(format!(
        "{option} {}: no such folder; name one that exists",
        folder.display()
    )))
}

/// Keeps a folder for what this process measures there, until what is returned is dropped: two that
/// measure at the same time measure each other. The lock is on the folder itself, so that nothing
/// is left in it; none where the file system has no locks.
///
/// # Errors
/// When another foxy measures there.
pub fn claim(option: &str, folder: &Path) -> Result<Option<File>, Failure> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Failure::Failed(format!(
            "{option} {}: in use: another foxy measures there; wait until it has ended or name another folder",
            folder.display()
        ))),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// What is wrong with a folder, in a few words.
pub fn words(error: &RootError) -> String {
    match error {
        RootError::InUse(_) | RootError::DeviceInUse(_) => {
            "the folder is in use by another foxy".into()
        }
        RootError::NoMedium(_) => IoError::NoMedium.to_string(),
        RootError::NotADirectory(_) => "not a folder".into(),
        RootError::LockNotAFile(_) => {
            "there is a link or folder where its lock file should be".into()
        }
        RootError::Denied(_) => "the folder is read-only for this user".into(),
        RootError::ReadOnly(_) => "the folder's file system is read-only".into(),
        RootError::NoSpace(_) => "the disk is full".into(),
        RootError::Failed(_, words) => format!("the folder cannot be used: {words}"),
    }
}
