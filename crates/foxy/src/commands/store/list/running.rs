//! Lists the objects of a running foxy, in steps, with the search of its dashboard.

use super::listing::Listing;
use crate::commands::admin_client::AdminClient;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::admin::requests::encode;
use clap::ArgMatches;
use serde_json::Value;

pub fn list(matches: &ArgMatches, listing: &mut Listing) -> Result<(), Failure> {
    let client = AdminClient::new(matches)?;
    if matches.get_flag("memory") {
        return search(&client, None, matches, listing);
    }
    let live = client.ask_for_json("/data/live")?;
    let stores = live["stores"].as_array().map_or(&[][..], Vec::as_slice);
    let has_map = |store: &Value| store["has_map"] == true;
    if !stores.iter().any(has_map) {
        let text = "no store of this foxy can be listed, because their schemes keep each object \
                    in a file of its own; --memory lists the objects in memory";
        return Err(Failure::Unusable(text.into()));
    }
    for (number, _) in stores.iter().enumerate().filter(|(_, store)| has_map(store)) {
        search(&client, Some(number), matches, listing)?;
    }
    Ok(())
}

/// Lists the objects of a store, or of the memory.
fn search(
    client: &AdminClient,
    store: Option<usize>,
    matches: &ArgMatches,
    listing: &mut Listing,
) -> Result<(), Failure> {
    let place = store.map_or_else(String::new, |store| format!("store={store}&"));
    // The server searches for literal texts only. For a pattern, it sends all objects, and
    // `listing` filters them.
    let is_text = |text: &&str| !text.contains(['*', '?', '[', '{', '\\', '(']);
    let raw = matches.get_raw("host").and_then(|mut all| all.next()).and_then(|it| it.to_str());
    let host = raw.filter(is_text).map_or_else(String::new, encode);
    let mut progress = Progress::new("per cent", Some(100));
    let mut from = Some(0);
    while let Some(at) = from {
        let step = client.ask_for_json(&format!("/data/objects?{place}host={host}&from={at}"))?;
        for object in step["objects"].as_array().into_iter().flatten() {
            listing.add(object.clone());
        }
        listing.miss(step["unread"].as_u64().unwrap_or(0));
        progress.update((step["searched"].as_f64().unwrap_or(0.0) * 100.0) as u64);
        from = step["next"].as_u64();
    }
    Ok(())
}
