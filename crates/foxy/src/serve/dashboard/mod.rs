//! The dashboard: a web page on the admin address. This folder has the page's files and the data
//! that the page asks for.

pub mod configuration;
pub mod files;
pub mod live;
pub mod map_json;
pub mod maps;
pub mod objects;
mod sketch;
pub mod traffic;

use crate::serve::admin::requests::query_pairs;
use foxy_base::{WallTime, clock};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::Gauges;
use foxy_store::StoreHandle;
use live::{Facts, LastLook};
use maps::StoreMaps;
use objects::ObjectSearch;
use serde_json::Value;
use std::rc::Rc;
use std::sync::Arc;
use traffic::Traffic;

/// A request of the dashboard for data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataRequest {
    /// Counters, gauges, troubles and recent traffic.
    Live,
    /// All settings with their sources.
    Configuration,
    /// The hits of other cache sizes and policies.
    WhatIf,
    /// The nodes of the fleet.
    Fleet,
    /// The map of a store, if it is newer than `after`.
    Map { store: usize, after: WallTime },
    /// The snapshots of a store's map that are newer than `after`.
    MapHistory { store: usize, after: WallTime },
    /// At most `most` objects of a map's cell. `slot` is the first segment of the cell.
    Segment { store: usize, slot: u32, most: usize },
    /// Objects whose URLs contain some text.
    Objects(ObjectSearch),
}

impl DataRequest {
    /// Parses path and query of a request, such as `/data/map?store=0`. Returns `None` if there is
    /// no such data.
    pub fn read(path: &str, query: Option<&str>) -> Option<Self> {
        let pairs = query_pairs(query.unwrap_or("")).ok()?;
        let text =
            |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let store = text("store").and_then(|number| number.parse().ok());
        let after = || text("after").map_or(Some(0), |time| time.parse().ok()).map(WallTime);
        let search = || {
            let word = |name| text(name).unwrap_or_default().to_owned();
            let from = text("from").map_or(Some(0), |number| number.parse().ok())?;
            Some(ObjectSearch { store, host: word("host"), path: word("path"), from })
        };
        match path {
            "/data/live" => Some(Self::Live),
            "/data/settings" => Some(Self::Configuration),
            "/data/whatif" => Some(Self::WhatIf),
            "/data/fleet" => Some(Self::Fleet),
            "/data/map" => Some(Self::Map { store: store?, after: after()? }),
            "/data/map-history" => Some(Self::MapHistory { store: store?, after: after()? }),
            "/data/segment" => {
                let most = text("most").map_or(Some(usize::MAX), |number| number.parse().ok())?;
                Some(Self::Segment { store: store?, slot: text("segment")?.parse().ok()?, most })
            }
            "/data/objects" => Some(Self::Objects(search()?)),
            _ => None,
        }
    }
}

/// The parts of a running proxy that the dashboard shows, and what it remembers.
pub struct Dashboard {
    proxy: Gauges,
    /// Folder and handle of each store.
    stores: Vec<(String, StoreHandle)>,
    pub traffic: Arc<Traffic>,
    last_look: LastLook,
    maps: StoreMaps,
}

impl Dashboard {
    pub fn new(proxy: Gauges, stores: Vec<(String, StoreHandle)>, traffic: Arc<Traffic>) -> Self {
        let maps = StoreMaps::new(stores.len());
        Self { proxy, stores, traffic, last_look: LastLook::default(), maps }
    }

    /// Makes maps of the stores until the future is dropped.
    pub async fn keep_maps(self: Rc<Self>) {
        maps::keep(&self.maps, &self.stores).await;
    }

    /// Returns counters, gauges, troubles and recent traffic.
    pub fn live(&self, facts: Facts) -> Value {
        let now = clock::monotonic();
        let rate = self.last_look.rate(now, self.proxy.count(Counter::Requests));
        let mut value = live::as_json(&facts, &self.proxy, &self.stores);
        value["traffic"] = self.traffic.as_json(now, rate);
        value
    }

    /// Returns a map, its snapshots or stored objects. Returns `None` if the store is unknown or
    /// has no such data, and for requests for other data.
    pub async fn storage(&self, wanted: DataRequest) -> Option<Value> {
        match wanted {
            DataRequest::Map { store, after } => {
                self.maps.map_as_json(store, after, clock::monotonic())
            }
            DataRequest::MapHistory { store, after } => self.maps.history_as_json(store, after),
            DataRequest::Segment { store, slot, most } => {
                let part = self.maps.part(store, slot)?;
                let store = &self.stores.get(store)?.1;
                objects::of_part(store, &self.proxy, part, most).await
            }
            DataRequest::Objects(search) => match search.store {
                Some(store) => {
                    let store = &self.stores.get(store)?.1;
                    objects::search(store, &self.proxy, &search).await
                }
                None => Some(objects::search_memory(&self.proxy, &search)),
            },
            DataRequest::Live
            | DataRequest::Configuration
            | DataRequest::WhatIf
            | DataRequest::Fleet => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_data_and_its_place() {
        let read = |path: &str, query: &str| DataRequest::read(path, Some(query));
        let map = |after| Some(DataRequest::Map { store: 1, after: WallTime(after) });
        assert_eq!(read("/data/live", ""), Some(DataRequest::Live));
        assert_eq!(read("/data/map", "store=1"), map(0));
        assert_eq!(read("/data/map", "store=1&after=7"), map(7));
        let segment = Some(DataRequest::Segment { store: 0, slot: 7, most: 5 });
        assert_eq!(read("/data/segment", "store=0&segment=7&most=5"), segment);
        let search =
            ObjectSearch { store: Some(0), host: "a.test".into(), path: "/x y".into(), from: 9 };
        let query = "store=0&host=a.test&path=/x%20y&from=9";
        assert_eq!(read("/data/objects", query), Some(DataRequest::Objects(search)));
        for (path, query) in [
            ("/data/map", ""),
            ("/data/map", "store=x"),
            ("/data/map-history", "store=1&after=x"),
            ("/data/segment", "store=0"),
            ("/data/objects", "from=x"),
            ("/data/objects", "host=%zz"),
            ("/data/else", ""),
        ] {
            assert_eq!(read(path, query), None, "{path} {query}");
        }
    }
}
