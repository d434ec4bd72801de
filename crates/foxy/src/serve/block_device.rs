//! A store on a block device: the store's folder has a link to it where the file would be. What is
//! on it is judged by the store.

use crate::failure::Failure;
use foxy_base::ByteSize;
use foxy_device::{BlockDevice, HeldFile, Root, RootError};
use foxy_schemes::SchemeName;
use foxy_store::layout::PAGE;
use foxy_store::webcosm;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Holds the store's file of that name; where there is none, the block device in its place.
///
/// # Errors
/// Somebody else has it.
pub fn hold(root: &Root, scheme: SchemeName, name: &str) -> Result<Option<HeldFile>, RootError> {
    match root.hold(name, None)? {
        None if scheme.row().takes_block_devices() => root.hold_block_device(name),
        held => Ok(held),
    }
}

/// All of a device that a store can use.
pub fn whole(device: BlockDevice, scheme: SchemeName) -> ByteSize {
    const PAGES: u64 = PAGE as u64;
    ByteSize(device.bytes.min(scheme.row().most_bytes()) / PAGES * PAGES)
}

/// What to do instead of naming a device where a folder should be, if that is what was done: foxy's
/// lock and list of purges must lie somewhere, and none of them on the device.
pub fn instead_of_folder(path: &Path) -> Option<Failure> {
    let is_block_device = path.metadata().is_ok_and(|found| found.file_type().is_block_device());
    let (device, file) = (path.display(), webcosm::FILE_NAME);
    is_block_device.then(|| {
        Failure::Unusable(format!(
            "store {device}: a block device, and --store names a folder; make one with a link to the device in it: \
             mkdir FOLDER && ln -s {device} FOLDER/{file}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_takes_the_whole_pages_of_a_device_up_to_what_it_can_use() {
        let whole = |bytes| whole(BlockDevice { number: 1, bytes }, SchemeName::Webcosm).0;
        assert_eq!(whole((1 << 30) + 513), 1 << 30);
        assert_eq!(whole(u64::MAX), webcosm::MOST_BYTES);
    }
}
