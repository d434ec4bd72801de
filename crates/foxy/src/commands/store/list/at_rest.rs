//! Lists the objects of a store that is not in use. The command reads the whole store once.

use super::listing::Listing;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::dashboard::objects::description_as_json;
use crate::store_file::{self, StoreFile, refusal};
use foxy_proxy::cache::describe;
use foxy_proxy::core::rules::Policies;
use foxy_store::webcosm::check::{FoundRecord, Refused};
use std::path::Path;

pub fn list(folder: &Path, listing: &mut Listing) -> Result<(), Failure> {
    let files = store_file::open(folder)?;
    let policies = Policies::default();
    for file in files.iter().filter(|file| file.is_webcosm()) {
        let mut progress = Progress::new("bytes", Some(file.size()));
        let listed = file.list(
            &mut |done| progress.update(done),
            &mut |FoundRecord { head, .. }: FoundRecord<'_>| {
                if let Some(description) = describe(head, &policies) {
                    listing.add(description_as_json(&description));
                }
            },
        );
        match listed {
            Ok(_) | Err(Refused::Blank) => {}
            Err(refused) => return Err(refusal(&file.path, refused)),
        }
    }
    if !files.iter().any(StoreFile::is_webcosm) {
        let text =
            format!("store {}: only stores of the scheme webcosm can be listed", folder.display());
        return Err(Failure::Unusable(text));
    }
    Ok(())
}
