//! The segments of a store of another scheme than webcosm, and the records of a segment.

use super::{Inspected, hex};
use crate::failure::Failure;
use crate::store_at_rest::{StoreAtRest, Unopened, emptied};
use crate::store_file::{StoreFile, refusal};
use foxy_report::Table;
use foxy_store::map::{SegmentPlace, SegmentUse, Survey};
use foxy_store::superblock::Superblock;
use foxy_store::webcosm::check::Refused;
use foxy_store::{AnewReason, Key};
use serde_json::{Value, json};

/// The content of a store, or the reason why the next start empties it.
pub enum Placed {
    Records(PlacedRecords),
    /// The next start empties the store.
    Emptied(AnewReason),
}

pub struct PlacedRecords {
    survey: Survey,
    /// The records of the segment that the caller asked for.
    listed: Vec<ListedRecord>,
}

struct ListedRecord {
    at: u64,
    key: Option<Key>,
    /// Lengths of head and body in bytes. `None` if the record is damaged.
    found: Option<(usize, usize)>,
}

impl Placed {
    /// Reads the segments of a store, and the records of the segment `listed`.
    pub fn read(
        file: &StoreFile,
        superblock: &Superblock,
        listed: Option<u32>,
    ) -> Result<Self, Failure> {
        let mut store = match StoreAtRest::open(file, superblock) {
            Err(Unopened::Emptied(reason)) => return Ok(Self::Emptied(reason)),
            Err(refused) => return Err(refused.failure(file)),
            Ok(store) => store,
        };
        let survey = store.survey();
        let Some(slot) = listed else {
            return Ok(Self::Records(PlacedRecords { survey, listed: Vec::new() }));
        };
        let Some(place) = survey.segments.get(slot as usize) else {
            let slots = survey.segments.len() as u32;
            return Err(refusal(&file.path, Refused::NoSuchSegment { slot, slots }));
        };
        let mut listed = Vec::new();
        for placed in store.records(Some(place.part())) {
            let found = store.read(&placed).map(|record| (record.head.len(), record.body.len()));
            listed.push(ListedRecord { at: placed.at, key: placed.key, found });
        }
        Ok(Self::Records(PlacedRecords { survey, listed }))
    }

    /// Returns tables that show the store's segments and records to people.
    pub fn text(&self, inspected: &Inspected<'_>) -> Vec<String> {
        match self {
            Self::Records(records) => records.text(inspected),
            Self::Emptied(reason) => vec![format!("{}\n", emptied(*reason))],
        }
    }

    pub fn as_json(&self, listed: Option<u32>) -> Value {
        match self {
            Self::Records(records) => records.as_json(listed),
            Self::Emptied(reason) => json!({ "emptied": emptied(*reason) }),
        }
    }
}

impl PlacedRecords {
    fn text(&self, inspected: &Inspected<'_>) -> Vec<String> {
        match inspected.listed {
            Some(slot) => vec![self.segments(|it| it.slot == slot).render(), self.records()],
            None => vec![self.segments(|it| it.state != SegmentUse::Free).render(), self.sums()],
        }
    }

    fn name(&self, place: &SegmentPlace) -> &str {
        let file = self.survey.files.iter().find(|file| Some(file.number) == place.file);
        file.map_or("", |file| &file.name)
    }

    fn segments(&self, wanted: impl Fn(&SegmentPlace) -> bool) -> Table {
        let heads = ["segment", "file", "byte", "bytes", "state", "live", "live bytes"];
        let mut table = Table::new(&heads);
        for place in self.survey.segments.iter().filter(|place| wanted(place)) {
            table.row(&[
                place.slot.to_string(),
                self.name(place).into(),
                place.at.to_string(),
                place.bytes.to_string(),
                place.state.name().into(),
                place.live_records.to_string(),
                place.live_bytes.to_string(),
            ]);
        }
        table
    }

    fn sums(&self) -> String {
        let (live, apart) = (self.survey.live(), self.survey.apart);
        let is_free = |place: &&SegmentPlace| place.state == SegmentUse::Free;
        let free = self.survey.segments.iter().filter(is_free).count();
        format!(
            "{free} segments are free\n{} records with {} bytes are in segments, {} with {} bytes \
             have files of their own\n",
            live.records, live.bytes, apart.records, apart.bytes
        )
    }

    fn records(&self) -> String {
        let mut table = Table::new(&["byte", "key", "head", "body"]);
        for record in &self.listed {
            let mut cells =
                vec![record.at.to_string(), record.key.map_or_else(String::new, |key| hex(&key.0))];
            match record.found {
                Some((head, body)) => cells.extend([head.to_string(), body.to_string()]),
                None => cells.push("damaged".into()),
            }
            table.row(&cells);
        }
        table.render()
    }

    fn as_json(&self, listed: Option<u32>) -> Value {
        let segment = |place: &SegmentPlace| {
            json!({
                "segment": place.slot,
                "file": self.name(place),
                "at": place.at,
                "bytes": place.bytes,
                "state": place.state.name(),
                "live_records": place.live_records,
                "live_bytes": place.live_bytes,
            })
        };
        let (live, apart) = (self.survey.live(), self.survey.apart);
        let mut value = json!({
            "segments": self.survey.segments.iter().map(segment).collect::<Vec<_>>(),
            "records": live.records,
            "bytes": live.bytes,
            "own_files": { "records": apart.records, "bytes": apart.bytes },
        });
        if listed.is_some() {
            let record = |it: &ListedRecord| {
                let found = it.found.map(|(head, body)| json!({ "head": head, "body": body }));
                json!({ "at": it.at, "key": it.key.map(|key| hex(&key.0)), "found": found })
            };
            value["listed"] = self.listed.iter().map(record).collect();
        }
        value
    }
}
