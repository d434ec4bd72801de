//! Prepares a store before it is opened: locks its folder and its file or block device, and chooses
//! its size.

use crate::failure::Failure;
use crate::serve::listeners::patiently;
use crate::serve::stores::room::{self, Claim, NoRoom, SizeChoice};
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use foxy_base::ByteSize;
use foxy_device::{BlockDevice, LockedFile, Root, RootError};
use foxy_schemes::SchemeName;
use foxy_store::layout::PAGE;
use foxy_store::superblock::{Found, Superblock};
use foxy_store::webcosm;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

pub struct StorePlace<'a> {
    pub store: &'a StoreChoice,
    pub scheme: SchemeName,
    pub root: Root,
    /// The locked file or block device. `None` if the file does not exist yet.
    pub held: Option<LockedFile>,
    pub size: SizeChoice,
}

impl<'a> StorePlace<'a> {
    /// Locks the folder and the file of a store. `locked` has folders that this process has already
    /// locked.
    pub fn lock(
        settings: &Settings,
        store: &'a StoreChoice,
        locked: &[Root],
    ) -> Result<Self, Failure> {
        let folder = store.folder.as_path();
        let scheme = store.scheme.unwrap_or(settings.disk.scheme);
        refuse_block_device(folder)?;
        let is_in_use =
            |error: &RootError| matches!(error, RootError::InUse(_) | RootError::DeviceInUse(_));
        let refuse = |error: RootError| Failure::Unusable(error.to_string());
        let root = match locked.iter().find(|root| root.path() == folder) {
            Some(root) => root.clone(),
            None => patiently(is_in_use, || Root::open(folder)).map_err(refuse)?,
        };
        // Tries several times: a killed process may release the file slightly later than the
        // folder.
        let hold = |file| patiently(is_in_use, || hold(&root, scheme, file));
        let held = scheme.row().control.map_or(Ok(None), hold).map_err(refuse)?;
        let device = held.as_ref().and_then(LockedFile::block_device);
        let asked = store.size.or(settings.disk.size);
        let existing = existing_size(folder, scheme, device);
        let size = match (asked, existing, device) {
            (None, None, Some(device)) => SizeChoice::Device(usable_bytes(device, scheme)),
            _ => SizeChoice::of(asked, existing, scheme.row().grows()),
        };
        Ok(Self { store, scheme, root, held, size })
    }

    fn claim(&self) -> Claim {
        match self.held.as_ref().and_then(LockedFile::block_device) {
            Some(device) => {
                Claim { size: self.size, file_system: device.number, free_bytes: device.bytes }
            }
            None => Claim {
                size: self.size,
                file_system: self.root.file_system().unwrap_or(0),
                free_bytes: self.root.free_bytes().unwrap_or(u64::MAX),
            },
        }
    }
}

/// Chooses the size of each store, within the free space of its disk.
pub fn sizes(places: &[StorePlace<'_>]) -> Result<Vec<ByteSize>, Failure> {
    let claims: Vec<_> = places.iter().map(StorePlace::claim).collect();
    let taken = |store: usize, enough| {
        let StorePlace { root, scheme, .. } = &places[store];
        root.used_bytes(|name| scheme.row().owns(name), enough)
    };
    room::sizes(&claims, taken).map_err(|NoRoom { store, available }| {
        room::no_room(places[store].root.path(), places[store].size, available)
    })
}

/// Locks the store's file `name`, or the block device to which the link `name` points.
fn hold(root: &Root, scheme: SchemeName, name: &str) -> Result<Option<LockedFile>, RootError> {
    match root.lock_file(name, None)? {
        None if scheme.row().takes_block_devices() => root.lock_block_device(name),
        held => Ok(held),
    }
}

/// Returns the number of bytes that a store can use of a block device: whole pages, within the
/// limit of the scheme.
fn usable_bytes(device: BlockDevice, scheme: SchemeName) -> ByteSize {
    const PAGE_BYTES: u64 = PAGE as u64;
    ByteSize(device.bytes.min(scheme.row().most_bytes()) / PAGE_BYTES * PAGE_BYTES)
}

/// Refuses a block device in place of a store's folder. foxy needs the folder for its lock and its
/// purge list.
pub fn refuse_block_device(path: &Path) -> Result<(), Failure> {
    if !path.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
        return Ok(());
    }
    let (device, file) = (path.display(), webcosm::FILE_NAME);
    Err(Failure::Unusable(format!(
        "store {device}: a block device, but --store names a folder; make a folder with a link to \
         the device: \
         mkdir FOLDER && ln -s {device} FOLDER/{file}"
    )))
}

/// Returns the size with which the existing store was created, from its superblock. Reads only a
/// regular file or the locked device, because opening any other file, such as a pipe, could block
/// forever.
pub fn existing_size(
    folder: &Path,
    scheme: SchemeName,
    device: Option<BlockDevice>,
) -> Option<ByteSize> {
    let mut pages = [0; 2 * PAGE];
    let path = folder.join(scheme.row().control?);
    if device.is_none() {
        path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    }
    File::open(path).ok()?.read_exact(&mut pages).ok()?;
    match Superblock::judge(&pages[..PAGE], &pages[PAGE..]) {
        Ok(Found::Ours(superblock)) if superblock.requested > 0 => {
            Some(ByteSize(superblock.requested))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_takes_the_whole_pages_of_a_device_up_to_what_it_can_use() {
        let usable = |bytes| usable_bytes(BlockDevice { number: 1, bytes }, SchemeName::Webcosm).0;
        assert_eq!(usable((1 << 30) + 513), 1 << 30);
        assert_eq!(usable(u64::MAX), webcosm::MAX_STORE_BYTES);
    }
}
