//! Tries whether stores could be opened. Only reads: creates no folder, no lock and no store.

use crate::failure::Failure;
use crate::serve::stores::place::{existing_size, refuse_block_device};
use crate::serve::stores::room::{self, Claim, NoRoom, SizeChoice};
use crate::serve::trial::{Finding, Severity};
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use crate::store_file::{self, refusal};
use foxy_device::{ReadOnlyFolder, RootError};
use foxy_store::webcosm::check::Refused;
use rustix::fs::{Access, access, statvfs};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns every reason why a store could not be opened.
pub fn try_out(settings: &Settings) -> Vec<Finding> {
    let scheme = |store: &StoreChoice| store.scheme.unwrap_or(settings.disk.scheme);
    let stores: Vec<_> =
        settings.disk.stores().filter(|store| !scheme(store).row().stores_nothing()).collect();
    let mut findings: Vec<_> =
        stores.iter().filter_map(|store| judge(settings, store).err()).collect();
    let claims: Vec<_> = stores.iter().map(|store| claim(settings, store)).collect();
    if findings.is_empty()
        && let Err(NoRoom { store, available }) =
            room::sizes(&claims, |store, _| used_bytes(settings, stores[store]))
    {
        let failure = room::no_room(&stores[store].folder, claims[store].size, available);
        findings.push(error(&failure));
    }
    findings
}

fn error(failure: &Failure) -> Finding {
    Finding { key: "store", severity: Severity::Error, message: failure.to_string() }
}

fn judge(settings: &Settings, store: &StoreChoice) -> Result<(), Finding> {
    let folder = store.folder.as_path();
    refuse_block_device(folder).map_err(|failure| error(&failure))?;
    let refuse = |refused: RootError| Finding {
        key: "store",
        severity: match refused {
            RootError::InUse(_) | RootError::DeviceInUse(_) => Severity::Warning,
            _ => Severity::Error,
        },
        message: refused.to_string(),
    };
    let existing = existing_ancestor(folder);
    if !existing.is_dir() {
        return Err(refuse(RootError::NotADirectory(existing.to_owned())));
    }
    if access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Err(refuse(RootError::Denied(existing.to_owned())));
    }
    if existing != folder {
        return Ok(());
    }
    drop(ReadOnlyFolder::open(folder).map_err(refuse)?);
    judge_file(settings, store)
}

/// Checks the superblocks of the store's file, if the file exists.
fn judge_file(settings: &Settings, store: &StoreChoice) -> Result<(), Finding> {
    let scheme = store.scheme.unwrap_or(settings.disk.scheme);
    let Some(path) = scheme.row().control.map(|name| store.folder.join(name)) else {
        return Ok(());
    };
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(());
    }
    let files = store_file::open(&path).map_err(|failure| error(&failure))?;
    for file in &files {
        match file.superblocks() {
            Ok(_) | Err(Refused::Blank) => {}
            Err(refused) => {
                let severity = match refused {
                    Refused::Unusable(_) => Severity::Error,
                    _ => Severity::Warning,
                };
                let message = refusal(&file.path, refused).to_string();
                return Err(Finding { key: "store", severity, message });
            }
        }
    }
    Ok(())
}

/// Returns the path itself if it exists, otherwise the nearest folder above it that exists.
fn existing_ancestor(path: &Path) -> &Path {
    let there = |path: &&Path| !path.as_os_str().is_empty() && path.symlink_metadata().is_ok();
    path.ancestors().find(there).unwrap_or(Path::new("."))
}

fn claim(settings: &Settings, store: &StoreChoice) -> Claim {
    let scheme = store.scheme.unwrap_or(settings.disk.scheme);
    let existing = existing_ancestor(&store.folder);
    let kept = existing_size(&store.folder, scheme, None);
    let is_on_device =
        kept.is_none() && scheme.row().control.is_some_and(|name| store.folder.join(name).exists());
    let free = statvfs(existing).map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    Claim {
        size: SizeChoice::of(store.size.or(settings.disk.size), kept, scheme.row().grows()),
        file_system: existing.metadata().map_or(0, |found| found.dev()),
        free_bytes: free.ok().filter(|_| !is_on_device).unwrap_or(u64::MAX),
    }
}

fn used_bytes(settings: &Settings, store: &StoreChoice) -> u64 {
    const BLOCK: u64 = 512;
    let scheme = store.scheme.unwrap_or(settings.disk.scheme);
    let Ok(files) = store.folder.read_dir() else { return 0 };
    let owned = files
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| scheme.row().owns(name)));
    owned.filter_map(|entry| entry.metadata().ok()).map(|found| found.blocks() * BLOCK).sum()
}
