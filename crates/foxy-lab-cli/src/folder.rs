//! Locks and checks of folders that measurements use.

use foxy_cli::failure::Failure;
use foxy_device::{IoError, Root, RootError};
use std::fs::{File, TryLockError};
use std::path::Path;

/// Locks a folder that was a store's, so that no foxy opens it meanwhile. Other folders stay
/// unlocked.
pub fn store_lock(folder: &Path) -> Result<Option<Root>, RootError> {
    let is_store = folder.join("foxy.lock").exists();
    is_store.then(|| Root::open(folder)).transpose()
}

/// Refuses a missing folder: a mistyped path could be on another disk.
pub fn existing(option: &str, folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Unusable(format!(
        "{option} {}: no such folder; name one that exists",
        folder.display()
    )))
}

/// Locks the folder itself, so that no file stays in it. `None` where the file system has no locks.
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
