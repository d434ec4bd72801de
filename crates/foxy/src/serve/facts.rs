//! What the admin server tells: counters summed at the moment they are asked for, and what is
//! wrong.

use super::admin::{Facts, Later};
use super::admin_explain::Asked;
use super::admin_purge::PurgeTarget;
use super::disk_health::{DiskHealth, is_silent};
use super::exposition::{Exposition, FamilyKind};
use super::file_watch::FileWatch;
use super::log_queue::LogQueue;
use super::purge_journal::Lists;
use super::store_set::StoreSet;
use super::wear::{Sight, Wear, WornReason, to_take_out};
use super::{metrics, process};
use foxy_base::{Instant, WallTime, clock};
use foxy_device::FileTrouble;
use foxy_proxy::cache::purge::NotPurged;
use foxy_proxy::core::token::Token;
use foxy_proxy::explain::Explanation;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::server::Gauges;
use foxy_proxy::server::purger::Purger;
use foxy_store::{StoreHandle, StoreStatus};
use std::cell::Cell;
use std::sync::Arc;

/// A store, as seen from outside.
pub struct StoreFacts {
    folder: String,
    handle: StoreHandle,
    health: DiskHealth,
    wear: Cell<Wear>,
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The number of the store that it is about, if it is about one.
    pub store: Option<usize>,
    /// What it is, to people.
    pub text: String,
    /// Whether the store is asked for nothing until foxy is restarted.
    pub is_left_out: bool,
}

impl StoreFacts {
    /// One in that folder that was just opened.
    pub fn new(folder: String, handle: StoreHandle) -> Self {
        let health = DiskHealth::of(handle.observer());
        let wear = Cell::new(Wear::after(failures(&handle)));
        Self { folder, handle, health, wear }
    }

    fn look(&self, read_only: bool, now: Instant) -> Option<WornReason> {
        let status = self.handle.observer().status.get();
        let ended = matches!(status, StoreStatus::Unusable(_) | StoreStatus::Panicked);
        let mut wear = self.wear.get();
        let worn = wear.look(Sight { failures: failures(&self.handle), read_only, ended }, now);
        self.wear.set(wear);
        worn
    }
}

/// Operations that failed, other than for lack of room.
fn failures(store: &StoreHandle) -> u64 {
    let statistics = &store.observer().statistics;
    statistics.device_errors.get().saturating_sub(statistics.no_room.get())
}

/// A running foxy, as seen from outside.
pub struct RunningFacts {
    /// The proxy's numbers.
    pub proxy: Gauges,
    /// What purges its cache.
    pub purger: Purger,
    /// What whoever purges must know.
    pub token: Option<Token>,
    /// The names under which the admin server is asked.
    pub hosts: Vec<HostPattern>,
    /// The stores.
    pub stores: Vec<StoreFacts>,
    /// All of them as one, if there are any.
    pub set: Option<StoreSet>,
    /// What is known of their files.
    pub files: FileWatch,
    /// What is known of the lists of purges beside them.
    pub lists: Lists,
    /// Lines of the access log that wait.
    pub log: Option<Arc<LogQueue>>,
    /// When it became ready.
    pub started: WallTime,
    /// Whether it is about to end.
    pub stopping: Cell<bool>,
}

impl RunningFacts {
    fn is_out(&self, store: usize) -> bool {
        self.set.as_ref().is_some_and(|set| set.out_of_use().is_out(store))
    }

    /// Takes the stores whose disks fail again and again out of use, as long as another is left,
    /// once it is written that what they hold is not to be believed. Where that cannot be written
    /// they are asked on.
    pub fn take_out_worn_stores(&self, now: Instant) {
        let Some(set) = &self.set else { return };
        let look = |(number, store): (usize, &StoreFacts)| {
            let seen = self.files.trouble(number) == Some(FileTrouble::ReadOnly);
            let read_only = seen || store.health.is_read_only(store.handle.observer(), now);
            (store.look(read_only, now), self.is_out(number))
        };
        let worn = to_take_out(&self.stores.iter().enumerate().map(look).collect::<Vec<_>>());
        if !worn.is_empty() {
            let (set, taken) = (set.clone(), worn.clone());
            let kept = move || taken.iter().for_each(|&store| set.out_of_use().take_out(store));
            self.lists.take_out(worn, Box::new(kept));
        }
    }

    /// The folder of a store whose disk does not answer.
    pub fn silent(&self) -> Option<&str> {
        let now = clock::monotonic();
        let silent = |store: &&StoreFacts| is_silent(store.handle.observer(), now);
        self.stores.iter().find(silent).map(|store| store.folder.as_str())
    }

    /// Whether a trouble that is not there any more is over: it is not when its store is out of
    /// use.
    pub fn is_over(&self, trouble: &Trouble) -> bool {
        !trouble.store.is_some_and(|store| self.is_out(store))
    }

    /// What is wrong now.
    pub fn look(&self) -> Vec<Trouble> {
        let now = clock::monotonic();
        let named = |number: usize, trouble| Trouble {
            store: Some(number),
            text: format!("store {}: {trouble}", self.stores[number].folder),
            is_left_out: self.is_left_out(number),
        };
        let numbers = 0..self.stores.len();
        let store = |number| Some(named(number, self.trouble(number, now)?));
        let list = |number| Some(named(number, self.lists.trouble(number)?));
        let stopping = self.stopping.get().then(|| Trouble {
            store: None,
            text: "foxy is stopping".into(),
            is_left_out: false,
        });
        stopping
            .into_iter()
            .chain(numbers.clone().filter_map(store))
            .chain(numbers.filter_map(list))
            .collect()
    }

    /// Whether a store is asked for nothing any more, or answers nothing.
    fn is_left_out(&self, store: usize) -> bool {
        let status = self.stores[store].handle.observer().status.get();
        self.is_out(store) || matches!(status, StoreStatus::Unusable(_) | StoreStatus::Panicked)
    }

    fn trouble(&self, number: usize, now: Instant) -> Option<String> {
        let StoreFacts { handle, health, wear, .. } = &self.stores[number];
        let observer = handle.observer();
        if let Some(reason) = wear.get().reason().filter(|_| self.is_out(number)) {
            return Some(format!(
                "out of use, as {reason}; the other stores take its URLs; look at the disk and the system's log, empty the store's \
                 folder (and device) or what all stores hold is forgotten, then restart foxy"
            ));
        }
        match observer.status.get() {
            StoreStatus::Unusable(error) => Some(error.to_string()),
            StoreStatus::Panicked => Some("its thread failed; restart foxy".into()),
            StoreStatus::Rebuilding | StoreStatus::Serving => {
                let disk = || health.judge(observer, now).map(|trouble| trouble.to_string());
                self.files.trouble(number).map(|trouble| trouble.to_string()).or_else(disk)
            }
            StoreStatus::Opening | StoreStatus::Closed => None,
        }
    }
}

impl Facts for RunningFacts {
    fn metrics(&self) -> String {
        let mut exposition = Exposition::default();
        metrics::build(&mut exposition);
        metrics::proxy(&mut exposition, &self.proxy);
        let snapshot = |store: &StoreFacts| {
            (store.folder.clone(), store.handle.observer().statistics.snapshot())
        };
        metrics::stores(&mut exposition, &self.stores.iter().map(snapshot).collect::<Vec<_>>());
        let numbered = self.stores.iter().enumerate();
        let out = numbered.map(|(number, store)| (store.folder.as_str(), self.is_out(number)));
        metrics::out_of_use(&mut exposition, &out.collect::<Vec<_>>());
        if let Some(queue) = &self.log {
            metrics::access_log(&mut exposition, queue);
        }
        let help = "Start time of the process since the Unix epoch in seconds.";
        exposition.single(
            "process_start_time_seconds",
            FamilyKind::Gauge,
            help,
            self.started.seconds(),
        );
        process::expose(&mut exposition);
        exposition.finish()
    }

    fn troubles(&self) -> Vec<String> {
        self.look().into_iter().map(|trouble| trouble.text).collect()
    }

    fn hosts(&self) -> &[HostPattern] {
        &self.hosts
    }

    fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    fn purge(&self, wanted: PurgeTarget) -> Later<Result<u64, NotPurged>> {
        let purger = self.purger.clone();
        Box::pin(async move { purger.purge(&wanted.scopes, wanted.strength).await })
    }

    fn explain(&self, asked: &Asked) -> Later<Explanation> {
        let (purger, url, fields) = (self.purger.clone(), asked.url.clone(), asked.fields.clone());
        Box::pin(async move { purger.explain(&url, &fields).await })
    }
}
