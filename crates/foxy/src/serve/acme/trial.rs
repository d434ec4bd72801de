//! Tries the settings of ACME without asking the authority.

use crate::failure::unwritten;
use crate::serve::acme::folder;
use crate::settings::Settings;
use rustix::fs::{Access, access};
use std::path::Path;

/// Returns the reason why the folder for ACME certificates cannot be used.
pub fn unusable_folder(settings: &Settings) -> Option<String> {
    let path = settings.acme.folder.as_deref()?;
    let is_there = |path: &&Path| path.as_os_str().is_empty() || path.exists();
    let nearest = path.ancestors().find(is_there)?;
    let nearest = if nearest.as_os_str().is_empty() { Path::new(".") } else { nearest };
    let error = access(nearest, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let why = unwritten(&error.into(), "name a folder that this user may write to");
    Some(format!("{} (acme.folder): {why}", path.display()))
}

/// Describes the certificates that foxy lacks, and so would request at the start. Leaves out
/// certificates that foxy would renew.
pub fn requests(settings: &Settings) -> Option<String> {
    let (folder, directory) = (folder(settings)?, settings.acme.directory.as_deref()?);
    let missing: Vec<String> =
        settings.acme_names().into_iter().filter(|name| folder.validity(name).is_none()).collect();
    let text =
        || format!("foxy serve asks {directory} for certificates, for {}", missing.join(", "));
    (!missing.is_empty()).then(text)
}
