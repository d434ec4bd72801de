//! Lists stored objects for the dashboard: the objects of a segment, or the objects whose URLs
//! contain some text, in a store or in memory. For each request, a new thread reads records from
//! the disk.

use super::maps::visit;
use foxy_base::{WallTime, clock};
use foxy_proxy::cache::{Describer, PurgeEffect, RecordDescription};
use foxy_proxy::server::Gauges;
use foxy_store::StoreHandle;
use foxy_store::map::{FilePart, PlacedRecord, RecordFate, RecordScan};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::oneshot;

/// Largest number of records that a request reads from a part of a file.
const MAX_OF_PART: usize = 60;
/// Number of records that one step of a search reads from a store.
const RECORDS_AT_ONCE: usize = 256;
/// Number of bytes that one request reads from a store.
const MAX_BYTES: u64 = 48 << 20;
/// Longest time for which one request reads records, if the disk answers.
const MAX_TIME: Duration = Duration::from_secs(2);
/// A search in memory ends its step after about this number of objects.
const MAX_FOUND: usize = 500;
/// Number of visits to the memory cache in one step of a search.
const VISITS_AT_ONCE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSearch {
    /// Number of the store, or `None` for the memory cache.
    pub store: Option<usize>,
    /// Text that the host must contain.
    pub host: String,
    /// Text that the path with its query must contain.
    pub path: String,
    /// Where the last step of the search ended; 0 at first.
    pub from: u64,
}

impl ObjectSearch {
    fn matches(&self, url: &str) -> bool {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        host.to_ascii_lowercase().contains(&self.host.to_ascii_lowercase())
            && path.contains(&self.path)
    }
}

/// A record that was read from a store.
struct ReadRecord {
    placed: PlacedRecord,
    bytes: usize,
    description: Option<RecordDescription>,
}

/// Does the next step of a scan. Returns the scan, and whether records remain.
async fn continue_scan(store: &StoreHandle, mut scan: RecordScan) -> Option<(bool, RecordScan)> {
    visit(store, |layout| (layout.continue_scan(&mut scan), scan)).await
}

/// Returns the result of one step of a search.
pub async fn search(store: &StoreHandle, proxy: &Gauges, wanted: &ObjectSearch) -> Option<Value> {
    let from = usize::try_from(wanted.from).ok()?;
    let scan = continue_scan(store, RecordScan::new(None, RECORDS_AT_ONCE, from)).await?.1;
    let next = (scan.next < scan.parts).then_some(scan.next);
    let share = scan.next as f64 / scan.parts.max(1) as f64;
    let (records, unread) = read(store.clone(), proxy.describer(), scan.found).await;
    let is_wanted = |record: &&ReadRecord| {
        let url = record.description.as_ref().and_then(|it| it.url.as_deref());
        url.is_some_and(|url| wanted.matches(url))
    };
    let found: Vec<_> =
        records.iter().filter(is_wanted).map(|it| record_as_json(it, proxy)).collect();
    Some(json!({ "objects": found, "next": next, "searched": share, "unread": unread }))
}

/// Returns the result of one step of a search in memory.
pub fn search_memory(proxy: &Gauges, wanted: &ObjectSearch) -> Value {
    let mut found = Vec::new();
    let mut from = Some(wanted.from);
    for _ in 0..VISITS_AT_ONCE {
        let Some(place) = from.filter(|_| found.len() < MAX_FOUND) else { break };
        from = proxy.visit_memory(place, |description| {
            if description.url.as_deref().is_some_and(|url| wanted.matches(url)) {
                found.push(description_as_json(&description, description.length));
            }
        });
    }
    let share = from.map_or(1.0, |place| (place >> 32) as f64 / 16.0);
    json!({ "objects": found, "next": from, "searched": share, "unread": 0 })
}

/// Returns at most about `most` live objects of a part of a file, in the order of their places.
pub async fn of_part(
    store: &StoreHandle,
    proxy: &Gauges,
    part: FilePart,
    most: usize,
) -> Option<Value> {
    let mut step = continue_scan(store, RecordScan::new(Some(part), usize::MAX, 0)).await?;
    while step.0 {
        tokio::task::yield_now().await;
        step = continue_scan(store, step.1).await?;
    }
    let scan = step.1;
    let mut placed = scan.found;
    placed.sort_unstable_by_key(|record| record.at);
    let all = placed.len();
    let copied = placed.iter().filter(|record| record.fate == Some(RecordFate::Copied)).count();
    // If there are too many records, takes every `step`th, so that the result represents the whole
    // part.
    let step = all.div_ceil(most.clamp(1, MAX_OF_PART)).max(1);
    let chosen: Vec<_> = placed.into_iter().step_by(step).collect();
    let (records, _) = read(store.clone(), proxy.describer(), chosen).await;
    let records: Vec<_> = records.iter().map(|record| record_as_json(record, proxy)).collect();
    Some(json!({ "live": all, "copied": copied, "records": records }))
}

/// Reads records in the order of their places. Returns them with the number of records that were
/// not read, because they are large or the disk is slow.
async fn read(
    store: StoreHandle,
    describer: Describer,
    mut placed: Vec<PlacedRecord>,
) -> (Vec<ReadRecord>, usize) {
    placed.sort_unstable_by_key(|record| (record.file, record.at));
    let all = placed.len();
    let mut room = MAX_BYTES;
    placed.retain(|record| {
        let is_within = record.bytes <= room;
        room -= if is_within { record.bytes } else { 0 };
        is_within
    });
    let (sender, receiver) = oneshot::channel();
    let begun = clock::monotonic();
    let reading = move || {
        let mut records = Vec::new();
        store.read_placed(&placed, |placed, _, record| {
            let description = describer.describe(&record.head);
            records.push(ReadRecord { placed: *placed, bytes: record.len(), description });
            clock::monotonic().since(begun) < MAX_TIME
        });
        // The error is ignored, because the client may have left.
        let _ = sender.send(records);
    };
    if std::thread::Builder::new().name("foxy-objects".into()).spawn(reading).is_err() {
        return (Vec::new(), all);
    }
    let records = receiver.await.unwrap_or_default();
    let unread = all - records.len();
    (records, unread)
}

fn record_as_json(record: &ReadRecord, proxy: &Gauges) -> Value {
    let ReadRecord { placed, bytes, description } = record;
    let mut value = description.as_ref().map_or_else(
        || json!({}),
        |it| description_as_json(it, it.stored_bytes(|key| !proxy.lacks(key))),
    );
    value["at"] = placed.at.into();
    value["bytes"] = (*bytes).into();
    value["uses"] = placed.uses.into();
    value["copied"] = placed.fate.map(|fate| fate == RecordFate::Copied).into();
    value
}

/// Returns the facts about a stored object that its record contains. `stored` is the number of body
/// bytes that the store still has. The record has times of the steady clock, the result of the wall
/// clock.
pub fn description_as_json(description: &RecordDescription, stored: u64) -> Value {
    // The lead of the steady clock is rounded to seconds, so that each search gives the same times.
    let lead = (clock::steady().0 + 500).saturating_sub(clock::wall().0) / 1000 * 1000;
    let shown = |WallTime(steady): WallTime| steady.saturating_sub(lead);
    json!({
        "url": description.url,
        "variant": description.is_variant,
        "status": description.status,
        "length": description.length,
        "stored": stored,
        "received_ms": description.received.map(shown),
        "expires_ms": description.expires.map(shown),
        "parts": description.parts,
        "partial": description.is_partial,
        "purge": description.purge.map(PurgeEffect::name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_compares_host_and_path() {
        let search = |host: &str, path: &str| {
            let (host, path) = (host.to_owned(), path.to_owned());
            ObjectSearch { host, path, ..ObjectSearch::default() }
                .matches("http://www.A.test:81/b/c?d=E")
        };
        assert!(search("", "") && search("a.TEST", "") && search("", "c?d") && search(":81", "/b"));
        assert!(!search("b", "") && !search("", "a.test") && !search("", "d=e"));
    }
}
