//! Lists the objects of a store that is not in use. The command reads the whole store once.

use super::listing::Listing;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::dashboard::objects::description_as_json;
use crate::serve::purge::list::{self, FoundList};
use crate::store_at_rest::StoreAtRest;
use crate::store_file::{self, StoreFile, refusal};
use crate::terminal::{self, Level};
use foxy_proxy::cache::Describer;
use foxy_proxy::cache::purge::PurgeBook;
use foxy_proxy::core::rules::Policies;
use foxy_store::webcosm::check::{FoundRecord, Refused};
use std::path::Path;
use std::sync::Arc;

pub fn list(folder: &Path, listing: &mut Listing) -> Result<(), Failure> {
    let files = store_file::open(folder)?;
    for file in files.iter().filter(|file| file.has_layout()) {
        if !file.is_webcosm() {
            list_placed(file, listing)?;
            continue;
        }
        let describer = describer(file);
        let mut progress = Progress::new("bytes", Some(file.size()));
        let listed = file.list(
            &mut |done| progress.update(done),
            &mut |FoundRecord { head, .. }: FoundRecord<'_>| {
                if let Some(description) = describer.describe(head) {
                    listing.add(description_as_json(&description));
                }
            },
        );
        match listed {
            Ok(_) | Err(Refused::Blank) => {}
            Err(refused) => return Err(refusal(&file.path, refused)),
        }
    }
    match files.first().filter(|_| !files.iter().any(StoreFile::has_layout)) {
        Some(file) => Err(Failure::Unusable(file.without_layout())),
        None => Ok(()),
    }
}

/// Returns a describer that knows the purges in the list beside the store. Tells the user if there
/// is no reliable list.
fn describer(file: &StoreFile) -> Describer {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let why = match list::read(folder) {
        Ok(FoundList::Sound(journal)) => {
            let book = PurgeBook::new(journal.series.era, journal.latest, &journal.rules);
            return Describer { policies: Policies::default(), purges: Some(Arc::new(book)) };
        }
        Ok(FoundList::Nothing) => "it is missing".to_owned(),
        Ok(FoundList::Unsound(why)) => why.to_string(),
        Err(error) => error.to_string(),
    };
    let text = format!(
        "{}: no reliable list of purges: {why}; purged objects are listed as stored",
        folder.join(list::NAME).display()
    );
    terminal::report(Level::Warning, &text);
    Describer { policies: Policies::default(), purges: None }
}

/// Lists the objects of a store whose scheme is not webcosm.
fn list_placed(file: &StoreFile, listing: &mut Listing) -> Result<(), Failure> {
    let superblock = match file.superblocks() {
        Ok((_, superblock)) => superblock,
        Err(Refused::Blank) => return Ok(()),
        Err(refused) => return Err(refusal(&file.path, refused)),
    };
    let store = StoreAtRest::open(file, &superblock);
    let mut store = store.map_err(|unopened| unopened.failure(file))?;
    let records = store.records(None);
    let describer = describer(file);
    let mut progress = Progress::new("records", Some(records.len() as u64));
    for (number, placed) in (1..).zip(records) {
        progress.update(number);
        let record = store.read(&placed);
        if let Some(description) = record.and_then(|it| describer.describe(&it.head)) {
            listing.add(description_as_json(&description));
        }
    }
    Ok(())
}
