//! Lists the objects of a store that is not in use. The command reads the whole store once.

use super::listing::Listing;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::dashboard::objects::description_as_json;
use crate::serve::purge::list::{self, FoundList};
use crate::serve::stores::kept_clock;
use crate::store_at_rest::StoreAtRest;
use crate::store_file::{self, StoreFile, refusal};
use crate::terminal::{self, Level};
use foxy_proxy::cache::purge::PurgeBook;
use foxy_proxy::cache::{Describer, RecordDescription};
use foxy_proxy::core::rules::Policies;
use foxy_store::Key;
use foxy_store::webcosm::check::{FoundRecord, Refused};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

pub fn list(folder: &Path, listing: &mut Listing) -> Result<(), Failure> {
    let files = store_file::open(folder)?;
    kept_clock::resume_at_rest(folder);
    for file in files.iter().filter(|file| file.has_layout()) {
        if !file.is_webcosm() {
            list_placed(file, listing)?;
            continue;
        }
        let describer = describer(file);
        let mut progress = Progress::new("bytes", Some(file.size()));
        let mut objects = Objects::default();
        let listed = file.list(
            &mut |done| progress.update(done),
            &mut |FoundRecord { key, head, .. }: FoundRecord<'_>| {
                objects.add(key, describer.describe(head), listing);
            },
        );
        match listed {
            Ok(_) | Err(Refused::Blank) => objects.finish(listing),
            Err(refused) => return Err(refusal(&file.path, refused)),
        }
    }
    match files.first().filter(|_| !files.iter().any(StoreFile::has_layout)) {
        Some(file) => Err(Failure::Unusable(file.without_layout())),
        None => Ok(()),
    }
}

/// The large objects of a store. A search lists them at its end, when it has seen all their parts.
#[derive(Default)]
struct Objects {
    /// The keys of all records without a response: the parts of large objects.
    parts: HashSet<Key>,
    in_parts: Vec<RecordDescription>,
}

impl Objects {
    fn add(&mut self, key: Key, record: Option<RecordDescription>, listing: &mut Listing) {
        match record {
            Some(object) if object.part_keys.is_some() => self.in_parts.push(object),
            Some(object) if object.status.is_some() => {
                listing.add(description_as_json(&object, object.length));
            }
            _ => {
                self.parts.insert(key);
            }
        }
    }

    fn finish(self, listing: &mut Listing) {
        for object in &self.in_parts {
            let stored = object.stored_bytes(|key| self.parts.contains(&key));
            listing.add(description_as_json(object, stored));
        }
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
    let mut objects = Objects::default();
    for (number, placed) in (1..).zip(records) {
        progress.update(number);
        let Some((key, record)) = placed.key.zip(store.read(&placed)) else { continue };
        objects.add(key, describer.describe(&record.head), listing);
    }
    objects.finish(listing);
    Ok(())
}
